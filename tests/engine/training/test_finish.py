"""A run that is told to end, while it is under way or before it goes on."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.tiny_run import Recorder

from tfm.engine.runs.directory import RunDirectory
from tfm.engine.training import finish as finish_module
from tfm.engine.training import plan as plan_module
from tfm.engine.training.finish import Finishing, Request, parse_request
from tfm.engine.training.plan import Plan
from tfm.engine.training.train import train as train_run
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.schedule import Finish
from tfm.system.errors import Interrupted, ModelError, UsageError
from tfm.system.files import DirectoryLock, sha256_file
from tfm.system.interrupts import Interrupts


class Clocks:
    """Both clocks, which stand still unless they are moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(plan_module, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(finish_module, "time", SimpleNamespace(time=lambda: 1e9 + self.now))

    def validate(self) -> None:
        """Takes two seconds."""
        self.now += 2.0


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def begin(run: Path, step: int = 0, before: int | None = None, **settings: Any) -> Plan:
    """A plan of 1,000 updates, warm-up of 10."""
    defaults: dict[str, Any] = {"max_steps": 1000, "warmup_steps": 10, "validate_every": 500}
    plan = Plan(RunDirectory(run), TrainingConfig(**defaults | settings), Recorder(), started=0.0)
    plan.begin(step, before)
    return plan


def train(plan: Plan, clocks: Clocks, start: int, stop: int, requests: dict[int, str] | None = None) -> list[float]:
    """The learning rates of the updates after `start`, of half a second each.

    Args:
        requests: What somebody asks for during which update.
    """
    rates: list[float] = []
    for step in range(start + 1, stop + 1):
        if step > plan.limit:
            break
        rates.append(plan.learning_rate(step))
        clocks.now += 0.5
        if requests and step in requests:
            Finishing(plan._run).ask(parse_request(requests[step]))
        plan.after_update(step, clocks.validate)
    return rates


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine", "trapezoid", "constant"])
@pytest.mark.parametrize("asked_at", [5, 300, 900])
def test_the_rate_falls_in_a_straight_line_to_zero(
    tmp_path: Path, clocks: Clocks, schedule: str, asked_at: int
) -> None:
    plan = begin(tmp_path, schedule=schedule)
    rates = train(plan, clocks, 0, 2000, {asked_at: "50"})
    assert len(rates) == plan.limit == asked_at + 50
    peak = rates[asked_at - 1]
    assert rates[asked_at:] == pytest.approx([peak * (51 - i) / 51 for i in range(1, 51)])
    untold = begin(tmp_path / "untold", schedule=schedule)
    assert rates[:asked_at] == train(untold, clocks, 0, asked_at)


@pytest.mark.parametrize("saved_at", [100, 299, 300, 301, 340])
def test_a_run_that_goes_on_has_the_same_rates(tmp_path: Path, clocks: Clocks, saved_at: int) -> None:
    plan = begin(tmp_path, schedule="trapezoid")
    rates = train(plan, clocks, 0, 2000, {300: "60"})
    again = begin(tmp_path, saved_at, 1000 if saved_at < 300 else 360, schedule="trapezoid")
    assert train(again, clocks, saved_at, 2000) == rates[saved_at:]
    assert again.told_to_finish and again.limit == 360


def test_a_time_is_kept(tmp_path: Path, clocks: Clocks) -> None:
    """Counted from when it was asked for; the last validation is in it."""
    plan = begin(tmp_path, max_steps=100_000)
    train(plan, clocks, 0, 400, {400: "1m30s"})
    assert plan.limit == pytest.approx(400 + 2 * (90 - 2 - 2), abs=3)  # one validation to time it, one at the end


def test_a_run_that_goes_on_times_some_updates_first(tmp_path: Path, clocks: Clocks) -> None:
    plan = begin(tmp_path, 500, 100_000, max_steps=100_000)
    Finishing(plan._run).ask(parse_request("60s"))
    began = clocks.now
    train(plan, clocks, 500, 100_000)
    assert plan.told_to_finish
    assert clocks.now + 2 - began == pytest.approx(60, abs=2)


def test_a_time_that_is_over_leaves_one_update(tmp_path: Path, clocks: Clocks) -> None:
    plan = begin(tmp_path, 500, 100_000, max_steps=100_000)
    Finishing(plan._run).ask(Request("60s", asked=1e9 - 3600))
    assert len(train(plan, clocks, 500, 100_000)) == 2


def test_who_is_told_twice_obeys_the_second_time(tmp_path: Path, clocks: Clocks) -> None:
    plan = begin(tmp_path)
    rates = train(plan, clocks, 0, 2000, {300: "500", 350: "20"})
    assert len(rates) == plan.limit == 370
    assert rates == sorted(rates[:10]) + sorted(rates[10:], reverse=True)
    again = begin(tmp_path, 320, 800)
    assert train(again, clocks, 320, 2000) == rates[320:]


def test_a_run_that_ends_before_that_anyway_is_left_alone(tmp_path: Path, clocks: Clocks) -> None:
    plan = begin(tmp_path)
    train(plan, clocks, 0, 400, {400: "600"})
    assert plan.limit == 1000 and not plan.told_to_finish
    assert plan._reporter.said[-1].endswith("it ends before that, at step 1,000")  # pyright: ignore[reportAttributeAccessIssue]
    assert Finishing(plan._run).request() is None


def test_a_patient_run_that_was_told_to_finish_does_not_end_sooner(tmp_path: Path, clocks: Clocks) -> None:
    plan = begin(tmp_path, max_steps=None, patience=2, schedule="trapezoid")
    train(plan, clocks, 0, 310, {300: "100"})
    assert not plan.fall(310)
    assert plan.limit == 400


def test_a_time_limit_becomes_a_number_at_once_when_a_run_is_told_to_finish(tmp_path: Path, clocks: Clocks) -> None:
    plan = begin(tmp_path, max_steps=None, max_time="10m", warmup_steps=100)
    train(plan, clocks, 0, 9)
    assert plan.pending
    train(plan, clocks, 9, 10, {10: "20"})
    assert not plan.pending and plan.told_to_finish and plan.limit == 30


def test_slow_updates_leave_time_for_the_rate_to_fall(tmp_path: Path, clocks: Clocks) -> None:
    """Of a run that goes on, of which nothing is known: 30 seconds an update, ten minutes."""
    plan, step, began = begin(tmp_path, 500, 100_000, max_steps=100_000), 500, clocks.now
    Finishing(plan._run).ask(parse_request("10m"))
    while step < plan.limit:
        step += 1
        clocks.now += 30
        plan.after_update(step, clocks.validate)
    assert step == pytest.approx(519, abs=1) and clocks.now - began < 600
    assert plan._finish is not None and plan._finish.since < 510


@pytest.mark.parametrize("text", ["", "soon", "0", "-5", "10", "10m", "1.5", "0m"])
def test_what_can_be_asked(text: str) -> None:
    if text in ("10", "10m"):
        assert parse_request(text).text == text
    else:
        with pytest.raises(UsageError, match="--finish-in"):
            parse_request(text)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"text": "soon", "asked": 1}', '{"text": 3, "asked": 1}'])
