"""Muon against torch's own, and what orthogonalising means."""

import pytest
import torch
from helpers.beside_torch import make_updates, parameters
from torch import nn

from tfm.seq2seq.model import ModelConfig, Transformer
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.muon import Muon, orthogonalise
from tfm.seq2seq.training.optimizer import Optimizer

SHAPES = [(8, 8), (8, 8), (8, 8), (6, 10), (10, 6), (10, 6)]


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_equals_torchs_own(weight_decay: float) -> None:
    ours, torchs = parameters(SHAPES), parameters(SHAPES)
    optimizer = Muon([{"params": ours, "lr": 0.02, "weight_decay": weight_decay}], dtype=torch.bfloat16)
    reference = torch.optim.Muon(torchs, lr=0.02, weight_decay=weight_decay, momentum=0.95)
    make_updates(ours, optimizer, torchs, reference)
    for one, other in zip(ours, torchs, strict=True):
        # both iterate in bf16; five updates of 0.02 each
        torch.testing.assert_close(one, other, rtol=0, atol=5e-3)


def test_singular_values_come_near_1() -> None:
    matrices = torch.randn(4, 12, 30)
    values = torch.linalg.svdvals(orthogonalise(matrices))
    assert values.min() > 0.6
    assert values.max() < 1.3


def with_singular_values(values: torch.Tensor) -> torch.Tensor:
    """A random matrix of these."""
    size = len(values)
    u, v = (torch.linalg.qr(torch.randn(size, size, dtype=torch.float64)).Q for _ in range(2))
    return u * values @ v.T


def test_singular_values_that_are_not_too_small_come_near_1() -> None:
    """0.0016 of the Frobenius norm is enough."""
    values = torch.logspace(-2.795, 0, 1000, dtype=torch.float64)  # from 0.0016 on
    for part in values.split(4):
        rest = (1 - part.square().sum()).clamp(min=0).sqrt()  # to a Frobenius norm of 1
        matrix = with_singular_values(torch.cat([part, rest[None]]))
        share = torch.linalg.svdvals(matrix) / matrix.norm()
        found = torch.linalg.svdvals(orthogonalise(matrix[None].clone())[0])
        enough = int((share >= 0.0016).sum())
        assert enough >= 3
        assert found.sort(descending=True).values[:enough].min() > 0.67
        assert found.max() < 1.21


def test_smaller_singular_values_stay_smaller() -> None:
    """They grow by a factor of 3.4445 in each of five rounds, at most."""
    small = torch.logspace(-8, -4, 9, dtype=torch.float64)
    matrix = with_singular_values(torch.cat([torch.ones(1, dtype=torch.float64), small.flip(0)]))
    found = torch.linalg.svdvals(orthogonalise(matrix[None])[0])
    grown = found[1:] / torch.linalg.svdvals(matrix)[1:]
    assert found[1] < 0.05
    torch.testing.assert_close(grown, torch.full((9,), 3.4445**5, dtype=torch.float64), rtol=2e-3, atol=0)
    assert grown.max() < 3.4445**5 * (1 + 1e-6)


def test_of_random_matrices_only_square_ones_have_values_that_stay_small() -> None:
    torch.manual_seed(0)
    square = torch.linalg.svdvals(orthogonalise(torch.randn(4, 512, 512)))
    wide = torch.linalg.svdvals(orthogonalise(torch.randn(1, 512, 2048)))
    assert 0.01 < (square < 0.67).float().mean() < 0.04
    assert wide.min() > 0.67


def test_singular_vectors_stay() -> None:
    (matrix,) = matrices = torch.randn(1, 5, 9, dtype=torch.float64)
    u, _, vh = torch.linalg.svd(matrix, full_matrices=False)
    rotated = u.T @ orthogonalise(matrices)[0] @ vh.T
    assert (rotated - rotated.diag().diag()).abs().max() < 1e-9


def test_a_gradient_of_zeros_moves_nothing() -> None:
    (parameter,) = [nn.Parameter(torch.ones(3, 4))]
    parameter.grad = torch.zeros(3, 4)
    Muon([{"params": [parameter], "lr": 0.02, "weight_decay": 0.0}]).step()
    assert parameter.equal(torch.ones(3, 4))


def test_muon_takes_the_matrices_of_the_layers_and_adamw_the_rest() -> None:
    config = ModelConfig(d_model=8, d_ff=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, max_seq_len=8)
    model = Transformer(config, src_vocab_size=9, tgt_vocab_size=9, shared_vocab=True)
    optimizer = Optimizer(model, TrainingConfig(optimizer="muon", learning_rate=1e-3, muon_learning_rate=0.02))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    adamw, muon = ({names[id(p)] for p in group["params"]} for group in optimizer.param_groups)  # pyright: ignore[reportGeneralTypeIssues]
    assert muon == {name for name, p in model.named_parameters() if ".layers." in name and p.dim() == 2}
    assert "src_embedding.tokens.weight" in adamw
    assert adamw | muon == set(names.values())
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step(0.5e-3)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.5e-3, 0.01])
