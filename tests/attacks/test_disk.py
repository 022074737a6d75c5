"""The disk refuses, at each call of each command that writes: nothing is lost in silence, and nothing old is harmed."""

import errno
import os
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from attacks.conftest import Share, Tell
from helpers.command import TINY_FLAGS
from helpers.forkserver import Ended, ForkServer
from helpers.power import Tree, read_tree, write_tree
from helpers.syscalls import Call, can_watch, read_log

from tfm.engine.runs.directory import RunDirectory

needs_watching = pytest.mark.skipif(not can_watch(), reason="needs Linux on x86-64, and seccomp with user notification")
FLAGS = [*TINY_FLAGS, "--precision", "fp32", "--set", "training.ranks=1", "--set", "training.keep_checkpoints=1"]
FLAGS += ["--set", "training.checkpoint_every=2", "--set", "training.validate_every=4"]
ENCODER = ["--set", "model.architecture=encoder_only", "--set", "model.num_decoder_layers=0"]
ENCODER += ["--set", "training.best_metric=retrieval"]
TEXT = ["--set", "model.num_encoder_layers=0"]
ERRORS = {
    "open": ["ENOSPC", "EACCES", "EDQUOT", "EIO"],
    "write": ["ENOSPC", "EIO", "short", "EDQUOT"],
    "fsync": ["EIO", "ENOSPC", "EDQUOT"],
    "rename": ["ENOSPC", "EIO", "EACCES", "EDQUOT"],
    "mkdir": ["ENOSPC", "EACCES", "EDQUOT", "EIO"],
    "unlink": ["EIO", "EACCES"],
    "rmdir": ["EIO", "EACCES"],
    "truncate": ["EIO", "ENOSPC"],
    "close": ["EIO", "ENOSPC", "EDQUOT"],
}
"""How each kind of call may fail; `short` is a write of half."""
CLOCKS = ("timing.jsonl", "learning_curve.png", ".lock")
"""Files that are not the same in two runs of one command, or not a result of it."""
OLD = b"old\n"


@dataclass(frozen=True)
class Scene:
    """A command that writes.

    Attributes:
        command: Its arguments; `MODEL`, `ENCODER` and `TEXT` stand for runs, `CORPUS` for the folder of the corpus.
        before: Files that lie where it works.
        goes_on: Whether the run directory `run` holds the first half of what it does.
        only: What the names of files match that are refused; another scene has the others.
        quick: Whether a few of the tries are made in `make test`.
    """

    command: list[str]
    before: dict[str, bytes] = field(default_factory=dict)
    goes_on: bool = False
    only: str = ""
    quick: bool = False


