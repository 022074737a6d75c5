"""The course of a run: what happens between two updates, and in which order."""

import math
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.fixed_batches import FixedBatches, batch, build_model, make_trainer
from helpers.tiny_run import Recorder

from tfm.engine.runs.directory import RunDirectory
from tfm.engine.training import plan as plan_module
from tfm.engine.training.plan import PLAN_STEP, Plan
from tfm.engine.training.session import Hooks, Session
from tfm.system.errors import Interrupted, InterruptedAtOnce, TrainingDiverged
from tfm.system.files import read_sealed


def make_session(run: Path, hooks: Hooks | None = None, *, step: int = 0, **settings: Any) -> Session:
    """A session of a tiny model over one batch; training settings by name."""
    trainer = make_trainer(build_model(), FixedBatches(batch(0)), **settings)
    trainer.progress.step = step
    plan = Plan(RunDirectory(run), trainer.config, Recorder(), started=time.monotonic())
    plan.begin(step, None)
    return Session(trainer, plan, hooks or Hooks())


def steps_that_fit(monkeypatch: pytest.MonkeyPatch, session: Session, steps: int) -> None:
    """Lets the time limit be worth so many steps, always."""
    monkeypatch.setattr(session.plan, "_fitting", lambda seconds: (steps - session.progress.step, 0.5))


def test_it_logs_what_the_updates_say(tmp_path: Path) -> None:
    logged: list[dict[str, Any]] = []
    session = make_session(tmp_path, Hooks(log=logged.append), max_steps=12, log_every=5)
    session.run()
    assert [record["step"] for record in logged] == [5, 10]
    assert logged[0].keys() == {"step", "kind", "epoch", "loss", "lr", "grad_norm", "tokens"}
    assert logged[1]["tokens"] == 2 * logged[0]["tokens"]


def test_a_time_limit_is_turned_into_steps_and_nothing_is_saved_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[int] = []
    hooks = Hooks(save=lambda: saved.append(session.progress.step))
    session = make_session(tmp_path, hooks, max_time="1h", max_steps=None, checkpoint_every=10)
    steps_that_fit(monkeypatch, session, PLAN_STEP + 5)
    session.run()
    assert session.progress.step == PLAN_STEP + 5
    assert saved == [PLAN_STEP, PLAN_STEP + 5]
    assert read_sealed(tmp_path / "plan.json") == {"max_time": "1h", "max_steps": PLAN_STEP + 5}


def test_a_validation_left_at_once_saves_nothing(tmp_path: Path) -> None:
    """A second Ctrl-C may come while averages and weights are being exchanged."""
    saved: list[int] = []

    def leave() -> None:
        raise InterruptedAtOnce("interrupted")

    hooks = Hooks(validate=leave, save=lambda: saved.append(session.progress.step))
    session = make_session(tmp_path, hooks, validate_every=2, max_steps=4)
    with pytest.raises(InterruptedAtOnce):
        session.run()
    assert saved == []


def test_a_pause_is_not_counted_as_part_of_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop is closed for a while."""
    pause, pauses = 1000.0, list[float]()  # seconds
    monkeypatch.setattr(plan_module, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + sum(pauses)))
    hooks = Hooks(after_update=lambda: pauses.append(pause) if session.progress.step == 50 else None)
    session = make_session(tmp_path, hooks, max_time="2h", max_steps=PLAN_STEP + 1, validate_every=1000)
    seen: list[float] = []
    fitting = session.plan._fitting
    monkeypatch.setattr(session.plan, "_fitting", lambda step: seen.append(fitting(step)[1]) or fitting(step))
    session.run()
    assert len(pauses) == 1 and 0 < seen[0] < pause / PLAN_STEP


def test_nothing_is_the_best_that_may_not_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run goes on at step 15 with a time limit: until that is a number of steps it saves nothing."""
    saved: list[int] = []
    hooks = Hooks(save=lambda: saved.append(session.progress.step))
    hooks.validate = lambda: {"score": -session.progress.step}  # the earliest is the best
    session = make_session(tmp_path, hooks, step=15, max_time="1h", max_steps=1000, validate_every=10)
    steps_that_fit(monkeypatch, session, 15 + PLAN_STEP + 10)
    session.run()
    assert session.progress.best_step in saved