def test_a_request_that_is_none_is_forgotten(tmp_path: Path, content: str) -> None:
    run = RunDirectory(tmp_path)
    run.finish_request.write_text(content)
    assert Finishing(run).request() is None
    assert not run.finish_request.exists()


FILES = ("model.safetensors", "ema.safetensors", "optimizer.safetensors", "state.json")


def fingerprint(run: Path, step: int) -> dict[str, str]:
    folder = RunDirectory(run).checkpoint_path(step)
    return {name: sha256_file(folder / name) for name in FILES} | {"metrics": sha256_file(run / "metrics.jsonl")}


def test_a_run_told_to_finish_and_stopped_goes_on_bit_for_bit(train_tiny: Any, tmp_path: Path) -> None:
    """Stopped, as by SIGKILL, before the decision and after it."""
    run = tmp_path / "run"
    train_tiny(run, max_steps=8)
    done = train_tiny(run, max_steps=30, finish_in="9")
    assert done.step == 18  # decided after the ninth update
    whole = fingerprint(run, 18)
    for keep in (4, 8, 12, 16):
        stopped = tmp_path / f"stopped at {keep}"
        shutil.copytree(run, stopped)
        for checkpoint in RunDirectory(stopped).checkpoints():
            if int(checkpoint.name.removeprefix("step-")) > keep:
                shutil.rmtree(checkpoint)
        assert train_tiny(stopped, max_steps=30).step == 18
        assert fingerprint(stopped, 18) == whole
    assert "it was told to finish here" in train_tiny(run, max_steps=30).how_to_go_on


