"""The contrastive loss: the formula in plain Python, what is no negative, what a batch gives it."""

import math
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.encoder_only import EncoderOnly
from tfm.seq2seq.training.contrastive import ContrastiveLoss, contrastive_loss, equal_rows

Vectors = Sequence[Sequence[float]]


def unit_vectors(n: int, seed: int) -> Tensor:
    vectors = torch.randn(n, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return vectors / vectors.norm(dim=1, keepdim=True)


def written_out(x: Vectors, y: Vectors, same: Sequence[Sequence[bool]], temperature: float) -> float:
    """The formula, term by term."""
    n = len(x)
    scores = [[sum(a * b for a, b in zip(x[i], y[j], strict=True)) / temperature for j in range(n)] for i in range(n)]
    total = 0.0
    for i in range(n):
        allowed = [j for j in range(n) if j == i or not same[i][j]]
        total -= scores[i][i] - math.log(sum(math.exp(scores[i][j]) for j in allowed))
        total -= scores[i][i] - math.log(sum(math.exp(scores[j][i]) for j in allowed))
    return total / 2


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_it_is_the_formula(temperature: float) -> None:
    x, y = unit_vectors(6, 1), unit_vectors(6, 2)
    same = torch.eye(6, dtype=torch.bool)
    same[1, 4] = same[4, 1] = True
    expected = written_out(x.tolist(), y.tolist(), same.tolist(), temperature)
    assert contrastive_loss(x, y, same, temperature).item() == pytest.approx(expected, rel=1e-9)


def test_partners_that_agree_cost_little_and_strangers_much() -> None:
    x, alone = torch.eye(4), torch.eye(4, dtype=torch.bool)
    assert contrastive_loss(x, x, alone, 0.05).item() < 1e-6
    assert contrastive_loss(x, x.roll(1, dims=0), alone, 0.05).item() == pytest.approx(4 * 20, rel=1e-3)
    assert contrastive_loss(x[:1], x[:1], alone[:1, :1], 0.05).item() == 0  # no negatives, nothing to learn


def test_sentences_that_occur_twice_are_not_each_others_negatives() -> None:
    """Twins cost nothing: each finds the other's partner, which is as good as its own."""
    x = torch.eye(3)[[0, 1, 1]]
    same = equal_rows(torch.tensor([[5, 3], [6, 3], [6, 3]]))
    assert contrastive_loss(x, x, same, 0.05).item() < 1e-6
    assert contrastive_loss(x, x, torch.eye(3, dtype=torch.bool), 0.05).item() == pytest.approx(2 * math.log(2))


def test_equal_rows_are_found_wherever_they_stand() -> None:
    ids = torch.tensor([[7, 3, 0], [7, 8, 3], [7, 3, 0], [8, 7, 3]])
    expected = [[i == j or {i, j} == {0, 2} for j in range(4)] for i in range(4)]
    assert equal_rows(ids).tolist() == expected


def test_of_a_batch_it_compares_sources_with_targets_and_counts_pairs() -> None:
    torch.manual_seed(0)
    config = ModelConfig(
        architecture="encoder_only", d_model=16, d_ff=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=0
    )
    model = EncoderOnly(config, vocab_size=13).eval()
    src = torch.tensor([[5, 6, 3], [7, 3, 0], [5, 6, 3], [9, 10, 3]])
    tgt = torch.tensor([[8, 3, 0, 0], [8, 3, 0, 0], [4, 5, 6, 3], [12, 11, 3, 0]])
    loss, count = ContrastiveLoss()(model, SimpleNamespace(src=src, tgt_out=tgt))
    same = [[i == j or {i, j} in ({0, 1}, {0, 2}) for j in range(4)] for i in range(4)]
    expected = written_out(model.embed(src).tolist(), model.embed(tgt).tolist(), same, 0.05)
    assert count == 4
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    loss.backward()
    assert model.log_temperature.grad is not None and model.log_temperature.grad.item() != 0
