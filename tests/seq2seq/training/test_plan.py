"""How many steps a run has, when it begins, goes on, and has ended."""

import json
from pathlib import Path
from typing import Any

import pytest

from tfm.data.errors import UsageError
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.plan import Plan

from .conftest import Recorder

PLANNED = 5000


def plan(run: Path, **settings: Any) -> Plan:
    defaults: dict[str, Any] = {"max_time": "20m", "max_steps": 1_000_000, "warmup_steps": 100}
    return Plan(run, TrainingConfig(**defaults | settings), Recorder(), started=0.0)


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A run whose time limit has become a number of steps."""
    (tmp_path / "plan.json").write_text(json.dumps({"max_time": "20m", "max_steps": PLANNED}))
    return tmp_path


def test_a_time_limit_is_open_until_it_is_decided(tmp_path: Path) -> None:
    assert plan(tmp_path).steps(0, None) is None


def test_what_was_decided_stays(planned: Path) -> None:
    assert plan(planned).steps(100, PLANNED) == PLANNED


def test_a_number_of_steps_beside_the_time_limit_may_end_the_run_sooner(planned: Path) -> None:
    assert plan(planned, max_steps=2000).steps(100, PLANNED) == 2000
    assert plan(planned, max_steps=8000).steps(100, PLANNED) == PLANNED


def test_what_was_decided_is_refused_where_another_number_has_shaped_the_schedule(planned: Path) -> None:
    """It went on with --max-steps 8000, and now comes back to its time limit."""
    settings = {"schedule": "trapezoid", "decay_fraction": 0.5}
    assert plan(planned, **settings).steps(2500, 8000) == PLANNED
    with pytest.raises(UsageError, match="was planned for 8,000 steps"):
        plan(planned, **settings).steps(3500, 8000)


@pytest.mark.parametrize("schedule", ["trapezoid", "inverse_sqrt"])
def test_a_run_that_ended_before_its_time_was_measured_has_ended(tmp_path: Path, schedule: str) -> None:
    assert plan(tmp_path, max_steps=50, schedule=schedule).steps(50, None) == 50