def test_the_process_that_trains_is_told(train_tiny: Any, configure: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    train_tiny(run, max_steps=2)
    recorder = Recorder()
    with DirectoryLock(run):
        settings = configure(max_steps=30)
        assert train_run(settings, run=run, reporter=recorder, interrupts=Interrupts(), finish_in="3") is None
    assert json.loads((run / "finish-request.json").read_text())["text"] == "3"
    assert recorder.said[-1].endswith("the training that is under way there was told to finish in 3 updates")
    assert train_tiny(run, max_steps=30).step == 30, "a request of another day does not count"


def test_an_interrupt_while_the_time_is_divided_loses_nothing(
    train_tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A validation is made to see how long it takes; Ctrl-C comes in the midst of it."""
    run = tmp_path / "run"
    train_tiny(run, max_steps=2, validate_every=1000)
    interrupts = Interrupts()
    monkeypatch.setattr(plan_module, "FEWEST_TIMED", 5)
    monkeypatch.setattr(Request, "is_urgent", True)
    sound = Plan.timing_validation

    def interrupted(self: Plan) -> Any:
        interrupts.received = 15
        return sound(self)

    monkeypatch.setattr(Plan, "timing_validation", interrupted)
    with pytest.raises(Interrupted, match="stopped during validation"):
        train_tiny(run, max_steps=500, validate_every=1000, finish_in="1h", interrupts=interrupts)
    assert RunDirectory(run).checkpoints()[-1].name == "step-000007"


def test_a_request_that_came_too_late_is_said(train_tiny: Any, tmp_path: Path) -> None:
    run, recorder, interrupts = tmp_path / "run", Recorder(), Interrupts()
    train_tiny(run, max_steps=2)
    interrupts.received = 15  # before the first update
    with pytest.raises(Interrupted):
        train_tiny(run, max_steps=500, finish_in="5", interrupts=interrupts, reporter=recorder)
    assert recorder.warned[-1] == "it was told to finish in 5 updates, too late to be decided: say --finish-in again"


@pytest.mark.parametrize("content", ['{"decided', "[]", "{}", '{"decided": [{"since": 1}]}'])
def test_what_cannot_be_read_is_said(tmp_path: Path, content: str) -> None:
    run = RunDirectory(tmp_path)
    run.finish.write_text(content)
    with pytest.raises(ModelError, match="is damaged: when the run"):
        Finishing(run)


def test_a_decision_that_has_changed_is_noticed(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    Finishing(run).decide(Finish(since=100, until=223, rate=0.5))
    assert Finishing(run).latest() == Finish(since=100, until=223, rate=0.5)
    run.finish.write_bytes(run.finish.read_bytes().replace(b"223", b"323"))
    with pytest.raises(ModelError, match="is damaged: when the run"):
        Finishing(run)


def test_a_run_that_has_not_begun_cannot_finish(train_tiny: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(UsageError, match="to finish; --max-time or --max-steps says"):
        train_tiny(run, finish_in="3")
    assert not run.exists()
    train_tiny(run, max_steps=2)
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(UsageError, match="has no checkpoint to go on from; --max-time or --max-steps says"):
        train_tiny(run, max_steps=2, finish_in="3")
