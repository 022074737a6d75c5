"""How many steps a run has, when it begins, goes on, and has ended."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.tiny_run import Recorder

from tfm.engine.runs.directory import RunDirectory
from tfm.engine.training import plan as plan_module
from tfm.engine.training.plan import Plan
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.schedule import learning_rate
from tfm.system.errors import UsageError
from tfm.system.reporter import in_words

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


class Machine:
    """A clock, and updates that take as long as they are told; no time passes otherwise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(plan_module, "time", SimpleNamespace(monotonic=lambda: self.now))

    def validate(self) -> None:
        """Takes three seconds."""
        self.now += 3.0

    def train(self, run: Path, seconds_of: Callable[[float], float], **settings: Any) -> Plan:
        """Trains to the end of the time limit.

        Args:
            seconds_of: Says how long an update takes that begins at a time.
        """
        begun = plan(run, **settings)
        begun.begin(0, None)
        step = 0
        while step < begun.limit:
            step += 1
            self.now += seconds_of(self.now)
            begun.after_update(step, self.validate)
            if step % begun._config.validate_every == 0:
                with begun.timing_validation():
                    self.validate()
        return begun


MINUTES = 600.0
"""Ten of them, in seconds."""


@pytest.mark.parametrize("seconds_each", [0.9, 2.0, 7.0])
def test_a_time_too_short_for_the_updates_that_are_timed_is_kept_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds_each: float
) -> None:
    machine = Machine(monkeypatch)
    begun = machine.train(tmp_path, lambda now: seconds_each, max_time="50s", schedule="trapezoid", validate_every=500)
    assert 40 < machine.now + 3 <= 50 + seconds_each  # the last validation takes three seconds
    assert json.loads((tmp_path / "plan.json").read_text())["max_steps"] == begun.limit < plan_module.PLAN_STEP


@pytest.mark.parametrize(("schedule", "warmup"), [("trapezoid", 20), ("trapezoid", 100), ("inverse_sqrt", 4000)])
@pytest.mark.parametrize("seconds_each", [0.1, 0.5, 3.0])
def test_any_time_is_kept_whatever_the_warm_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds_each: float, schedule: str, warmup: int
) -> None:
    """A warm-up shorter than the updates that are timed, and one longer than all of them."""
    machine = Machine(monkeypatch)
    settings = {"max_time": "1m", "schedule": schedule, "warmup_steps": warmup, "validate_every": 500}
    begun = machine.train(tmp_path, lambda now: seconds_each, max_steps=None, **settings)
    assert 50 < machine.now + 3 <= 60 + max(seconds_each, 1.5)
    if begun.limit <= warmup and begun.limit < 200:
        assert begun.learning_rate(begun.limit) < begun.learning_rate(begun.limit // 2), "it falls at the end"


@pytest.mark.parametrize("fitting", [5, 30, 200])
def test_a_time_too_short_for_the_schedule_is_the_same_for_a_run_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fitting: int
) -> None:
    Machine(monkeypatch)  # no time passes
    monkeypatch.setattr(Plan, "_fitting", lambda self, seconds: (fitting, 0.5))
    monkeypatch.setattr(plan_module, "REVISE_EVERY", 1_000_000)
    settings = {"max_time": "1h", "max_steps": None, "schedule": "trapezoid", "warmup_steps": 20}
    begun, rates = plan(tmp_path, **settings), list[float]()
    begun.begin(0, None)
    while len(rates) < begun.limit:
        rates.append(begun.learning_rate(len(rates) + 1))
        begun.after_update(len(rates), lambda: None)
    assert len(rates) == 60 + fitting
    for step in (0, 60, 61, 64):
        again = plan(tmp_path, **settings)
        again.begin(step, None if step == 0 else begun.limit)
        found = rates[:step]
        while len(found) < again.limit:
            found.append(again.learning_rate(len(found) + 1))
            again.after_update(len(found), lambda: None)
        assert found == rates


@pytest.mark.parametrize("settings", [{"schedule": "cosine"}, {"schedule": "trapezoid", "decay_fraction": 1.0}])
def test_a_schedule_that_the_length_shapes_at_once_needs_a_warm_up(tmp_path: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"at least 60, but has 59; say --set training.warmup_steps=60"):
        plan(tmp_path, **settings, warmup_steps=59).begin(0, None)
    plan(tmp_path, **settings, warmup_steps=60).begin(0, None)


