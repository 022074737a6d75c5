"""Settings of a training that do not go together are refused, each with its reason."""

from typing import Any

import pytest

from tfm.seq2seq.training.config import TrainingConfig

PATIENT: dict[str, Any] = {"patience": 3, "schedule": "trapezoid"}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"max_steps": None}, "max_steps must be given where there is neither max_time nor patience"),
        ({"patience": 3}, "patience needs the trapezoid schedule, but schedule is inverse_sqrt"),
        (PATIENT | {"decay_fraction": 1.0}, "patience needs a flat part, and with decay_fraction 1 there is none"),
        (PATIENT | {"early_stopping": 2}, "patience and early_stopping both end a run; leave one of them at 0"),
        (PATIENT | {"patience": -1}, "patience must be at least 0"),
    ],
)
def test_what_does_not_go_together_is_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        TrainingConfig(**settings)


@pytest.mark.parametrize("settings", [{"max_steps": None}, {"max_steps": None, "max_time": "20m"}, {"max_steps": 10}])
def test_patience_goes_with_and_without_a_cap(settings: dict[str, Any]) -> None:
    assert TrainingConfig(**PATIENT | settings).patience == 3
