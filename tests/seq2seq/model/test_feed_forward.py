"""FFN(x) = act(x W_1 + b_1) W_2 + b_2."""

import math
from collections.abc import Callable
from typing import get_args

import pytest
import torch
from torch import Tensor, nn

from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.config import Activation
from tfm.seq2seq.model.feed_forward import ACTIVATIONS, GATED, FeedForward

B, S, D = 2, 3, 16


def times(x: Tensor, linear: nn.Linear) -> Tensor:
    """x W + b; torch stores W transposed."""
    return x @ linear.weight.t() + linear.bias


def test_relu_is_the_paper(tiny_config: Callable[..., ModelConfig]) -> None:
    ffn, x = FeedForward(tiny_config(activation="relu")), torch.randn(B, S, D)
    hidden = torch.maximum(torch.zeros(()), times(x, ffn.linear_1))
    torch.testing.assert_close(ffn(x), times(hidden, ffn.linear_2), atol=1e-6, rtol=0)


def test_gelu_weighs_x_by_the_normal_distribution(tiny_config: Callable[..., ModelConfig]) -> None:
    ffn, x = FeedForward(tiny_config(activation="gelu")), torch.randn(B, S, D)
    hidden = times(x, ffn.linear_1)
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / math.sqrt(2)))
    torch.testing.assert_close(ffn(x), times(hidden, ffn.linear_2), atol=1e-6, rtol=0)


def test_swiglu_multiplies_a_gate(tiny_config: Callable[..., ModelConfig]) -> None:
    ffn, x = FeedForward(tiny_config(activation="swiglu")), torch.randn(B, S, D)
    assert ffn.gate is not None
    gate = times(x, ffn.gate)
    hidden = gate / (1 + torch.exp(-gate)) * times(x, ffn.linear_1)
    torch.testing.assert_close(ffn(x), times(hidden, ffn.linear_2), atol=1e-6, rtol=0)


@pytest.mark.parametrize("activation", get_args(Activation))
def test_the_second_bias_can_be_left_out(tiny_config: Callable[..., ModelConfig], activation: str) -> None:
    whole = FeedForward(tiny_config(activation=activation))
    without = FeedForward(tiny_config(activation=activation, feed_forward_output_bias=False))
    nn.init.normal_(whole.linear_2.bias)
    state = whole.state_dict()
    b_2 = state.pop("linear_2.bias")
    without.load_state_dict(state)  # the others are all there
    x = torch.randn(B, S, D)
    torch.testing.assert_close(without(x), whole(x) - b_2, atol=1e-6, rtol=0)


@pytest.mark.parametrize("activation", sorted({*get_args(Activation)} - {"swiglu"}))
def test_only_swiglu_has_a_gate(tiny_config: Callable[..., ModelConfig], activation: str) -> None:
    assert FeedForward(tiny_config(activation=activation)).gate is None


@pytest.mark.parametrize("activation", get_args(Activation))
def test_each_position_is_mapped_alone_and_alike(tiny_config: Callable[..., ModelConfig], activation: str) -> None:
    ffn, x = FeedForward(tiny_config(activation=activation)), torch.randn(B, S, D)
    alone = torch.stack([ffn(x[:, i]) for i in range(S)], dim=1)
    torch.testing.assert_close(ffn(x), alone, atol=1e-6, rtol=0)


def test_each_activation_is_in_the_table_and_no_other_is_taken(tiny_config: Callable[..., ModelConfig]) -> None:
    assert ACTIVATIONS.keys() == set(get_args(Activation)) and ACTIVATIONS.keys() > GATED
    config = tiny_config()
    object.__setattr__(config, "activation", "tanh")  # as if added after all else
    with pytest.raises(KeyError, match="tanh"):
        FeedForward(config)


def test_dropout_falls_on_the_hidden_layer(tiny_config: Callable[..., ModelConfig]) -> None:
    ffn, x = FeedForward(tiny_config(d_ff=D, feed_forward_dropout=0.5)), torch.randn(B, S, D)
    with torch.no_grad():
        ffn.linear_2.weight.copy_(torch.eye(D))
        ffn.linear_2.bias.fill_(1)
    hidden = times(x, ffn.linear_1).relu()

    torch.testing.assert_close(ffn.eval()(x), hidden + 1)
    dropped = ffn.train()(x) - 1  # W_2 = I and b_2 = 1 leave the hidden layer visible
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * hidden[kept])
    assert 0 < kept.sum() < (hidden > 0).sum()
