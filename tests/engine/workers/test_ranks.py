"""Several processes train as one: the same losses, the same weights, and nobody is left behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.marks import needs_memfd
from helpers.tiny_run import Configure, Recorder, TrainTiny

from tfm.configs import render_config
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.weights import read_tensors
from tfm.engine.training.plan import Plan
from tfm.engine.training.train import FOLLOWER
from tfm.engine.workers import ranks as ranks_module
from tfm.engine.workers.ranks import Ranks, SharedMemory, joined, using_threads
from tfm.seq2seq.training.batch import Batch
from tfm.seq2seq.training.loss import NextTokenLoss
from tfm.system.errors import EnvironmentFault, InterruptedAtOnce, TrainingDiverged
from tfm.system.interrupts import Interrupts
from tfm.system.processes import Child

PAIR = Ranks(0, 2, 1)


def losses(run: Path) -> list[float]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [record["loss"] for record in records]


def final(run: Path) -> dict[str, torch.Tensor]:
    checkpoint = RunDirectory(run).checkpoints()[-1]
    return {
        f"{part}/{k}": v for part in ("model", "ema", "optimizer") for k, v in read_tensors(checkpoint, part).items()
    }


@pytest.mark.parametrize(("precision", "optimizer"), [("fp32", "adamw"), ("bf16", "adamw"), ("fp32", "muon")])
def test_two_ranks_are_one_that_accumulates(
    train_tiny: TrainTiny, tmp_path: Path, precision: str, optimizer: str
) -> None:
    """Over 24 steps, dropout on; with two addends even the order of additions is the same, so every bit is."""
    settings: dict[str, Any] = {"precision": precision, "optimizer": optimizer, "validate_every": 12}
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    train_tiny(tmp_path / "alone", ranks=1, **settings)
    torch.set_num_threads(threads)
    reporter = Recorder()
    train_tiny(tmp_path / "together", ranks=2, reporter=reporter, **settings)
    assert losses(tmp_path / "together") == pytest.approx(losses(tmp_path / "alone"), rel=1e-5)
    alone, together = final(tmp_path / "alone"), final(tmp_path / "together")
    assert alone.keys() == together.keys()
    assert all(alone[name].equal(together[name]) for name in alone)
    assert any("2 processes of 1 thread" in line for line in reporter.said)


def test_sockets_give_what_shared_memory_gives(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two addends have one order, so every bit is the same. Where a system has no such memory, sockets are the way."""
    settings: dict[str, Any] = {"ranks": 2, "max_steps": 20, "optimizer": "muon"}
    used: list[bool] = []
    attach = SharedMemory.attach
    monkeypatch.setattr(SharedMemory, "attach", lambda *given: (used.append(True), attach(*given)))
    train_tiny(tmp_path / "memory", **settings)
    assert used == ([True] if sys.platform == "linux" else [])
    monkeypatch.setattr(SharedMemory, "open", lambda _: None)
    train_tiny(tmp_path / "sockets", **settings)
    assert len(used) < 2
    memory, sockets = final(tmp_path / "memory"), final(tmp_path / "sockets")
    assert all(memory[name].equal(sockets[name]) for name in memory)


