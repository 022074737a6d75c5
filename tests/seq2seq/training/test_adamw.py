"""AdamW against torch's own."""

import pytest
import torch
from helpers.beside_torch import make_updates, parameters

from tfm.seq2seq.training.optimizer import AdamW

SHAPES = [(5, 7), (7,), (3, 3, 2)]


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_equals_torchs_own_to_the_last_bit(weight_decay: float) -> None:
    ours, torchs = parameters(SHAPES), parameters(SHAPES)
    optimizer = AdamW([{"params": ours, "lr": 0.02, "weight_decay": weight_decay}], betas=(0.9, 0.98), eps=1e-9)
    reference = torch.optim.AdamW(torchs, lr=0.02, betas=(0.9, 0.98), eps=1e-9, weight_decay=weight_decay, fused=True)
    make_updates(ours, optimizer, torchs, reference)
    for one, other in zip(ours, torchs, strict=True):
        assert torch.equal(one, other)
        assert optimizer.state[one].keys() == reference.state[other].keys()
        for name, value in reference.state[other].items():
            assert torch.equal(optimizer.state[one][name], value)


def test_a_parameter_without_a_gradient_stays_as_it_is() -> None:
    ours = parameters(SHAPES)
    before = [parameter.detach().clone() for parameter in ours]
    ours[0].grad = torch.ones_like(ours[0])
    optimizer = AdamW([{"params": ours, "lr": 0.1, "weight_decay": 0.5}], betas=(0.9, 0.98), eps=1e-9)
    optimizer.step()
    assert not torch.equal(ours[0], before[0])
    assert torch.equal(ours[1], before[1])
    assert list(optimizer.state) == [ours[0]]
