"""The training loss: formula, torch's own, and the chunked path with its gradients."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from tfm.seq2seq.training import loss as loss_module
from tfm.seq2seq.training.loss import fused_linear_cross_entropy, label_smoothed_cross_entropy, training_loss

PAD = 0


def rows_and_labels(n: int, d: int, v: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(n, d, generator=generator)
    weight = torch.randn(v, d, generator=generator)
    bias = torch.randn(v, generator=generator)
    labels = torch.randint(0, v, (n,), generator=generator)  # some are padding
    return hidden, weight, bias, labels


def test_formula_written_out() -> None:
    logits, eps = [2.0, -1.0, 0.5], 0.3
    log_normaliser = math.log(sum(math.exp(z) for z in logits))
    log_p = [z - log_normaliser for z in logits]
    expected = -(1 - eps) * log_p[1] - eps * sum(log_p) / 3
    actual = label_smoothed_cross_entropy(torch.tensor([logits]), torch.tensor([1]), eps, PAD)
    assert actual.item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("eps", [0.0, 0.1, 0.9])
def test_equals_torch(eps: float) -> None:
    hidden, weight, _, labels = rows_and_labels(50, 8, 20)
    logits = hidden @ weight.T
    expected = F.cross_entropy(logits, labels, ignore_index=PAD, label_smoothing=eps, reduction="sum")
    torch.testing.assert_close(label_smoothed_cross_entropy(logits, labels, eps, PAD), expected)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 40), v=st.integers(2, 30), chunk=st.integers(1, 50), eps=st.sampled_from([0.0, 0.1, 0.5]),
    with_bias=st.booleans(), may_wait=st.booleans(), seed=st.integers(0, 999),
)  # fmt: skip
def test_chunked_loss_and_gradients_equal_the_plain_ones(
    n: int, v: int, chunk: int, eps: float, with_bias: bool, may_wait: bool, seed: int
) -> None:
    hidden, weight, bias, labels = rows_and_labels(n, 6, v, seed)
    scale = 1 / 7  # as if normalised by tokens afterwards
    gradients: list[list[Tensor | None]] = []
    losses: list[Tensor] = []
    for fused in (False, True):
        leaves = [tensor.clone().requires_grad_() for tensor in (hidden, weight, bias)]
        b = leaves[2] if with_bias else None
        if fused:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(loss_module, "CHUNK_ROWS" if may_wait else "LARGE_CHUNK_ROWS", chunk)
                loss = fused_linear_cross_entropy(leaves[0], leaves[1], b, labels, eps, PAD, may_wait=may_wait)
        else:
            loss = label_smoothed_cross_entropy(F.linear(leaves[0], leaves[1], b), labels, eps, PAD)
        losses.append(loss.detach())
        (loss * scale).backward()
        gradients.append([leaf.grad for leaf in leaves])
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-5, atol=1e-5)
    for plain, chunked in zip(*gradients, strict=True):
        if plain is not None:
            torch.testing.assert_close(chunked, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("may_wait", [True, False])
def test_bf16_products_stay_close(may_wait: bool) -> None:
    hidden, weight, _, labels = rows_and_labels(300, 64, 100)
    hidden, weight = (hidden / 8).requires_grad_(), (weight / 8).requires_grad_()
    exact = fused_linear_cross_entropy(hidden, weight, None, labels, 0.1, PAD)
    exact_gradients = torch.autograd.grad(exact, [hidden, weight])
    rough = fused_linear_cross_entropy(hidden.bfloat16(), weight, None, labels, 0.1, PAD, may_wait=may_wait)
    rough_gradients = torch.autograd.grad(rough, [hidden, weight])
    torch.testing.assert_close(rough, exact, rtol=2e-3, atol=0)
    for one, other in zip(rough_gradients, exact_gradients, strict=True):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.01 * other.norm()


@pytest.mark.parametrize("may_wait", [True, False])
def test_a_target_whose_probability_underflows_has_its_finite_loss(may_wait: bool) -> None:
    hidden, weight = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 0.0], [-200.0, 0.0], [1.0, 0.0]])
    labels = torch.tensor([1])
    fused = fused_linear_cross_entropy(hidden, weight, None, labels, 0.1, PAD, may_wait=may_wait)
    torch.testing.assert_close(fused, label_smoothed_cross_entropy(hidden @ weight.T, labels, 0.1, PAD))
    assert fused.item() > 180


@pytest.mark.parametrize("may_wait", [True, False])
def test_padding_costs_nothing_and_gets_no_gradient(may_wait: bool) -> None:
    hidden, weight, _, labels = rows_and_labels(10, 4, 9)
    labels[3:] = PAD
    hidden.requires_grad_()
    loss = fused_linear_cross_entropy(hidden, weight, None, labels, 0.1, PAD, may_wait=may_wait)
    loss.backward()
    alone = label_smoothed_cross_entropy(hidden[:3] @ weight.T, labels[:3], 0.1, PAD)
    torch.testing.assert_close(loss, alone)
    assert hidden.grad is not None
    assert not hidden.grad[3:].any()


def test_training_loss_sums_over_a_padded_batch() -> None:
    layer = torch.nn.Linear(5, 12)
    hidden, targets = torch.randn(3, 4, 5), torch.randint(0, 12, (3, 4))
    expected = F.cross_entropy(
        layer(hidden).flatten(0, 1), targets.flatten(), ignore_index=PAD, label_smoothing=0.1, reduction="sum"
    )
    torch.testing.assert_close(training_loss(hidden, layer, targets, 0.1), expected)