def test_three_ranks_for_uneven_shares(train_tiny: TrainTiny, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_steps": 12, "grad_accum_steps": 4, "precision": "fp32"}
    train_tiny(tmp_path / "alone", ranks=1, **settings)
    train_tiny(tmp_path / "together", ranks=3, **settings)
    assert losses(tmp_path / "together") == pytest.approx(losses(tmp_path / "alone"), rel=1e-4)


def test_resumed_ranks_are_uninterrupted_ones(train_tiny: TrainTiny, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ranks": 2, "schedule": "constant", "optimizer": "muon"}
    train_tiny(tmp_path / "once", **settings)
    train_tiny(tmp_path / "twice", **settings, max_steps=10)
    train_tiny(tmp_path / "twice", **settings)
    once, twice = final(tmp_path / "once"), final(tmp_path / "twice")
    assert all(once[name].equal(twice[name]) for name in once)


def test_torchruns_processes_are_ranks(train_tiny: TrainTiny, configure: Configure, tmp_path: Path) -> None:
    train_tiny(tmp_path / "alone", ranks=1, max_steps=6, precision="fp32", validate_every=3)
    config = tmp_path / "config.yaml"
    config.write_text(render_config(configure(max_steps=6, precision="fp32", validate_every=3)))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"]
    command = [sys.executable, "-m", "tfm.cli", "train", "--config", config, "--run", tmp_path / "together"]
    done = subprocess.run([*launch, "--", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert losses(tmp_path / "together") == pytest.approx(losses(tmp_path / "alone"), rel=1e-5)
    assert done.stderr.count("finished at step 6") == 1
    again = subprocess.run([*launch, "--", *command], capture_output=True, text=True, check=False, timeout=100)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("already finished at step 6") == 1


@pytest.mark.parametrize("count", [1, 3])
def test_threads_are_set_inside_and_given_back(count: int) -> None:
    before = torch.get_num_threads()
    ranks = Ranks(0, count, before + 1)
    with joined(ranks) if count == 1 else using_threads(ranks.threads):
        assert torch.get_num_threads() == before + 1
        with ranks.others_idle():
            assert torch.get_num_threads() == (before + 1) * count
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_shares_are_a_partition() -> None:
    micro_batches = range(10, 17)
    shares = [list(Ranks(rank, 3).share(micro_batches)) for rank in range(3)]
    assert sorted(index for share in shares for index in share) == list(micro_batches)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_more_ranks_than_batches_is_said_and_right(train_tiny: TrainTiny, tmp_path: Path) -> None:
    reporter = Recorder()
    train_tiny(tmp_path / "together", ranks=3, grad_accum_steps=1, max_steps=4, precision="fp32", reporter=reporter)
    train_tiny(tmp_path / "alone", ranks=1, grad_accum_steps=1, max_steps=4, precision="fp32")
    assert losses(tmp_path / "together") == pytest.approx(losses(tmp_path / "alone"), rel=1e-5)
    assert any("has 1 parts: of 3 processes" in warning for warning in reporter.warned)


def test_divergence_is_the_leaders_to_say(train_tiny: TrainTiny, tmp_path: Path) -> None:
    with pytest.raises(TrainingDiverged):
        train_tiny(tmp_path / "run", ranks=2, learning_rate=1e30, max_grad_norm=0.0, precision="fp32", ema_decay=0.0)


@pytest.mark.timeout(60)
def test_a_second_signal_in_an_update_ends_all_at_once(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The follower waits for the leader's gradients then, and would not hear that it is to stop."""
    interrupts = Interrupts()
    loss, calls = NextTokenLoss.__call__, [0]

    def interrupted_twice(self: NextTokenLoss, model: Any, batch: Batch) -> tuple[torch.Tensor, int]:
        calls[0] += 1
        if calls[0] == 6:  # one of each update's two batches is this rank's
            interrupts._on_signal(signal.SIGINT, None)
            interrupts._on_signal(signal.SIGINT, None)
        return loss(self, model, batch)

    monkeypatch.setattr(NextTokenLoss, "__call__", interrupted_twice)
    with pytest.raises(InterruptedAtOnce, match="after the last checkpoint is lost"):
        train_tiny(tmp_path / "run", ranks=2, interrupts=interrupts)
    assert RunDirectory(tmp_path / "run").checkpoints()[-1].name == "step-000004"
    monkeypatch.undo()
    assert train_tiny(tmp_path / "run", ranks=2).step == 24


def test_a_time_limit_reaches_all_ranks(train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of steps becomes known under way; were the followers not told, their learning rates would differ."""

    monkeypatch.setattr(Plan, "_fitting", lambda self, seconds: (10, 0.5))  # after the 60 that are timed
    settings: dict[str, Any] = {"max_time": "1h", "max_steps": 1000, "schedule": "trapezoid", "warmup_steps": 60}
    train_tiny(tmp_path / "together", ranks=2, precision="fp32", **settings)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        train_tiny(tmp_path / "alone", ranks=1, precision="fp32", **settings)
    finally:
        torch.set_num_threads(threads)
    alone, together = final(tmp_path / "alone"), final(tmp_path / "together")
    assert RunDirectory(tmp_path / "together").checkpoints()[-1].name == "step-000070"
    assert all(alone[name].equal(together[name]) for name in alone)


def test_a_follower_that_cannot_start_is_said() -> None:
    said = r"exit code 1: .*no_such_module.*run the same command"
    with pytest.raises(EnvironmentFault, match=said), joined(PAIR, "no_such_module"):
        pass


@pytest.mark.parametrize("shared", [False, pytest.param(True, marks=needs_memfd)])
def test_a_follower_that_is_killed_is_said(monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    started: list[Child] = []
    start = ranks_module._start

    def remember(*arguments: Any) -> Child:
        started.append(start(*arguments))
        return started[0]

    monkeypatch.setattr(ranks_module, "_start", remember)
    with pytest.raises(EnvironmentFault, match=r"killed by signal 9.*run the same command"), joined(PAIR, FOLLOWER):
        if shared:
            assert PAIR.memory.reserve(2, 64)
            PAIR.memory.attach(2, 64)
        assert PAIR.memory.fits(torch.zeros(10)) == shared
        started[0].kill()
        for _ in range(100):
            PAIR.all_reduce(torch.zeros(10))


LEADER = """
import sys, time
from tfm.engine.workers import ranks
start = ranks._start
def remember(*arguments):
    follower = start(*arguments)
    open(sys.argv[1], "w").write(str(follower._process.pid))
    return follower
ranks._start = remember
with ranks.joined(ranks.Ranks(0, 2, 1), "tfm.engine.training.follower"):
    time.sleep(60)
"""


def test_followers_end_with_a_killed_leader(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    leader = subprocess.Popen([sys.executable, "-c", LEADER, pid_file])
    deadline = time.monotonic() + 60
    while not (pid_file.exists() and pid_file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    leader.kill()
    leader.wait()
    while alive(int(pid_file.read_text())):
        assert time.monotonic() < deadline, "the follower outlived its leader"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_ctrl_c_in_the_terminal_saves_and_the_same_command_continues(configure: Configure, tmp_path: Path) -> None:
    """The terminal sends SIGINT to every process of the foreground group."""
    config = tmp_path / "config.yaml"
    config.write_text(render_config(configure(max_steps=100_000, ranks=2, validate_every=100_000, log_every=1)))
    run = tmp_path / "run"
    command = [sys.executable, "-m", "tfm.cli", "train", "--config", config, "--run", run]
    training = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 120
    while not ((run / "metrics.jsonl").exists() and (run / "metrics.jsonl").read_text().count("\n") > 5):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(training.pid, signal.SIGINT)
    _, said = training.communicate(timeout=60)
    assert training.returncode == 130, said
    assert "Traceback" not in said and "Run the same command to continue" in said
    step = int(RunDirectory(run).checkpoints()[-1].name.removeprefix("step-"))
    done = subprocess.run(
        [*command, "--max-steps", str(step + 2)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert f"continuing at step {step:,}" in done.stderr


def test_what_killed_leaders_left_is_removed_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    names = [f"tfm-ranks-{dead.pid}-a", f"tfm-ranks-{os.getpid()}-b", "tfm-ranks-1-c", "tfm-ranks-x", "other"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "store").write_text("")
    ranks_module.remove_what_the_killed_left("tfm-ranks-")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])
