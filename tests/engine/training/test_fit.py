"""The course of a run: what happens between two updates, and in which order."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.fixed_batches import FixedBatches, batch, build_model, make_trainer
from helpers.tiny_run import Recorder

from tfm.engine.runs.directory import RunDirectory
from tfm.engine.training import fit as fit_module
from tfm.engine.training import plan as plan_module
from tfm.engine.training.fit import fit
from tfm.engine.training.plan import PLAN_STEP, Plan
from tfm.engine.training.run import Run
from tfm.engine.workers.ranks import Ranks
from tfm.system.errors import Interrupted, InterruptedAtOnce, TrainingDiverged
from tfm.system.files import read_sealed
from tfm.system.interrupts import Interrupts


@dataclass
class Watched:
    """A run of a tiny model over one batch, and what it says, logs and saves."""

    run: Run
    said: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    logged: list[dict[str, Any]] = field(default_factory=list)
    saved: list[int] = field(default_factory=list)


MakeRun = Callable[..., Watched]


@pytest.fixture
def make_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeRun:
    """Makes a run whose validations give what they are told to, and whose saves are counted, not written."""

    def make(
        validate: Callable[[], dict[str, Any]] = lambda: {"score": 0.0}, *, step: int = 0, **settings: Any
    ) -> Watched:
        trainer = make_trainer(build_model(), FixedBatches(batch(0)), **settings)
        trainer.progress.step = step
        directory, recorder = RunDirectory(tmp_path), Recorder()
        plan = Plan(directory, trainer.config, recorder, started=time.monotonic())
        plan.begin(step, None)
        watched = Watched(None)  # pyright: ignore[reportArgumentType]
        watched.said, watched.warned = recorder.said, recorder.warned
        log: Any = SimpleNamespace(
            record=lambda record, progress: watched.logged.append(record), after_update=lambda *_: None
        )
        unused: Any = None
        nothing: Any = SimpleNamespace(purpose="nothing")
        setup: Any = SimpleNamespace(ranks=Ranks())
        watched.run = Run(directory, unused, unused, nothing, setup, plan, trainer, log, recorder, Interrupts(), None)  # pyright: ignore[reportArgumentType]
        watched.run.validator = lambda model, step: validate()
        monkeypatch.setattr(fit_module, "save", lambda run: watched.saved.append(run.progress.step))
        return watched

    return make


def steps_that_fit(monkeypatch: pytest.MonkeyPatch, run: Run, steps: int) -> None:
    """Lets the time limit be worth so many steps, always."""
    monkeypatch.setattr(run.plan, "_fitting", lambda seconds: (steps - run.progress.step, 0.5))


def test_it_logs_what_the_updates_say(make_run: MakeRun) -> None:
    watched = make_run(max_steps=12, log_every=5)
    fit(watched.run)
    logged = [record for record in watched.logged if record["kind"] == "train"]
    assert [record["step"] for record in logged] == [5, 10]
    assert logged[0].keys() == {"step", "kind", "epoch", "loss", "lr", "grad_norm", "tokens"}
    assert logged[1]["tokens"] == 2 * logged[0]["tokens"]


def test_a_time_limit_is_turned_into_steps_and_nothing_is_saved_before(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = make_run(max_time="1h", max_steps=None, checkpoint_every=10)
    steps_that_fit(monkeypatch, watched.run, PLAN_STEP + 5)
    fit(watched.run)
    assert watched.run.progress.step == PLAN_STEP + 5
    assert watched.saved == [PLAN_STEP, PLAN_STEP + 5]
    assert read_sealed(tmp_path / "plan.json") == {"max_time": "1h", "max_steps": PLAN_STEP + 5}


def test_a_validation_left_at_once_saves_nothing(make_run: MakeRun) -> None:
    """A second Ctrl-C may come while averages and weights are being exchanged."""

    def leave() -> dict[str, Any]:
        raise InterruptedAtOnce("interrupted")

    watched = make_run(leave, validate_every=2, max_steps=4)
    with pytest.raises(InterruptedAtOnce):
        fit(watched.run)
    assert watched.saved == []


def test_a_validation_that_is_stopped_saves_first(make_run: MakeRun) -> None:
    def stop() -> dict[str, Any]:
        raise Interrupted("stopped during validation", 2)

    watched = make_run(stop, validate_every=2, max_steps=4)
    with pytest.raises(Interrupted, match="stopped during validation") as caught:
        fit(watched.run)
    assert watched.saved == [2] and caught.value.signal_number == 2


def test_a_pause_is_not_counted_as_part_of_a_step(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop is closed for a while."""
    pause, pauses = 1000.0, list[float]()  # seconds
    monkeypatch.setattr(plan_module, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + sum(pauses)))
    run = make_run(max_time="2h", max_steps=PLAN_STEP + 1, validate_every=1000).run
    log: Any = run.log
    log.after_update = lambda progress, *_: pauses.append(pause) if progress.step == 50 else None
    seen: list[float] = []
    fitting = run.plan._fitting
    monkeypatch.setattr(run.plan, "_fitting", lambda step: seen.append(fitting(step)[1]) or fitting(step))
    fit(run)
    assert len(pauses) == 1 and 0 < seen[0] < pause / PLAN_STEP


