"""Top-1 retrieval against a search by brute force."""

import math

import pytest
import torch

from tfm.engine.evaluation import retrieval
from tfm.engine.evaluation.retrieval import top_1


def test_it_is_a_search_by_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval, "_ROWS", 7)  # several blocks, the last one not full
    torch.manual_seed(0)
    x = torch.nn.functional.normalize(torch.randn(40, 6), dim=1)
    y = torch.nn.functional.normalize(x + 0.6 * torch.randn(40, 6), dim=1)
    keys = torch.arange(40)
    found = top_1(x, y, keys, keys)
    forward = sum(max(range(40), key=lambda j: float(x[i] @ y[j])) == i for i in range(40))
    backward = sum(max(range(40), key=lambda j: float(y[i] @ x[j])) == i for i in range(40))
    assert 0 < backward < 40 and forward != backward
    assert (found.src_to_tgt, found.tgt_to_src) == (100 * forward / 40, 100 * backward / 40)
    assert found.mean == pytest.approx(100 * (forward + backward) / 80)


def test_the_partner_of_an_equal_sentence_is_right_too() -> None:
    x = torch.eye(3)
    y = torch.eye(3)[[1, 0, 2]]  # pairs 0 and 1 find each other's targets
    own = torch.arange(3)
    assert top_1(x, y, own, own).mean == pytest.approx(100 / 3)
    twins = torch.tensor([7, 7, 2])
    assert top_1(x, y, twins, own).mean == top_1(x, y, own, twins).mean == 100


def test_of_nothing_it_is_not_a_number() -> None:
    none = torch.empty(0, dtype=torch.long)
    assert math.isnan(top_1(torch.empty(0, 3), torch.empty(0, 3), none, none).mean)
