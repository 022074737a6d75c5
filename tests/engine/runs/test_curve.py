"""The picture of a run: drawn whatever the run was scored by, and however little it has logged."""

from typing import Any

import pytest

from tfm.engine.runs.log import learning_curve
from tfm.seq2seq.training.config import TrainingConfig

TRAIN: list[dict[str, Any]] = [{"kind": "train", "step": step, "loss": 5.0 / step} for step in (1, 2, 3)]


def validations(*names: str) -> list[dict[str, Any]]:
    return [{"kind": "validation", "step": step, "loss": 1.0} | dict.fromkeys(names, 10.0 * step) for step in (2, 3)]


@pytest.mark.parametrize(
    "records",
    [
        TRAIN,
        TRAIN[:1],
        TRAIN + validations(),
        TRAIN + validations("bleu", "chrf", "exact"),
        TRAIN + validations("retrieval"),
        TRAIN + validations("accuracy"),
    ],
)
def test_each_kind_of_run_is_drawn(records: list[dict[str, Any]]) -> None:
    assert learning_curve(records, TrainingConfig()).startswith(b"\x89PNG")