@pytest.mark.parametrize("slower", [1.5, 3.0])
@pytest.mark.parametrize("change", [0.2, 0.55, 0.8])
def test_a_run_that_will_be_late_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: float, slower: float
) -> None:
    """In the flat part it becomes shorter; in the falling part, or where it cannot be short enough, it is said."""
    machine = Machine(monkeypatch)
    settings = {"schedule": "trapezoid", "decay_fraction": 0.5, "max_time": "10m", "validate_every": 500}
    begun = machine.train(tmp_path, lambda now: 0.1 * (slower if now > change * MINUTES else 1), **settings)
    warned: list[str] = begun._reporter.warned  # pyright: ignore[reportAttributeAccessIssue]
    late = machine.now > 1.12 * MINUTES
    assert late == (change > 0.5 and (change, slower) != (0.8, 1.5))
    assert (1 <= len(warned) <= 3) if late else len(warned) <= 1
    if late:
        assert f"it will take about {in_words(machine.now)[:1]}" in warned[-1] and "not 10m" in warned[-1]
        assert "--finish-in" in warned[-1]
    assert len(begun._reporter.said) <= 4  # pyright: ignore[reportAttributeAccessIssue]


def test_a_run_in_time_warns_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    for number, slow in enumerate([1.0, 1.05, 0.5]):
        machine.now = 0.0
        settings = {"schedule": "trapezoid", "decay_fraction": 0.5, "max_time": "10m", "validate_every": 500}
        run = tmp_path / str(number)
        begun = machine.train(run, lambda now, slow=slow: 0.1 * (slow if now > 400 else 1), **settings)
        assert begun._reporter.warned == []  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("slower", [1.5, 4 / 3, 0.75])
@pytest.mark.parametrize(
    ("schedule", "decay_fraction"), [("trapezoid", 0.5), ("trapezoid", 0.6), ("inverse_sqrt", 0.5)]
)
def test_a_machine_that_changes_its_speed_in_the_flat_part_keeps_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedule: str, decay_fraction: float, slower: float
) -> None:
    """Half-way through the flat part updates begin to take longer, or less long."""
    machine, change = Machine(monkeypatch), (1 - decay_fraction) / 2 * MINUTES
    settings = {"schedule": schedule, "decay_fraction": decay_fraction, "max_time": "10m", "validate_every": 500}
    machine.train(tmp_path, lambda now: 0.1 * (slower if now > change else 1), **settings)
    assert machine.now == pytest.approx(MINUTES, rel=0.02)


def test_updates_so_far_have_the_learning_rates_of_the_number_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that grows slower all the time, far into the falling part, too."""
    machine = Machine(monkeypatch)
    config = {"schedule": "trapezoid", "decay_fraction": 0.5, "max_time": "10m"}
    begun, rates = plan(tmp_path, **config), list[float]()
    begun.begin(0, None)
    written: set[int] = set()
    while len(rates) < begun.limit:
        step = len(rates) + 1
        rates.append(learning_rate(step, begun._config, begun.limit))
        machine.now += 0.1 + step / 20_000
        begun.after_update(step, machine.validate)
        if begun._run.plan.exists():
            written.add(json.loads(begun._run.plan.read_text())["max_steps"])
    assert len(written) > 2
    assert json.loads(begun._run.plan.read_text())["max_steps"] == begun.limit == len(rates)
    assert rates == [learning_rate(step, begun._config, begun.limit) for step in range(1, len(rates) + 1)]


def test_a_steady_machine_revises_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, config = Machine(monkeypatch), {"schedule": "trapezoid", "max_time": "10m", "validate_every": 500}
    begun = machine.train(tmp_path, lambda now: 0.1 + 0.02 * (int(10 * now) % 3), **config)
    said = begun._reporter.said  # pyright: ignore[reportAttributeAccessIssue]
    assert len(said) == 1 and "is time for" in said[0]
    assert machine.now == pytest.approx(MINUTES, rel=0.01)


def test_updates_that_are_slow_by_turns_are_counted_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a quarter of the time on another program takes a turn in three of five updates."""
    machine, turns = Machine(monkeypatch), itertools.cycle([0.22, 0.12, 0.22, 0.12, 0.22])
    config = {"schedule": "trapezoid", "decay_fraction": 0.5, "max_time": "10m", "validate_every": 500}
    machine.train(tmp_path, lambda now: next(turns) if now > MINUTES / 4 else 0.12, **config)
    assert machine.now == pytest.approx(MINUTES, rel=0.03)


def test_a_slow_moment_does_not_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Just before the learning rate begins to fall another program takes half of the machine for ten seconds."""
    machine, config = Machine(monkeypatch), {"schedule": "trapezoid", "decay_fraction": 0.6, "max_time": "10m"}
    machine.train(tmp_path, lambda now: 0.2 if 225 < now < 235 else 0.1, validate_every=500, **config)
    assert machine.now == pytest.approx(MINUTES, rel=0.02)


def test_a_number_of_steps_beside_the_time_limit_can_be_lifted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit's own number is what is written."""
    settings = {"max_time": "10m", "validate_every": 500}
    capped = Machine(monkeypatch).train(tmp_path, lambda now: 0.1, max_steps=100, **settings)
    assert capped.limit == 100
    assert 5000 < (steps(tmp_path, 100, 100, max_steps=None, **settings) or 0) < 6000