TRAIN = ["train", "--run", "run", "--src", "CORPUS/train.en", "--tgt", "CORPUS/train.de"]
TRAIN += ["--dev-src", "CORPUS/dev.en", "--dev-tgt", "CORPUS/dev.de", "--tokenizer", "MODEL/tokenizer", *FLAGS]
TEST_SET = ["--src", "CORPUS/dev.en", "--tgt", "CORPUS/dev.de"]
SCENES = {
    "a new run": Scene([*TRAIN, "--max-steps", "4"], quick=True),
    "a run that goes on": Scene([*TRAIN, "--max-steps", "4"], goes_on=True),
    "a run with a time limit": Scene([*TRAIN, "--finish-in", "2"], goes_on=True),
    "a run that holds out": Scene(
        ["train", "--run", "run", *TEST_SET, *FLAGS, "--max-steps", "2"], only=r"\.tmp|/tokenizer|/held-out"
    ),
    "tokenize": Scene(["tokenize", *TEST_SET, "--vocab-size", "300", "--output", "vocab"]),
    "translate a file": Scene(["translate", "--run", "MODEL", "-i", "CORPUS/dev.en", "-o", "out.de"], {"out.de": OLD}),
    "translate words": Scene(["translate", "--run", "MODEL", "one two", "-o", "out.de"], {"out.de": OLD}),
    "translate a document": Scene(
        ["translate", "--run", "MODEL", "-i", "in.tsv", "-o", "out.tsv"],
        {"in.tsv": b"src\ttgt\none two\t\n", "out.tsv": OLD},
    ),
    "attention": Scene(
        ["translate", "--run", "MODEL", "one", "two", "-o", "out.de", "--attention", "seen.jsonl"],
        {"out.de": OLD, "seen.jsonl": OLD},
    ),
    "evaluate": Scene(
        ["evaluate", "--run", "MODEL", *TEST_SET, "-o", "out.de", "--report", "report.jsonl"], {"report.jsonl": OLD}
    ),
    "score outputs": Scene(
        ["evaluate", "--hyp", "CORPUS/dev.de", *TEST_SET, "--report", "report.jsonl"], {"report.jsonl": OLD}
    ),
    "export": Scene(["export", "--run", "MODEL", "--output", "exported", "--check", "0"]),
    "explain": Scene(["explain", "--run", "MODEL", "one two", "-o", "page.html"], {"page.html": OLD}),
    "embed": Scene(["embed", "--run", "ENCODER", "-i", "CORPUS/dev.en", "-o", "out.npy"], {"out.npy": OLD}),
    "similarities": Scene(["embed", "--run", "ENCODER", "--pairs", *TEST_SET, "-o", "out.txt"], {"out.txt": OLD}),
    "generate": Scene(["generate", "--run", "TEXT", "--seed", "7", "one", "-o", "out.txt"], {"out.txt": OLD}),
    "data": Scene(["data", *TEST_SET, "--report", "faults.tsv", "--clean", "clean"], {"faults.tsv": OLD}, quick=True),
}
PRINTING = {
    "translate": ["translate", "--run", "MODEL", "one two"],
    "translate as JSON": ["translate", "--run", "MODEL", "--json", "one two"],
    "evaluate": ["evaluate", "--run", "MODEL", *TEST_SET],
    "evaluate as JSON": ["evaluate", "--run", "MODEL", *TEST_SET, "--json"],
    "score outputs": ["evaluate", "--hyp", "CORPUS/dev.de", *TEST_SET],
    "forced": ["evaluate", "--run", "MODEL", *TEST_SET, "--forced"],
    "check": ["check", "--run", "MODEL"],
    "info": ["info", "--run", "MODEL"],
    "runs": ["runs", "."],
    "curves": ["curves", "MODEL"],
    "embed": ["embed", "--run", "ENCODER", "one two"],
    "generate": ["generate", "--run", "TEXT", "--seed", "7", "one"],
    "explain": ["explain", "--run", "MODEL", "one", "--format", "text"],
    "data": ["data", *TEST_SET],
    "tokenize": ["tokenize", "--output", "MODEL/tokenizer", "--show", "one"],
    "presets": ["presets"],
    "export": ["export", "--run", "MODEL", "--output", "exported", "--check", "0"],
    "dry run": [*TRAIN, "--max-steps", "4", "--dry-run"],
    "version": ["--version"],
    "help": ["train", "--help"],
}
"""Commands whose result is on stdout."""


class Workshop:
    """Where scenes are played.

    Args:
        server: Runs the commands.
        folder: For all that is made.
        corpus: The corpus.
    """

    def __init__(self, server: ForkServer, folder: Path, corpus: Path) -> None:
        self._server, self._folder, self._corpus = server, folder, corpus
        self._whole: dict[str, tuple[Tree, bytes, list[Call]]] = {}

    def _model(self, name: str) -> Path:
        """A run, trained when it is asked for."""
        run = self._folder / name
        if not run.exists():
            data = ["--src", "CORPUS/train.en", "--tgt", "CORPUS/train.de"]
            flags = {"MODEL": data, "ENCODER": [*data, *ENCODER], "TEXT": ["--text", "CORPUS/train.en", *TEXT]}[name]
            self.play(["train", "--run", str(run), *FLAGS, *flags, "--max-steps", "2"], self._folder)
        return run

    def words(self, command: list[str]) -> list[str]:
        """A command with the names of files in it."""
        words = [word.replace("CORPUS", str(self._corpus)) for word in command]
        for name in ("MODEL", "ENCODER", "TEXT"):
            if any(word.startswith(name) for word in words):
                words = [re.sub(rf"^{name}\b", str(self._model(name)), word) for word in words]
        return words

    def play(self, command: list[str], cwd: Path, **options: Any) -> Ended:
        """A command without a fault."""
        ended = self._server.run(*self.words(command), cwd=cwd, **options)
        assert ended.code == 0, ended.said
        return ended

    def attempt(self, command: list[str], cwd: Path, **options: Any) -> Ended:
        """A command that may fail."""
        return self._server.run(*self.words(command), cwd=cwd, **options)

    def stage(self, scene: Scene, folder: Path) -> None:
        """Puts files where a scene begins."""
        write_tree(folder, dict(scene.before))
        if scene.goes_on:
            begun = self._folder / "begun"
            if not begun.exists():
                begun.mkdir()
                self.play([*TRAIN, "--max-steps", "4"], begun, before="helpers.power:end_after_first_save")
            shutil.copytree(begun / "run", folder / "run")

    def whole(self, name: str) -> tuple[Tree, bytes, list[Call]]:
        """What a scene comes to without a fault: files, stdout, and the calls that it makes."""
        if name not in self._whole:
            folder = self._folder / f"whole-{len(self._whole)}"
            self.stage(SCENES[name], folder)
            ended = self.play(SCENES[name].command, folder, **watching(folder))
            self._whole[name] = results(folder), ended.stdout, read_log(Path(f"{folder}.log"))
            shutil.rmtree(folder)
        return self._whole[name]

    def folder(self) -> Path:
        """A name for a folder."""
        return self._folder / "scene"


