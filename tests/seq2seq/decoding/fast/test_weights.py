"""The arranged weights compute what the modules compute that they were made from, and refuse what they do not know."""

from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn

from tfm.seq2seq.decoding.fast import FastTransformer, weights
from tfm.seq2seq.decoding.fast.weights import (
    FEW_ROWS,
    Embedding,
    FeedForward,
    Linear,
    Norm,
    final_norm,
    output_layer,
)
from tfm.seq2seq.model import ModelConfig, Transformer
from tfm.seq2seq.model.config import Activation, NormOrder, Positions
from tfm.seq2seq.model.layers import EncoderLayer

D = 12


def build(**choices: Any) -> Transformer:
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"d_model": D, "d_ff": 20, "num_heads": 2, "max_seq_len": 9}
    config = ModelConfig(**{**sizes, "num_encoder_layers": 1, "num_decoder_layers": 1, **choices})
    model = Transformer(config, src_vocab_size=17, tgt_vocab_size=17, shared_vocab=True).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model


def encoder_layer(model: Transformer) -> EncoderLayer:
    (layer,) = model.encoder.layers
    assert isinstance(layer, EncoderLayer)
    return layer


@torch.no_grad()
@pytest.mark.parametrize("bias", [True, False])
def test_projections_of_one_input_are_one_product(bias: bool) -> None:
    linears, x, residual = [nn.Linear(D, 5, bias=bias), nn.Linear(D, 3)], torch.randn(4, D), torch.randn(4, 8)
    expected = torch.cat([linear(x) for linear in linears], dim=1)
    linear = Linear.of(*linears)
    torch.testing.assert_close(linear(x), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(linear.add_to(residual.clone(), x), residual + expected, atol=1e-6, rtol=0)


def by_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where torch has no oneDNN."""
    monkeypatch.setattr(weights, "_is_for_onednn", lambda weight: False)


@torch.no_grad()
@pytest.mark.parametrize("rows", [1, FEW_ROWS - 1, FEW_ROWS, 16, 17, 100])
@pytest.mark.parametrize("sizes", [(1, 1), (12, 5), (64, 1000)])
def test_both_libraries_compute_the_same(rows: int, sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    module, x, residual = nn.Linear(*sizes), torch.randn(rows, sizes[0]), torch.randn(rows, sizes[1])
    found = [Linear.of(module)]
    by_blas(monkeypatch)
    found.append(Linear.of(module))
    for linear in found:
        torch.testing.assert_close(linear(x), module(x), atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(linear.add_to(residual.clone(), x), residual + module(x), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_onednn_multiplies_many_rows_in_float32_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    if not weights._is_for_onednn(torch.empty(1)):
        pytest.skip("torch has no oneDNN for this processor")
    multiplied: list[int] = []
    packed = Linear._packed.func

    def noted(linear: Linear) -> Tensor:
        multiplied.append(linear.weight.size(0))
        return packed(linear)

    monkeypatch.setattr(Linear, "_packed", property(noted))
    for type_, rows, is_onednn in ((torch.float32, 4, True), (torch.float32, 3, False), (torch.float64, 4, False)):
        Linear.of(nn.Linear(D, 5).to(type_))(torch.randn(rows, D, dtype=type_))
        assert multiplied == [D] * is_onednn
        multiplied.clear()


@torch.no_grad()
@pytest.mark.parametrize("rows", [1, FEW_ROWS])
@pytest.mark.parametrize("bias", [True, False])
def test_forbidden_tokens_have_no_probability(rows: int, bias: bool) -> None:
    linear, y, forbidden = nn.Linear(D, 17, bias=bias), torch.randn(rows, D), torch.tensor([0, 7])
    expected = linear(y).index_fill(1, forbidden, float("-inf"))
    torch.testing.assert_close(output_layer(linear, forbidden)(y), expected, atol=1e-6, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("positions", get_args(Positions))
def test_a_model_is_the_same_by_either_library(positions: Positions, monkeypatch: pytest.MonkeyPatch) -> None:
    model, src, last = build(positions=positions), torch.randint(4, 17, (6, 5)), torch.full((6,), 2)
    found: list[Tensor] = []
    for _ in range(2):
        fast = FastTransformer(model)
        state = fast.encode(src)
        found.append(torch.stack([fast(last, position, state).clone() for position in range(3)]))
        by_blas(monkeypatch)
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("order", get_args(NormOrder))
@pytest.mark.parametrize("activation", get_args(Activation))
def test_a_feed_forward_network_with_its_residual_connection(order: NormOrder, activation: Activation) -> None:
    model = build(norm_order=order, activation=activation)
    layer, x = encoder_layer(model), torch.randn(4, D)
    expected = layer.feed_forward_residual(x, layer.feed_forward)
    found = FeedForward.of(layer.feed_forward, layer.feed_forward_residual, model.config)(x.clone())
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("positions", get_args(Positions))
def test_an_embedding_adds_its_positions(positions: Positions) -> None:
    module, ids = build(positions=positions).src_embedding, torch.randint(17, (2, 5))
    torch.testing.assert_close(Embedding.of(module)(ids), module(ids), atol=1e-6, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("order", get_args(NormOrder))
def test_the_norm_at_the_end_of_a_stack(order: NormOrder) -> None:
    module, x = build(norm_order=order).encoder.norm, torch.randn(4, D)
    norm = final_norm(module, order)
    assert (norm is None) == (order == "post")
    torch.testing.assert_close(x if norm is None else norm(x), module(x))


def fake(model: Transformer, **unknown: str) -> Transformer:
    """A model with a value that was added to the configuration after all else."""
    for name, value in unknown.items():
        object.__setattr__(model.config, name, value)
    return model


def test_a_choice_that_is_not_known_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"^norm_order 'sandwich' is not implemented here$"):
        FastTransformer(fake(build(), norm_order="sandwich"))


def test_each_kind_of_weights_refuses_by_itself() -> None:
    unknown: Any = "unheard-of"
    norm = encoder_layer(build()).feed_forward_residual.norm
    for attempt in (lambda: Norm.of(norm, unknown), lambda: final_norm(norm, unknown)):
        with pytest.raises(NotImplementedError, match="unheard-of"):
            attempt()


def test_weights_are_shared_where_they_need_not_be_arranged() -> None:
    model = build()
    tokens: Tensor = Embedding.of(model.src_embedding).tokens
    assert tokens.data_ptr() == model.src_embedding.tokens.weight.data_ptr()