def test_a_run_that_goes_on_keeps_the_number_that_is_written(planned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    begun = plan(planned, schedule="trapezoid")
    begun.begin(1000, PLANNED)
    for step in range(1001, 1200):
        machine.now += 100.0
        begun.after_update(step, machine.validate)
    assert begun.limit == PLANNED


def test_a_number_that_has_been_revised_since_a_checkpoint_is_taken(planned: Path) -> None:
    """Saved at step 1,000 of 4,000; then the machine became faster, and the power went."""
    assert steps(planned, 1000, 4000, schedule="trapezoid") == PLANNED


PATIENT: dict[str, Any] = {"max_time": None, "max_steps": None, "patience": 2, "schedule": "trapezoid"}


@pytest.mark.parametrize("decay_fraction", [0.2, 0.5, 0.6])
def test_where_validation_stops_improving_the_rate_begins_to_fall(tmp_path: Path, decay_fraction: float) -> None:
    """The shortest run whose rates so far were the same, so that the rate falls from the next update on."""
    begun = plan(tmp_path, **PATIENT, decay_fraction=decay_fraction)
    begun.begin(0, None)
    assert begun.max_steps is None
    assert not begun.fall(100), "the rate is still rising"
    rates = [learning_rate(step, begun._config, begun.limit) for step in range(1, 301)]
    assert begun.fall(300)
    assert rates == [learning_rate(step, begun._config, begun.limit) for step in range(1, 301)]
    assert learning_rate(301, begun._config, begun.limit) < learning_rate(300, begun._config, begun.limit)
    assert begun.max_steps == begun.limit
    assert begun.limit == pytest.approx(300 / (1 - decay_fraction), abs=4)
    assert not begun.fall(310), "it falls already"


def test_a_cap_stays_a_cap(tmp_path: Path) -> None:
    begun = plan(tmp_path, **PATIENT | {"max_steps": 500}, decay_fraction=0.5)
    begun.begin(0, None)
    assert begun.max_steps == 500
    assert not begun.fall(260), "the cap has made it fall"
    assert begun.fall(150) and begun.limit == pytest.approx(300, abs=4)


def test_a_run_whose_rate_falls_goes_on_to_the_same_end(tmp_path: Path) -> None:
    settings = PATIENT | {"decay_fraction": 0.5}
    begun = plan(tmp_path, **settings)
    begun.begin(0, None)
    begun.fall(300)
    again = plan(tmp_path, **settings)
    again.begin(350, begun.max_steps, 300)
    assert again.limit == begun.limit
    with pytest.raises(UsageError, match=r"was planned for \d+ steps"):
        plan(tmp_path, **settings | {"max_steps": 400}).begin(350, begun.max_steps, 300)
    with pytest.raises(UsageError, match="was planned for as long as validation improves"):
        plan(tmp_path, **settings | {"max_steps": 400}).begin(350, None)


def test_a_time_limit_is_a_cap_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is revised once the rate falls: a machine that becomes faster does not make the run longer."""
    machine = Machine(monkeypatch)
    begun = plan(tmp_path, **PATIENT | {"max_time": "10m"}, decay_fraction=0.5)
    begun.begin(0, None)
    for step in range(1, 700):
        machine.now += 0.1 if step < 310 else 0.01
        begun.after_update(step, machine.validate)
        if step == 300:
            assert begun.limit > 5000
            assert begun.fall(step)
    assert begun.limit == pytest.approx(600, abs=4)
    again = plan(tmp_path, **PATIENT | {"max_time": "10m"}, decay_fraction=0.5)
    again.begin(400, begun.limit, 300)
    assert again.limit == begun.limit


def test_a_time_that_ends_before_patience_does_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    settings = PATIENT | {"max_time": "10m", "decay_fraction": 0.5, "validate_every": 500}
    begun = machine.train(tmp_path, lambda now: 0.1, **settings)
    assert machine.now == pytest.approx(MINUTES, rel=0.02)
    assert not begun.fall(begun.limit - 1)


def test_a_run_that_began_without_a_time_does_not_get_one_under_way(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="began without a time limit, and a time limit would shape its trapezoid"):
        plan(tmp_path, **PATIENT | {"max_time": "1h"}).begin(150, None)


def test_a_run_that_ended_in_its_falling_part_before_its_time_was_measured_has_ended(tmp_path: Path) -> None:
    settings = {"schedule": "trapezoid", "decay_fraction": 0.03, "warmup_steps": 0, "max_steps": 50}
    assert steps(tmp_path, 50, None, **settings) == 50
