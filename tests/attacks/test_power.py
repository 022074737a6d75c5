"""The power fails at any moment of a training: whatever the disk has kept, the run goes on from what was safe."""

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from attacks.conftest import Share, Tell
from helpers.command import TINY_FLAGS
from helpers.forkserver import ForkServer
from helpers.power import Disk, Tree, read_tree, write_tree
from helpers.syscalls import Call, can_watch, read_log

from tfm.data.store import open_store
from tfm.data.tokenizer import Tokenizer
from tfm.engine.runs import checkpoint as checkpoint_module
from tfm.engine.runs import directory as directory_module
from tfm.engine.runs.checkpoint import read_state
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.training.finish import Finishing
from tfm.system.errors import TfmError
from tfm.system.reporter import Quiet

pytestmark = pytest.mark.skipif(not can_watch(), reason="needs Linux on x86-64, and seccomp with user notification")

FLAGS = [*TINY_FLAGS, "--precision", "fp32", "--set", "training.ranks=1", "--set", "training.keep_checkpoints=1"]
FLAGS += ["--set", "training.checkpoint_every=3", "--set", "training.validate_every=6", "--max-steps", "8"]
DECIDED = ("setup.json", "plan.json", "finish.json")
PARTS = range(4)


@dataclass
class Recording:
    """What a training did to its run directory.

    Attributes:
        command: The command.
        folder: The run directory.
        before: What was in it.
        calls: What was done.
        saved: What was in it when each checkpoint had just been saved, by step.
    """

    command: list[str]
    folder: Path
    before: Tree
    calls: list[Call]
    saved: dict[int, Tree] = field(default_factory=dict)

    def __post_init__(self) -> None:
        disk = Disk(self.folder, self.before)
        for call in self.calls:
            disk.make(call)
            if call.kind == "mark":
                self.saved[_step(call)] = disk.tree
        self.after = disk.tree
        assert self.after == read_tree(self.folder)  # the model of a disk does what the disk does


def _step(call: Call) -> int:
    return int(call.path.removeprefix("step-"))


