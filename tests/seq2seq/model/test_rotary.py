"""Rotary positions, beside the matrices of Su et al. (2021), and what they are for: products that know distances."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.numpy_transformer import rotated
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from tfm.seq2seq.model.attention import MultiHeadAttention
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.model.rotary import RotaryPositions

B, H, T, d_k = 2, 3, 9, 6


def at(x: Tensor, position: int) -> Tensor:
    """A vector (d_k,), turned as at a position."""
    places = torch.tensor([[position]])
    return RotaryPositions(100, d_k).double()(x.double()[None, None, None], places)[0, 0, 0]


def test_it_multiplies_by_the_matrices_of_the_paper() -> None:
    x = torch.randn(B, H, T, d_k)
    expected = torch.from_numpy(rotated(x.double().numpy()))
    torch.testing.assert_close(RotaryPositions(T, d_k)(x).double(), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(RotaryPositions(4, d_k)(x).double(), expected, atol=1e-6, rtol=0)  # beyond the table


def test_its_gradient_is_that_of_finite_differences() -> None:
    rotary, x = RotaryPositions(T, d_k).double(), torch.randn(B, T, H, d_k).double().transpose(1, 2).requires_grad_()
    assert torch.autograd.gradcheck(rotary, x)
    assert torch.autograd.gradcheck(rotary, (x, torch.randint(T, (B, T))))


def test_positions_may_be_given_for_each_sentence() -> None:
    x, rotary = torch.randn(B, H, T, d_k), RotaryPositions(T, d_k)
    assert rotary(x, torch.arange(T).expand(B, T)).equal(rotary(x))
    order = torch.stack([torch.randperm(T), torch.randperm(T)])
    for turned, places, row in zip(rotary(x, order), order, x, strict=True):
        torch.testing.assert_close(turned, rotary(row[:, places.argsort()][None])[0][:, places], atol=1e-6, rtol=0)


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 99))
def test_a_product_depends_on_the_distance_alone(m: int, n: int, further: int, seed: int) -> None:
    q, k = torch.randn(2, d_k, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(at(q, m) @ at(k, n), at(q, m + further) @ at(k, n + further), atol=1e-5, rtol=0)
    torch.testing.assert_close(at(q, m).norm(), q.double().norm(), atol=1e-5, rtol=0)


def test_gradients_are_turned_back() -> None:
    x = torch.randn(B, H, T, d_k, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(RotaryPositions(T, d_k).double(), x)


def test_half_precision_is_turned_in_float32() -> None:
    x, rotary = torch.randn(B, H, T, d_k).bfloat16(), RotaryPositions(T, d_k)
    turned = rotary(x)
    assert turned.dtype == torch.bfloat16
    assert turned.equal(rotary(x.float()).bfloat16())


@torch.no_grad()
@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_self_attention_knows_the_order_and_cross_attention_does_not(
    build_model: Callable[..., Transformer], norm_order: str
) -> None:
    model, src = build_model(positions="rotary", norm_order=norm_order), torch.arange(1, 10)[None]
    shuffle = torch.randperm(9)
    assert not torch.allclose(model.encode(src[:, shuffle]), model.encode(src)[:, shuffle], atol=1e-3)
    for module in model.modules():
        if isinstance(module, RotaryPositions):
            module.table.copy_(F.pad(torch.zeros(*module.table.shape[:2], 1), (1, 0), value=1))  # no angle at all
    torch.testing.assert_close(model.encode(src[:, shuffle]), model.encode(src)[:, shuffle], atol=1e-5, rtol=0)
    turning = {name for name, module in model.named_modules() if isinstance(module, RotaryPositions)}
    assert turning == {f"{stack}.layers.{i}.self_attn.rotary" for stack in ("encoder", "decoder") for i in range(2)}


@torch.no_grad()
@pytest.mark.parametrize("shifted", [False, True])
def test_attention_turns_its_queries_and_keys_however_it_is_called(shifted: bool) -> None:
    """softmax(R(x W^Q) R(x W^K)^T / sqrt(d_k)) x W^V, R by the formula written inline."""
    sizes: dict[str, Any] = {"d_model": 16, "num_heads": 2, "d_k": d_k, "d_v": 3, "bias": True, "output_bias": True}
    module = MultiHeadAttention(**sizes, dropout=0.0, rotary=RotaryPositions(3 * T, d_k))
    x, places = torch.randn(B, T, 16), torch.arange(T) * (3 if shifted else 1)
    projections = module.q_proj, module.k_proj, module.v_proj
    q, k, v = (projection(x).unflatten(2, (2, -1)).transpose(1, 2) for projection in projections)
    angles = places[:, None] / 10_000 ** (torch.arange(0, d_k, 2) / d_k)
    cos, sin = angles.cos(), angles.sin()

    def turned(x: Tensor) -> Tensor:
        a, b = x[..., ::2], x[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(3)

    weights = (turned(q) @ turned(k).mT / math.sqrt(d_k)).softmax(dim=-1)
    expected = module.out_proj((weights @ v).transpose(1, 2).flatten(2))
    positions = places.expand(B, T) if shifted else None
    for source in (x, x.clone()):  # one product for queries, keys and values, and three
        torch.testing.assert_close(module(x, source, None, positions), expected, atol=1e-5, rtol=0)
    with pytest.raises(RuntimeError):  # distances between two sequences mean nothing
        module(x, torch.randn(B, T + 1, 16))


@torch.no_grad()
def test_a_target_that_stands_further_back_is_read_the_same(build_model: Callable[..., Transformer]) -> None:
    """Where a sequence begins does not matter to self-attention, unlike with sinusoids."""
    layer = build_model(positions="rotary").encoder.layers[0]
    x, places = torch.randn(B, T, 16), torch.arange(T).expand(B, T)
    torch.testing.assert_close(layer(x, None, places + 7), layer(x, None, places), atol=1e-5, rtol=0)
    assert not torch.allclose(layer(x, None, places * 2), layer(x, None, places), atol=1e-3)


@torch.no_grad()
def test_a_model_reads_more_than_max_seq_len(build_model: Callable[..., Transformer]) -> None:
    short, long = (build_model(positions="rotary", max_seq_len=length) for length in (4, 32))
    src, tgt = torch.randint(1, 11, (2, 9)), torch.randint(1, 13, (2, 9))
    assert short(src, tgt).equal(long(src, tgt))
