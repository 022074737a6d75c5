"""SIGKILL at any moment: the same command goes on, and ends in the bytes of a run that nobody killed."""

import json
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from helpers import ptrace
from helpers.forkserver import ForkServer, Job
from helpers.tiny_command import RUN, Settings, command, differences, fingerprint, unsound

from tfm.configs import merge
from tfm.engine.runs.directory import RunDirectory
from tfm.system.files import PARTIAL

RUNS, KILLS = 100, 10
GROUPS = 10
PARTS = 4
DECODER: Settings = {"architecture": "decoder_only", "num_encoder_layers": 0}
ENCODER: Settings = {"architecture": "encoder_only", "num_decoder_layers": 0}
TEXT = {"text": "train.en", "dev_text": "dev.en"}
PATIENT: Settings = {
    "max_steps": None,
    "patience": 1,
    "schedule": "trapezoid",
    "learning_rate": 0.5,  # so high that validation soon stops improving
    "validate_every": 8,
}
MODELS: list[Settings] = [
    {},
    {"model": DECODER, "training": {"best_metric": "chrf"}},
    {"model": ENCODER, "training": {"best_metric": "retrieval"}},
    {"model": DECODER, "training": {"best_metric": "loss"}, "data": TEXT},
    {"tokenizer": {"separate": True}, "model": {"tie_embeddings": False}},
    {"training": PATIENT},
    {"model": ENCODER, "training": {"objective": "masked_lm", "best_metric": "loss"}},
    {"training": {"optimizer": "muon", "max_steps": 73}},
    {"training": {"early_stopping": 1, "best_metric": "exact", "ema_decay": 0.0}},
    {"model": {"norm_order": "post"}, "training": {"max_steps": 75, "schedule": "cosine"}},
]
CADENCE: Settings = {
    "tokenizer": {"type": "bpe"},
    "training": {
        "precision": "fp32",
        "max_steps": 80,
        "validate_every": 20,
        "checkpoint_every": 3,
        "keep_checkpoints": 2,
    },
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """At scale an attack is divided, so that two processes have work."""
    at_scale = metafunc.config.getoption("--at-scale")
    for name, count in (("group", GROUPS), ("part", PARTS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, range(count if at_scale else 1))


@dataclass
class Victim:
    """A run that is killed.

    Attributes:
        number: Settings and moments of the kills follow from it.
        folder: Where it is.
        start: Starts its command.
        whole: Seconds that it takes.
        story: What happened to it.
    """

    number: int
    folder: Path
    start: Callable[[], Job]
    whole: float
    story: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.number)
        self.kills = self.in_saves = 0
        self.finished = False

    def attempt(self) -> None:
        """Starts it, and kills it unless it has ended before."""
        job = self.start()
        moment = self._at_a_save(job) if self.kills % 2 and not self.finished else self._anywhere(job)
        job.kill(alone=self.kills % 4 < 2)  # the other processes of a run of two are to notice
        ended = job.wait()
        self.story.append(f"{moment}: {ended.code}, {', '.join(_names(self.folder))}")
        assert ended.code in (0, -signal.SIGKILL), ended.said
        assert not unsound(self.folder), "a checkpoint is neither complete nor absent"
        self.finished = self.finished or ended.code == 0
        self.kills += ended.code != 0
        self.in_saves += any(name.endswith(PARTIAL) for name in _names(self.folder))

    def _anywhere(self, job: Job) -> str:
        """Waits for any moment of the next half of the run, so that the next kills find something left."""
        seconds = self.whole * self.random.random() * (0.2 if self.finished else 0.5)
        job.ended(seconds)
        return f"after {seconds:.3f} s"

    def _at_a_save(self, job: Job) -> str:
        """Waits until the first or the second save of this start, or what it removes, is under way."""
        wanted, delay = self.random.choice((1, 2)), 0.03 * self.random.random() ** 2
        seen, last = set[str](), time.monotonic() + 20 * self.whole
        while len(seen) < wanted and job.ended() is None and time.monotonic() < last:
            seen |= {name for name in _names(self.folder) if name.endswith(PARTIAL)}
            time.sleep(0.0005)
        time.sleep(delay)
        return f"{delay:.3f} s after {', '.join(sorted(seen))}"


def _names(folder: Path) -> list[str]:
    """What lies in the folder of checkpoints."""
    checkpoints = folder / RUN / "checkpoints"
    return sorted(path.name for path in checkpoints.iterdir()) if checkpoints.is_dir() else []


def test_a_run_that_is_killed_again_and_again_is_the_one_that_was_not(
    server: ForkServer, corpus_files: Path, tmp_path: Path, share: Any, tell: Any, group: int
) -> None:
    kills = in_saves = 0
    runs, each = share(1, RUNS // GROUPS), share(2, KILLS)
    for number in range(group, group + runs * GROUPS, GROUPS):
        victim, expected = _victim(number, server, corpus_files, tmp_path / str(number), share({"max_steps": 24}, {}))
        while victim.kills < each:
            victim.attempt()
            assert len(victim.story) <= 5 * each, f"it hardly lives: {victim}"
        last = victim.start().wait()
        assert last.code == 0, (last.said, victim)
        found = differences(fingerprint(victim.folder), expected)
        assert not found, f"{found} are not as without kills: {victim}"
        assert not list(victim.folder.rglob(f"*{PARTIAL}")), victim
        kills, in_saves = kills + victim.kills, in_saves + victim.in_saves
    tell(f"{kills:,} kills over {runs} runs, {in_saves} of them in the middle of a save: 0 differences")


def _victim(
    number: int, server: ForkServer, corpus: Path, folder: Path, shorter: Settings
) -> tuple[Victim, dict[str, str]]:
    """A run that has not begun, and what it is to come to."""
    ranks = 2 if number in (11, 42, 64, 83) else 1
    settings = merge(
        merge(CADENCE, MODELS[number // GROUPS]), {"training": {"seed": number + 1, "ranks": ranks, **shorter}}
    )
    # Both runs are made by the same command: the installed one draws a learning curve, too.
    function = "helpers.forkserver:installed" if number in (5, 26, 57, 78) else "helpers.forkserver:tfm"

    def start(name: str) -> Job:
        return server.call(function, *command(folder / name, corpus, settings), cwd=folder / name)

    whole = start("whole").wait()
    assert whole.code == 0, whole.said
    return Victim(number, folder / "killed", lambda: start("killed"), whole.seconds), fingerprint(folder / "whole")


SAVED = 8
"""The step of the save that is killed: a validation has found a new best, and the old best one is removed."""
SAVES: Settings = {
    "training": {
        "precision": "fp32",
        "max_steps": 10,
        "validate_every": 4,
        "checkpoint_every": 2,
        "keep_checkpoints": 2,
        "best_metric": "loss",
    }
}


def test_a_save_that_is_killed_before_any_of_its_system_calls_leaves_the_old_or_the_new(
    server: ForkServer, corpus_files: Path, tmp_path: Path, share: Any, tell: Any, part: int
) -> None:
    if reason := ptrace.why_not():
        pytest.skip(reason)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert server.run(*command(whole, corpus_files, SAVES), cwd=whole).code == 0
    assert _names(whole) == ["step-000008", "step-000010"]
    arguments = command(killed, corpus_files, SAVES)
    told = {"step": SAVED, "into": str(killed), "part": part, "parts": share(0, PARTS)}
    ended = server.run(*arguments, cwd=killed, before="helpers.hooks:kill_saves", told=told, seconds=600)
    assert ended.code == 0, ended.said

    saved = fingerprint(killed / "0")  # the save that was not killed
    calls = sorted(int(path.name) for path in killed.iterdir() if path.name.isdigit() and path.name != "0")
    newest = [_check_after_a_kill(killed / str(call), saved) for call in calls]
    assert newest == sorted(newest) and set(newest) == {"step-000006", "step-000008"}
    for call in calls:
        ended = server.run(*arguments, cwd=killed / str(call))
        assert ended.code == 0, (call, ended.said)
        found = differences(fingerprint(killed / str(call)), fingerprint(whole))
        assert not found, f"killed before system call {call}, {found} are not as without"
    made = len(json.loads((killed / "0" / "calls.json").read_text()))
    tell(f"a save killed before {len(calls)} of its {made} system calls, or after the last: 0 differences")


def _check_after_a_kill(folder: Path, saved: dict[str, str]) -> str:
    """Sees that each checkpoint is sound and the newest one as it should be; returns its name."""
    assert not unsound(folder), folder
    newest = RunDirectory(folder / RUN).find_model("last").checkpoint.name
    inside = f"checkpoints/{newest}/"
    found = {name: digest for name, digest in fingerprint(folder).items() if name.startswith(inside)}
    assert found == {name: digest for name, digest in saved.items() if name.startswith(inside)}, folder
    return newest