def files_of(tree: Tree, folder: str) -> Tree:
    """What is directly in a folder."""
    start = f"{folder}/"
    return {name.removeprefix(start): content for name, content in tree.items() if name.startswith(start)}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory, if there is one: thousands of small files are made in it."""
    if not Path("/dev/shm").is_dir():
        yield tmp_path_factory.mktemp("power")
        return
    folder = Path("/dev/shm") / tmp_path_factory.mktemp("power").relative_to("/").as_posix().replace("/", "-")
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def recordings(server: ForkServer, corpus_files: Path, place: Path) -> list[Recording]:
    """A new run; one that goes on after its first checkpoint; and that one told to finish."""
    data = [f"--{part}={corpus_files / name}" for part, name in (("src", "train.en"), ("tgt", "train.de"))]
    data += [f"--dev-{part}={corpus_files / name}" for part, name in (("src", "dev.en"), ("tgt", "dev.de"))]
    command = ["train", "--run", "run", *data, *FLAGS]
    new = _record(server, place / "new", {}, command)
    return [
        new,
        _record(server, place / "resumed", new.saved[3], command),
        _record(server, place / "finishing", new.saved[3], [*command, "--finish-in", "2"]),
    ]


def _record(server: ForkServer, place: Path, before: Tree, command: list[str]) -> Recording:
    place.mkdir()
    if before:
        write_tree(place / "run", before)
    told = {"roots": [str(place)], "log": f"{place}.log", "data": True}
    ended = server.run(*command, cwd=place, before="helpers.power:record", told=told)
    assert ended.code == 0, ended.said
    return Recording(command, place / "run", before, read_log(Path(f"{place}.log")))


def states(recording: Recording, calls: list[Call], chance: random.Random, number: int) -> Iterator[tuple[int, Tree]]:
    """States after power cuts, no two the same, and the step whose checkpoint was safe by then.

    The power fails after each call in turn; where few states are asked for, after some of them.
    """
    seen: set[int] = set()
    often = number / len(calls)
    while len(seen) < number:
        disk, safe, found = Disk(recording.folder, recording.before), _saved_before(recording), len(seen)
        for call in calls:
            disk.make(call)
            if call.kind == "mark":
                safe = _step(call)
            if chance.random() > often:
                continue
            for state in disk.after_power_cuts(chance, int(often) + 1):
                key = hash(frozenset(state.items()))
                if key not in seen:
                    seen.add(key)
                    yield safe, state
        if len(seen) == found and often >= 1:
            return


def _saved_before(recording: Recording) -> int:
    steps = [name.split("/")[1] for name in recording.before if name.startswith("checkpoints/step-")]
    return max((int(name.removeprefix("step-")) for name in steps), default=0)


def judge(folder: Path, safe: int, recording: Recording) -> str:
    """What is wrong with a run directory that a power cut has left; empty if nothing is lost."""
    run = RunDirectory(folder)
    try:
        run.remove_debris()
        saved = run.newest_saved(Quiet().warn)
        step = saved.step if saved else 0
        if step < safe:
            return f"lost: step {safe} was safe, {step} is the newest"
        if (folder / "tokenizer").exists() or saved:
            Tokenizer.load(folder / "tokenizer")
        if (run.has_begun or saved) and run.config.read_bytes() not in _versions(recording, "config.yaml"):
            return "config.yaml is neither old nor new"  # each of these loads: resumed runs show it
        Finishing(run)
        if saved:
            return _compare(run, step, recording)
    except TfmError as error:
        return f"refused: {error}"
    return _compare_cache(folder, recording)


def _compare(run: RunDirectory, step: int, recording: Recording) -> str:
    """Compares a run with what it was when its newest checkpoint had been saved."""
    then, now = recording.saved.get(step) or recording.before, read_tree(run.path)
    name = f"step-{step:06d}"
    if files_of(now, f"checkpoints/{name}") != files_of(then, f"checkpoints/{name}"):
        return f"mixed: {name} is not what was saved"
    if files_of(now, "tokenizer") != files_of(then, "tokenizer"):
        return "the tokenizer is another one"
    for log in (run.metrics, run.timing):
        logged = [json.loads(line) for line in (then.get(log.path.name) or b"").splitlines()]
        if log.records()[: len(logged)] != logged:
            return f"{log.path.name} lacks what was logged before {name}"
    for decided in DECIDED:
        if then.get(decided) is not None and now.get(decided) not in _versions(recording, decided):
            return f"{decided} is neither old nor new"
    best, was_best = run.find_model("best").checkpoint, _best_score(then)
    if was_best is not None and read_state(best)["score"] != was_best:
        return "the best checkpoint is lost"
    return _compare_cache(run.path, recording)


def _versions(recording: Recording, name: str) -> list[bytes | None]:
    trees = [recording.before, *recording.saved.values(), recording.after]
    return [tree[name] for tree in trees if name in tree]


def _best_score(tree: Tree) -> float | None:
    found = [json.loads(content)["score"] for name, content in tree.items() if content and name.endswith("state.json")]
    return max((score for score in found if score is not None), default=None)


def _compare_cache(folder: Path, recording: Recording) -> str:
    """A store that opens is the one that was written."""
    for store in (folder / "cache").glob("*"):
        whole = files_of(recording.after, f"cache/{store.name}")
        if open_store(store) is not None and read_tree(store) != whole:
            return f"{store.name} is not the store that was written"
    return ""


def _faults(
    recording: Recording, calls: list[Call], place: Path, chance: random.Random, number: int
) -> tuple[int, list[str]]:
    """Judges so many states; returns how many there were, and what was wrong."""
    count, wrong = 0, list[str]()
    folder = place / "state"
    for safe, state in states(recording, calls, chance, number):
        write_tree(folder, state)
        if verdict := judge(folder, safe, recording):
            wrong.append(f"{verdict} (state {count}, safe step {safe})")
        shutil.rmtree(folder)
        count += 1
    return count, wrong


@pytest.mark.parametrize("part", PARTS)
def test_after_a_power_cut_the_run_is_what_was_safe(
    recordings: list[Recording], place: Path, share: Share, tell: Tell, part: int
) -> None:
    total = 0
    for number, recording in enumerate(recordings):
        workshop = place / f"judged-{part}-{number}"
        workshop.mkdir()
        chance = random.Random(f"power {part} {number}")
        count, wrong = _faults(recording, recording.calls, workshop, chance, share(15, 1000))
        total += count
        assert not wrong, f"seed 'power {part} {number}': {wrong[:5]}"
    tell(f"{total:,} states of the disk after a power cut: the newest safe checkpoint, byte for byte, in each")


@pytest.mark.parametrize("part", PARTS)
def test_after_a_power_cut_the_same_command_ends_in_the_same_bytes(
    recordings: list[Recording], server: ForkServer, place: Path, share: Share, tell: Tell, part: int
) -> None:
    tries = 0
    for number, recording in enumerate(recordings[:2]):
        chance = random.Random(f"resumed {part} {number}")
        found = list(states(recording, recording.calls, chance, share(15, 1000)))
        for index, (_, state) in enumerate(chance.sample(found, share(1 - number if part == 0 else 0, 40))):
            folder = place / f"resumed-{part}-{number}-{index}"
            folder.mkdir()
            write_tree(folder / "run", state)
            ended = server.run(*recording.command, cwd=folder)
            assert ended.code == 0, (part, number, index, ended.said)
            assert _results(read_tree(folder / "run")) == _results(recording.after), (part, number, index)
            shutil.rmtree(folder)
            tries += 1
    tell(f"{tries:,} of such states resumed: 0 differences to a training without a power cut")


def _results(tree: Tree) -> Tree:
    """What does not depend on clocks, without the picture, and without a log as it was while garbled."""
    others = ("timing.jsonl", "learning_curve.png", ".lock", "metrics.jsonl.damaged", "timing.jsonl.damaged")
    return {name: content for name, content in tree.items() if name not in others}


def _without(calls: list[Call], recording: Recording, of_directories: bool) -> list[Call]:
    directories = {call.path for call in recording.calls if call.kind == "mkdir"} | {str(recording.folder)}
    return [call for call in calls if call.kind != "fsync" or (call.path in directories) != of_directories]


@pytest.mark.parametrize("of_directories", [False, True], ids=["files", "directories"])
def test_a_missing_sync_would_be_noticed(recordings: list[Recording], place: Path, of_directories: bool) -> None:
    recording = recordings[0]
    calls = _without(recording.calls, recording, of_directories)
    workshop = place / f"unsynced-{of_directories}"
    workshop.mkdir()
    _, wrong = _faults(recording, calls, workshop, random.Random("unsynced"), 60)
    assert any(one.startswith(("lost", "refused: no valid checkpoint")) for one in wrong)


def test_on_a_disk_that_does_not_sync_a_manifest_still_keeps_mixed_checkpoints_out(
    recordings: list[Recording], place: Path, share: Share, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recordings[0]
    calls = _without(recording.calls, recording, of_directories=False)
    workshop = place / "unsynced"
    workshop.mkdir()
    count, wrong = _faults(recording, calls, workshop, random.Random("lying"), share(40, 1000))
    assert not [one for one in wrong if one.startswith("mixed")]
    tell(f"{count:,} states of a disk that never syncs files: none passed for a checkpoint that was not saved so")
    monkeypatch.setattr(directory_module, "damage", lambda path: "")
    monkeypatch.setattr(checkpoint_module, "manifest", _believed)
    _, wrong = _faults(recording, calls, workshop, random.Random("lying"), 60)
    assert wrong


def _believed(directory: Path) -> dict[str, dict[str, Any]]:
    """A manifest that says of each file what is there."""
    from tfm.system.files import sha256_file

    return {p.name: {"sha256": sha256_file(p), "size": p.stat().st_size} for p in directory.iterdir()}
