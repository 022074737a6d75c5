"""Softmax over short rows against torch's own: values, gradients, and the ranges where exp alone would fail."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tfm.seq2seq.model import softmax as softmax_module
from tfm.seq2seq.model.softmax import SHORT_ROW, softmax


def values_and_gradients(function: object, scores: Tensor, grad: Tensor) -> tuple[Tensor, Tensor]:
    leaf = scores.clone().requires_grad_()
    weights = function(leaf)  # pyright: ignore[reportCallIssue]
    weights.backward(grad)
    assert leaf.grad is not None
    return weights.detach(), leaf.grad


@settings(max_examples=40, deadline=None)
@given(
    rows=st.integers(1, 20),
    length=st.integers(2, SHORT_ROW - 1),
    spread=st.sampled_from([0.1, 3.0, 30.0]),
    masked=st.booleans(),
    seed=st.integers(0, 999),
)
def test_equals_torch(rows: int, length: int, spread: float, masked: bool, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(2, rows, length, generator=generator) * spread
    if masked:
        scores[..., length // 2 + 1 :] = float("-inf")
    grad = torch.randn(2, rows, length, generator=generator)
    fast = values_and_gradients(softmax, scores, grad)
    plain = values_and_gradients(lambda x: x.softmax(dim=-1), scores, grad)
    for one, other in zip(fast, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shift", [-1000.0, -95.0, 89.0, 1000.0])
def test_scores_beyond_the_range_of_exp(shift: float) -> None:
    scores = torch.randn(3, 7) + torch.tensor([[0.0], [shift], [0.0]])
    torch.testing.assert_close(softmax(scores), scores.softmax(dim=-1), rtol=1e-5, atol=1e-6)


def test_not_a_number_stays_one() -> None:
    scores = torch.randn(3, 7)
    scores[1, 2] = float("nan")
    assert softmax(scores)[1].isnan().all()


def test_bf16_is_within_its_rounding() -> None:
    scores = torch.randn(50, 15) * 3
    expected = scores.softmax(dim=-1)
    assert (softmax(scores.bfloat16()).float() - expected).abs().max() < 0.02


def test_long_rows_are_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(softmax_module, "ShortRowSoftmax", None)
    scores = torch.randn(2, SHORT_ROW)
    assert softmax(scores).equal(scores.softmax(dim=-1))
