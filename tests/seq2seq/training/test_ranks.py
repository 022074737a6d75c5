"""Several processes train as one: the same losses, the same weights, and nobody is left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tfm.configs import render_config
from tfm.data.errors import EnvironmentFault
from tfm.seq2seq.checkpoint import list_checkpoints, read_tensors
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.ranks import Ranks, count_ranks, joined_ranks

from .conftest import Configure, Recorder, TrainTiny

CPU = torch.device("cpu")


def losses(run: Path) -> list[float]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [record["loss"] for record in records]


def final(run: Path) -> dict[str, torch.Tensor]:
    checkpoint = list_checkpoints(run)[-1]
    return {
        f"{part}/{k}": v for part in ("model", "ema", "optimizer") for k, v in read_tensors(checkpoint, part).items()
    }


@pytest.mark.parametrize(("precision", "optimizer"), [("fp32", "adamw"), ("bf16", "adamw"), ("fp32", "muon")])
def test_two_ranks_are_one_that_accumulates(
    train_tiny: TrainTiny, tmp_path: Path, precision: str, optimizer: str
) -> None:
    """Over 50 steps, dropout on; with two addends even the order of additions is the same, so every bit is."""
    settings: dict[str, Any] = {"max_steps": 50, "precision": precision, "optimizer": optimizer, "validate_every": 25}
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


def test_a_finished_run_lets_its_followers_go(train_tiny: TrainTiny, tmp_path: Path) -> None:
    train_tiny(tmp_path / "run", ranks=2, max_steps=4)
    result = train_tiny(tmp_path / "run", ranks=2, max_steps=4)
    assert result is not None
    assert result.already_finished


@pytest.mark.parametrize(
    ("settings", "threads", "expected"),
    [
        ({"grad_accum_steps": 1}, 8, 1),
        ({"grad_accum_steps": 2}, 8, 2),
        ({"grad_accum_steps": 8}, 2, 2),
        ({"grad_accum_steps": 8, "ranks": 4}, 2, 4),
    ],
)
def test_as_many_ranks_as_cores_and_micro_batches(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, int], threads: int, expected: int
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert count_ranks(TrainingConfig(**settings), CPU) == expected  # pyright: ignore[reportArgumentType]
    assert count_ranks(TrainingConfig(), torch.device("cuda")) == 1


def test_shares_are_a_partition() -> None:
    micro_batches = range(10, 17)
    shares = [list(Ranks(rank, 3).share(micro_batches)) for rank in range(3)]
    assert sorted(index for share in shares for index in share) == list(micro_batches)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def end_at_once(ranks: Ranks) -> None:
    ranks.hand_out()
    os._exit(3)


def test_a_follower_that_dies_is_said() -> None:
    with (
        pytest.raises(EnvironmentFault, match=r"exit code 3.*run the same command"),
        joined_ranks(TrainingConfig(ranks=2), CPU, end_at_once) as ranks,
    ):
        ranks.hand_out("start")
        for _ in range(100):
            ranks.add_up(torch.zeros(10))


LEADER = """
import sys, torch
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.ranks import joined_ranks
from tests_rank_helper import report_and_wait
if __name__ == "__main__":
    with joined_ranks(TrainingConfig(ranks=2), torch.device("cpu"), report_and_wait) as ranks:
        ranks.hand_out(sys.argv[1])
        import time; time.sleep(60)
"""
HELPER = """
import os, pathlib
def report_and_wait(ranks):
    pathlib.Path(ranks.hand_out()).write_text(str(os.getpid()))
    ranks.hand_out()
"""


def test_followers_die_with_a_killed_leader(tmp_path: Path) -> None:
    (tmp_path / "leader.py").write_text(LEADER)
    (tmp_path / "tests_rank_helper.py").write_text(HELPER)
    pid_file = tmp_path / "pid"
    leader = subprocess.Popen([sys.executable, tmp_path / "leader.py", pid_file], cwd=tmp_path)
    deadline = time.monotonic() + 60
    while not (pid_file.exists() and pid_file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    follower = int(pid_file.read_text())
    leader.send_signal(signal.SIGKILL)
    leader.wait()
    while True:
        try:
            os.kill(follower, 0)
            if Path(f"/proc/{follower}/stat").read_text().split()[2] == "Z":
                break
        except (ProcessLookupError, FileNotFoundError):
            break
        assert time.monotonic() < deadline, "the follower outlived its leader"
        time.sleep(0.05)