def watching(folder: Path, **fault: Any) -> dict[str, Any]:
    """Options of a command whose calls in a folder are watched, and refused if there is a fault."""
    log = Path(f"{folder}.log")
    log.unlink(missing_ok=True)
    temporary = Path(f"{folder}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    told = {"roots": [str(temporary), str(folder)], "log": str(log), "fault": fault or None}
    return {"before": "helpers.syscalls:watch", "told": told}


def results(folder: Path) -> Tree:
    """The files that a command leaves."""
    return {name: content for name, content in read_tree(folder).items() if Path(name).name not in CLOCKS}


@pytest.fixture(scope="module")
def workshop(server: ForkServer, corpus_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    folder = tmp_path_factory.mktemp("disk")
    yield Workshop(server, folder, corpus_files)
    shutil.rmtree(folder)


def complaint(ended: Ended, *, with_space: bool) -> str:
    """What is wrong with how a command says that the disk refuses."""
    errors = [line for line in ended.said.splitlines() if line.startswith("tfm: error: ")]
    if ended.code != 5:
        return f"exit code {ended.code}"
    if len(errors) != 1 or "Traceback" in ended.said or "bug in tfm" in ended.said:
        return "not one line of explanation"
    if not re.search(r"cannot (write|create|lock|remove|save) [\w./-]+", errors[0]):
        return "no path is named"
    if with_space and "MB free" not in errors[0]:
        return "the space that is left is not named"
    return ""


def harm(scene: Scene, folder: Path, whole: Tree) -> str:
    """Which old file is neither as it was nor as it is to be; whether a checkpoint is lost."""
    for name, content in scene.before.items():
        now = (folder / name).read_bytes() if (folder / name).exists() else None
        if now not in (content, whole.get(name)):
            return f"{name} is neither old nor new"
    if scene.goes_on and not RunDirectory(folder / "run").sound_checkpoints()[0]:
        return "the checkpoint to go on from is lost"
    return ""


def judge(workshop: Workshop, name: str, folder: Path, ended: Ended, with_space: bool) -> str:
    """What is wrong after a command met a fault, and was run again without it; empty if nothing is."""
    scene, (whole, stdout, _) = SCENES[name], workshop.whole(name)
    if ended.code == 0:
        found = results(folder)
        lost = {one for one in whole if found.get(one) != whole[one]}
        if lost or ended.stdout != stdout:
            return f"exit code 0, but {sorted(lost)} are not as without the fault"
    else:
        if wrong := complaint(ended, with_space=with_space):
            return f"{wrong}: {ended.said[-400:]}"
        if wrong := harm(scene, folder, whole):
            return wrong
        again = workshop.attempt(scene.command, folder)
        if again.code != 0 and results(folder) != whole:  # it may be there already, and refused for that
            return f"without the fault, too: {again.said[-400:]}"
    found = results(folder)
    if found != whole:
        different = sorted(one for one in whole.keys() | found.keys() if found.get(one) != whole.get(one))
        return f"in the end {different} are not as without the fault"
    return ""


def faults(calls: list[Call], only: str) -> list[dict[str, Any]]:
    """Each call fails, once and for ever: where there are few, with each error of its kind, else with one in turn."""
    found: list[dict[str, Any]] = []
    few = len(calls) < 60
    for kind, errors in ERRORS.items():
        for nth, call in enumerate((call for call in calls if call.kind == kind), start=1):
            for for_ever in (False, True) if re.search(only, call.path) else ():
                for error in errors if few else [errors[(nth + for_ever) % len(errors)]]:
                    found.append({"kind": kind, "nth": nth, "error": error, "for_ever": for_ever})
    return found


PARTS = [(name, part) for name in SCENES for part in range(4 if name.startswith("a ") else 1)]


@needs_watching
@pytest.mark.parametrize(("name", "part"), PARTS, ids=[f"{name} {part}" for name, part in PARTS])
def test_every_call_fails_once_and_for_ever(workshop: Workshop, share: Share, tell: Tell, name: str, part: int) -> None:
    few = int(SCENES[name].quick and not part)
    if not share(few, 1):
        pytest.skip("at scale alone")
    every = faults(workshop.whole(name)[2], SCENES[name].only)[part :: 4 if name.startswith("a ") else 1]
    chosen = random.Random(f"disk {name} {part}").sample(every, min(share(few, len(every)), len(every)))
    wrong: list[str] = []
    tolerated = 0
    for fault in chosen:
        folder = workshop.folder()
        workshop.stage(SCENES[name], folder)
        ended = workshop.attempt(SCENES[name].command, folder, **watching(folder, **fault))
        failed = [call for call in read_log(Path(f"{folder}.log")) if call.kind.startswith("failed")]
        assert failed, f"{fault} was not met"
        tolerated += ended.code == 0
        with_space = fault["error"] in ("ENOSPC", "EDQUOT")
        if verdict := judge(workshop, name, folder, ended, with_space):
            wrong.append(f"{fault} at {failed[0].path.removeprefix(str(folder))}: {verdict}")
        shutil.rmtree(folder)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(chosen)}", *wrong[:40]])
    tell(f"{len(chosen):,} faults, {tolerated:,} of them without consequences: none lost anything in silence")


KILOBYTES = (8, 16, 32, 64, 128, 256, 512, 1024)
"""Free on a disk."""
SIZES = (3_000, 6_000, 12_000, 25_000, 50_000, 100_000, 200_000)


@pytest.mark.parametrize("name", SCENES)
def test_no_file_may_be_larger(workshop: Workshop, share: Share, tell: Tell, name: str) -> None:
    """The limit of the kernel is met by all libraries, too."""
    if not share(name == "tokenize", 1):
        pytest.skip("at scale alone")
    refused, sizes = 0, SIZES[: share(1, len(SIZES))]
    for size in sizes:
        folder = workshop.folder()
        workshop.stage(SCENES[name], folder)
        ended = workshop.attempt(SCENES[name].command, folder, limits={"RLIMIT_FSIZE": size})
        assert not judge(workshop, name, folder, ended, with_space=False), (size, ended.said)
        refused += ended.code != 0
        shutil.rmtree(folder)
    tell(f"{len(sizes)} sizes that no file may exceed, {refused} met")


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="to mount a file system needs root")
@pytest.mark.parametrize("name", SCENES)
def test_a_small_disk_is_full(workshop: Workshop, share: Share, tell: Tell, name: str) -> None:
    if not share(name == "tokenize", 1):
        pytest.skip("at scale alone")
    refused, sizes = 0, KILOBYTES[: share(1, len(KILOBYTES))]
    for size in sizes:
        disk = workshop.folder()
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", disk], check=False).returncode:
            pytest.skip("this system mounts nothing")
        try:
            folder = disk / "scene"
            workshop.stage(SCENES[name], folder)
            used = sum(len(content or b"") // 4096 + 1 for content in read_tree(disk).values()) * 4096
            subprocess.run(["mount", "-o", f"remount,size={used + 1024 * size}", disk], check=True)
            ended = workshop.attempt(SCENES[name].command, folder)
            subprocess.run(["mount", "-o", "remount,size=32m", disk], check=True)
            assert not judge(workshop, name, folder, ended, with_space=True), (size, ended.said)
            refused += ended.code != 0
        finally:
            subprocess.run(["umount", disk], check=True)
            disk.rmdir()
    tell(f"{len(sizes)} sizes of a disk, {refused} of them full")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", PRINTING)
def test_results_that_cannot_be_printed_are_said_to_be_lost(workshop: Workshop, share: Share, name: str) -> None:
    if not share(name in ("data", "presets"), 1):
        pytest.skip("at scale alone")
    folder = workshop.folder()
    folder.mkdir()
    ended = workshop.attempt(PRINTING[name], folder, stdout="/dev/full")
    shutil.rmtree(folder)
    assert ended.code == 5, (ended.code, ended.said)
    errors = [line for line in ended.said.splitlines() if line.startswith("tfm: error: ")]
    assert len(errors) == 1 and os.strerror(errno.ENOSPC) in errors[0], ended.said
