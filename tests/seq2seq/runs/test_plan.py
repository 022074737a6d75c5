"""How many steps a run has, when it begins, goes on, and has ended."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers.tiny_run import Recorder

from tfm.data.errors import UsageError
from tfm.seq2seq.runs.directory import RunDirectory
from tfm.seq2seq.runs.plan import Plan
from tfm.seq2seq.training.config import TrainingConfig

PLANNED = 5000


def plan(run: Path, **settings: Any) -> Plan:
    """A plan that has not begun."""
    defaults: dict[str, Any] = {"max_time": "20m", "max_steps": 1_000_000, "warmup_steps": 100}
    return Plan(RunDirectory(run), TrainingConfig(**defaults | settings), Recorder(), started=0.0)


def steps(run: Path, step: int, before: int | None, **settings: Any) -> int | None:
    """How many updates a run has that goes on at a step; None if that is still to be measured."""
    begun = plan(run, **settings)
    begun.begin(step, before)
    return begun.max_steps


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    """A run whose time limit has become a number of steps."""
    (tmp_path / "plan.json").write_text(json.dumps({"max_time": "20m", "max_steps": PLANNED}))
    return tmp_path


def test_a_time_limit_is_open_until_it_is_decided(tmp_path: Path) -> None:
    assert steps(tmp_path, 0, None) is None


def test_what_was_decided_stays(planned: Path) -> None:
    assert steps(planned, 100, PLANNED) == PLANNED


def test_a_number_of_steps_beside_the_time_limit_may_end_the_run_sooner(planned: Path) -> None:
    assert steps(planned, 100, PLANNED, max_steps=2000) == 2000
    assert steps(planned, 100, PLANNED, max_steps=8000) == PLANNED


def test_what_was_decided_is_refused_where_another_number_has_shaped_the_schedule(planned: Path) -> None:
    """It went on with --max-steps 8000, and now comes back to its time limit."""
    settings = {"schedule": "trapezoid", "decay_fraction": 0.5}
    assert steps(planned, 2500, 8000, **settings) == PLANNED
    with pytest.raises(UsageError, match="was planned for 8,000 steps"):
        steps(planned, 3500, 8000, **settings)


@pytest.mark.parametrize("schedule", ["trapezoid", "inverse_sqrt"])
def test_a_run_that_ended_before_its_time_was_measured_has_ended(tmp_path: Path, schedule: str) -> None:
    assert steps(tmp_path, 50, None, max_steps=50, schedule=schedule) == 50