def test_a_run_under_way_is_timed_before_its_length_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes on with a time limit from step 100, say."""
    session = make_session(tmp_path, step=100, max_time="1h", max_steps=1000)
    steps_that_fit(monkeypatch, session, 100 + PLAN_STEP + 5)
    session.run()
    assert session.progress.step == 100 + PLAN_STEP + 5


@pytest.mark.parametrize(("looks", "saved"), [(30, False), (PLAN_STEP + 2, True)])
def test_stopped_before_its_length_is_known_it_says_what_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: int, saved: bool
) -> None:
    session = make_session(tmp_path, max_time="1h", max_steps=1000)
    steps_that_fit(monkeypatch, session, 100)
    session.hooks.stop_requested = lambda: 2 if session.progress.step == looks else None
    with pytest.raises(Interrupted, match=f"stopped after step {looks}") as caught:
        session.run()
    assert ("not saved" in str(caught.value)) == (not saved)


def test_a_run_that_ends_before_it_is_timed_is_saved(tmp_path: Path) -> None:
    saved: list[int | None] = []
    hooks = Hooks(save=lambda: saved.append(session.plan.max_steps), validate=lambda: {"score": 1.0})
    session = make_session(tmp_path, hooks, max_time="1h", max_steps=7)
    session.run()
    assert saved == [None]


def patient_session(run: Path, losses: list[float], **settings: Any) -> tuple[Session, list[str], list[dict[str, Any]]]:
    """A session with a patience of 2 whose validations, every 5 steps, have these losses; what it says and logs."""
    following, said, logged = iter(losses), list[str](), list[dict[str, Any]]()
    hooks = Hooks(validate=lambda: {"loss": next(following), "score": 0.0}, say=said.append, log=logged.append)
    patient = {"max_steps": None, "patience": 2, "schedule": "trapezoid", "decay_fraction": 0.5, "validate_every": 5}
    return make_session(run, hooks, **patient | {"log_every": 1} | settings), said, logged


def test_the_rate_falls_when_the_validation_loss_has_not_fallen_for_so_long(tmp_path: Path) -> None:
    """Losses of validations at steps 5, 10, ..: the lowest is at 15, so two later patience ends."""
    session, said, logged = patient_session(tmp_path, [3.0, 2.0, 1.0, 1.0, 1.5, *[0.5] * 20])
    session.run()
    progress = session.progress
    assert (progress.falling_since, progress.step) == (25, session.plan.limit)
    assert progress.step == pytest.approx(50, abs=4)
    rates = [record["lr"] for record in logged if record["kind"] == "train"]
    assert rates[24] == max(rates) > rates[25] and rates[25:] == sorted(rates[25:], reverse=True)
    assert rates[-1] < 0.1 * rates[24]
    assert said == [
        "the validation loss has not fallen below 1.000, that of step 15, for 2 validations: the learning rate falls"
        f" from now on, to 0 at step {progress.step}, where the run ends"
    ]


def test_a_largest_number_of_updates_that_comes_first_is_said(tmp_path: Path) -> None:
    """The loss falls all the time; the rate falls over the second half of the 40 updates that there may be."""
    session, said, logged = patient_session(tmp_path, [1 / n for n in range(1, 20)], max_steps=40)
    session.run()
    rates = [record["lr"] for record in logged if record["kind"] == "train"]
    since = next(step for step in range(1, 40) if rates[step] < rates[step - 1])
    assert said == [
        f"step {since:,}: the learning rate falls from now on, to 0 at step 40, where the run ends:"
        " no more updates are allowed"
    ]
    assert [session.plan.phase(step) for step in (since, since + 1, 40)] == ["lr stays", "lr falls", "lr falls"]


@pytest.mark.parametrize("settings", [{"warmup_steps": 0}, {"warmup_steps": 24, "learning_rate": 3e-3}])
def test_phases_begin_as_they_should(tmp_path: Path, settings: dict[str, Any]) -> None:
    """There may be no warm-up; and 3e-3 * 24 / 24 is not 3e-3, but neither does the rate fall there."""
    session, said, _ = patient_session(tmp_path, [1 / n for n in range(1, 20)], max_steps=60, **settings)
    warmup = settings["warmup_steps"]
    phases = [session.plan.phase(step) for step in range(61)]
    assert phases == ["", *["lr rises"] * warmup, *["lr stays"] * (31 - warmup), *["lr falls"] * 29]
    session.run()
    assert [line.split(":")[0] for line in said] == ["step 31"]


def test_the_losses_of_a_model_to_start_from_and_of_the_warm_up_do_not_count(tmp_path: Path) -> None:
    """It begins with a low loss, which a high learning rate spoils at first."""
    losses = [1.0, 4.0, 3.0, 2.5, 6.0, 2.0, 1.9, *[5.0] * 50]
    session, _, _ = patient_session(tmp_path, losses, warmup_steps=5)
    session.validate_and_save()
    session.run()
    assert session.progress.lowest_loss == 1.9
    assert (session.progress.lowest_loss_step, session.progress.falling_since) == (30, 40)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("figure", ["loss", "score"])
def test_a_validation_without_a_finite_loss_ends_the_run_unsaved(tmp_path: Path, figure: str, value: float) -> None:
    saved: list[int] = []
    figures = {"score": 50.0, "loss": 1.0, figure: value}
    hooks = Hooks(validate=lambda: figures, save=lambda: saved.append(1))
    session = make_session(tmp_path, hooks, max_steps=9)
    with pytest.raises(TrainingDiverged, match=f"the validation gave no finite {figure}; try a new --run with --set"):
        session.validate_and_save()
    assert saved == [] and session.progress.best_score is None


def test_the_first_batch_that_does_not_fit_into_memory_is_told(tmp_path: Path) -> None:
    warned: list[str] = []
    session = make_session(tmp_path, Hooks(warn=warned.append), max_steps=6)
    good = session.trainer.loss
    session.trainer.provider = FixedBatches(batch(0, 1))
    session.trainer.__post_init__()

    def cramped(model: Any, batch: Any) -> Any:
        if session.progress.step >= 2 and len(batch) > 1:
            raise MemoryError
        return good(model, batch)

    session.trainer.loss = cramped
    session.run()
    assert len(warned) == 1
    assert warned[0].startswith("step 3: memory was not enough for a batch")
    assert session.progress.divided == 4