def test_nothing_is_the_best_that_may_not_be_saved(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes on at step 15 with a time limit: until that is a number of steps it saves nothing."""
    watched = make_run(step=15, max_time="1h", max_steps=1000, validate_every=10)
    watched.run.validator = lambda model, step: {"score": -step}  # the earliest is the best
    steps_that_fit(monkeypatch, watched.run, 15 + PLAN_STEP + 10)
    fit(watched.run)
    assert watched.run.progress.best_step in watched.saved


def test_a_run_under_way_is_timed_before_its_length_is_planned(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on with a time limit from step 100, say."""
    run = make_run(step=100, max_time="1h", max_steps=1000).run
    steps_that_fit(monkeypatch, run, 100 + PLAN_STEP + 5)
    fit(run)
    assert run.progress.step == 100 + PLAN_STEP + 5


@pytest.mark.parametrize(("looks", "saved"), [(30, False), (PLAN_STEP + 2, True)])
def test_stopped_before_its_length_is_known_it_says_what_is_lost(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, looks: int, saved: bool
) -> None:
    run = make_run(max_time="1h", max_steps=1000).run
    steps_that_fit(monkeypatch, run, 100)
    update = run.trainer.update

    def update_and_stop(rate: float) -> Any:
        figures = update(rate)
        run.interrupts.received = 2 if run.progress.step == looks else None
        return figures

    run.trainer.update = update_and_stop
    with pytest.raises(Interrupted, match=f"stopped after step {looks}") as caught:
        fit(run)
    assert ("not saved" in str(caught.value)) == (not saved)


def test_a_run_that_ends_before_it_is_timed_is_saved(make_run: MakeRun) -> None:
    watched = make_run(max_time="1h", max_steps=7)
    fit(watched.run)
    assert watched.saved == [7] and watched.run.plan.max_steps is None


def make_patient_run(make_run: MakeRun, losses: list[float], **settings: Any) -> Watched:
    """A run with a patience of 2 whose validations, every 5 steps, have these losses."""
    following = iter(losses)
    patient = {"max_steps": None, "patience": 2, "schedule": "trapezoid", "decay_fraction": 0.5, "validate_every": 5}
    return make_run(lambda: {"loss": next(following), "score": 0.0}, **patient | {"log_every": 1} | settings)


def rates_of(watched: Watched) -> list[float]:
    return [record["lr"] for record in watched.logged if record["kind"] == "train"]


def test_the_rate_falls_when_the_validation_loss_has_not_fallen_for_so_long(make_run: MakeRun) -> None:
    """Losses of validations at steps 5, 10, ..: the lowest is at 15, so two later patience ends."""
    watched = make_patient_run(make_run, [3.0, 2.0, 1.0, 1.0, 1.5, *[0.5] * 20])
    fit(watched.run)
    progress = watched.run.progress
    assert (progress.falling_since, progress.step) == (25, watched.run.plan.limit)
    assert progress.step == pytest.approx(50, abs=4)
    rates = rates_of(watched)
    assert rates[24] == max(rates) > rates[25] and rates[25:] == sorted(rates[25:], reverse=True)
    assert rates[-1] < 0.1 * rates[24]
    assert watched.said == [
        "the validation loss has not fallen below 1.000, that of step 15, for 2 validations: the learning rate falls"
        f" from now on, to 0 at step {progress.step}, where the run ends"
    ]


def test_a_largest_number_of_updates_that_comes_first_is_said(make_run: MakeRun) -> None:
    """The loss falls all the time; the rate falls over the second half of the 40 updates that there may be."""
    watched = make_patient_run(make_run, [1 / n for n in range(1, 20)], max_steps=40)
    fit(watched.run)
    rates = rates_of(watched)
    since = next(step for step in range(1, 40) if rates[step] < rates[step - 1])
    assert watched.said == [
        f"step {since:,}: the learning rate falls from now on, to 0 at step 40, where the run ends:"
        " no more updates are allowed"
    ]
    assert [watched.run.plan.phase(step) for step in (since, since + 1, 40)] == ["lr stays", "lr falls", "lr falls"]


@pytest.mark.parametrize("settings", [{"warmup_steps": 0}, {"warmup_steps": 24, "learning_rate": 3e-3}])
def test_phases_begin_as_they_should(make_run: MakeRun, settings: dict[str, Any]) -> None:
    """There may be no warm-up; and 3e-3 * 24 / 24 is not 3e-3, but neither does the rate fall there."""
    watched = make_patient_run(make_run, [1 / n for n in range(1, 20)], max_steps=60, **settings)
    warmup = settings["warmup_steps"]
    phases = [watched.run.plan.phase(step) for step in range(61)]
    assert phases == ["", *["lr rises"] * warmup, *["lr stays"] * (31 - warmup), *["lr falls"] * 29]
    fit(watched.run)
    assert [line.split(":")[0] for line in watched.said] == ["step 31"]


def test_the_losses_of_a_model_to_start_from_and_of_the_warm_up_do_not_count(make_run: MakeRun) -> None:
    """It begins with a low loss, which a high learning rate spoils at first."""
    losses = [1.0, 4.0, 3.0, 2.5, 6.0, 2.0, 1.9, *[5.0] * 50]
    run = make_patient_run(make_run, losses, warmup_steps=5).run
    fit(run, validate_first=True)
    assert run.progress.lowest_loss == 1.9
    assert (run.progress.lowest_loss_step, run.progress.falling_since) == (30, 40)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("figure", ["loss", "score"])
def test_a_validation_without_a_finite_loss_ends_the_run_unsaved(make_run: MakeRun, figure: str, value: float) -> None:
    watched = make_run(lambda: {"score": 50.0, "loss": 1.0, figure: value}, max_steps=9)
    with pytest.raises(TrainingDiverged, match=f"the validation gave no finite {figure}; try a new --run with --set"):
        fit(watched.run, validate_first=True)
    assert watched.saved == [] and watched.run.progress.best_score is None


def test_the_first_batch_that_does_not_fit_into_memory_is_told(make_run: MakeRun) -> None:
    watched = make_run(max_steps=6)
    trainer = watched.run.trainer
    good = trainer.loss
    trainer.provider = FixedBatches(batch(0, 1))
    trainer.__post_init__()

    def cramped(model: Any, batch: Any) -> Any:
        if trainer.progress.step >= 2 and len(batch) > 1:
            raise MemoryError
        return good(model, batch)

    trainer.loss = cramped
    fit(watched.run)
    assert len(watched.warned) == 1
    assert watched.warned[0].startswith("step 3: memory was not enough for a batch")
    assert trainer.progress.divided == 4
