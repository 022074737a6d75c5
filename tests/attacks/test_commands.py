"""Every command in every situation, and every command under every signal.

The first table says with which exit code a command ends in which situation. Most tries go through the fork server, a
quarter through the installed command.
"""

import contextlib
import gzip
import os
import pty
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from helpers import forkserver
from helpers.command import TFM, TINY_FLAGS
from helpers.forkserver import Ended, ForkServer

from .conftest import Share, Tell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

ONE_PROCESS = ["--precision", "fp32", "--set", "training.ranks=1"]
TINY = [*TINY_FLAGS, *ONE_PROCESS]
DECODER = [*TINY, "--set", "model.num_encoder_layers=0", "--set", "model.positions=sinusoidal"]
FAST = [
    *("--set", "training.learning_rate=0.02"),
    *("--set", "training.warmup_steps=5"),
    *("--set", "training.validate_every=60"),
    *("--set", "training.checkpoint_every=60"),
]
"""Lets a translator learn enough for `tfm check`."""
ENCODER = [*TINY, "--set", "model.num_decoder_layers=0"]
PAIRS = ["--src", "train.en", "--tgt", "train.de"]

COMMANDS = [
    *("data", "tokenize", "train", "translate", "generate", "embed"),
    *("evaluate", "check", "explain", "info", "export", "presets"),
    *("runs", "curves", "improve", "serve"),
]

AS_IT_SHOULD: dict[str, list[str]] = {
    "data": PAIRS,
    "tokenize": [*PAIRS, "--vocab-size", "320", "--output", "out"],
    "train": [*PAIRS, *TINY, "--max-steps", "2", "--run", "out"],
    "translate": ["--run", "translator", "one two"],
    "generate": ["--run", "writer", "one two"],
    "embed": ["--run", "encoder", "one two"],
    "evaluate": ["--run", "translator", "--src", "dev.en", "--tgt", "dev.de"],
    "check": ["--run", "translator"],
    "explain": ["--run", "translator", "one two", "--format", "text"],
    "info": ["--run", "translator"],
    "export": ["--run", "translator", "--output", "out", "--check", "0"],
    "presets": [],
    "runs": ["."],
    "curves": ["translator", "--json"],
    "improve": ["--run", "translator", "--tgt-text", "train.de", "--max-time", "1h"],
    "serve": ["--run", "en-de=translator", "--port", "0"],
}
"""Arguments with which a command does its work."""

MISSPELT = {
    "data": "--scr",
    "tokenize": "--vocab-sizes",
    "train": "--max-step",
    "translate": "--bem-size",
    "generate": "--temprature",
    "embed": "--imput",
    "evaluate": "--metrics",
    "check": "--chekpoint",
    "explain": "--haed",
    "info": "--rnu",
    "export": "--quantisation",
    "presets": "--jsn",
    "runs": "--jsn",
    "curves": "--metrik",
    "improve": "--max-tim",
    "serve": "--prot",
}

FILE: dict[str, list[str]] = {
    "data": ["--src", "{}", "--tgt", "train.de"],
    "tokenize": ["--src", "{}", "--output", "out"],
    "train": ["--src", "{}", "--tgt", "train.de", *TINY, "--max-steps", "1", "--run", "out"],
    "translate": ["--run", "translator", "--input", "{}"],
    "generate": ["--run", "writer", "--input", "{}"],
    "embed": ["--run", "encoder", "--input", "{}"],
    "evaluate": ["--run", "translator", "--src", "{}", "--tgt", "train.de"],
    "check": ["--run", "translator", "--src", "{}", "--tgt", "train.de"],
    "explain": ["--run", "{}", "one two", "--format", "text"],
    "info": ["--run", "{}"],
    "export": ["--run", "{}", "--output", "out"],
    "presets": ["{}"],
    "runs": ["{}"],
    "curves": ["{}"],
    "improve": ["--run", "translator", "--tgt-text", "{}"],
    "serve": ["--run", "en-de={}"],
}
"""Arguments that name a file to read: text, a run, a preset or a folder."""

CODES = """
                    data tokenize train translate generate embed evaluate check
no-arguments           2        2     -         2        2     2        2     2
help                   0        0     0         0        0     0        0     0
bad-flag               2        2     2         2        2     2        2     2
misspelt-flag          2        2     2         2        2     2        2     2
as-it-should           0        0     0         0        0     0        0     0
missing-file           3        3     3         3        3     3        3     3
directory-as-file      3        3     3         2        3     3        3     3
unreadable-file        3        3     3         3        3     3        3     3
zip-as-text            3        3     3         3        3     3        3     3
docx-as-text           3        3     3         3        3     3        3     3
csv-as-text            3        3     3         2        3     3        3     3
json-as-text           3        3     3         3        3     3        3     3
gzip-as-text           0        0     0         0        0     0        0     0
closed-stdin           0        0     0         0        0     0        0     0
closed-stdout          5        5     0         5        5     5        5     5
closed-stderr          0        0     0         0        0     0        0     0
full-stdout            5        5     0         5        5     5        5     5
full-stderr            0        0     0         0        0     0        0     0
reader-gone          141      141     0       141      141   141      141   141
terminal               0        0     0         0        0     0        0     0
typed-text             -        -     -         0        0     0        -     -
plain-locale           0        0     0         0        0     0        0     0
cp1252                 0        0     0         0        0     0        0     0
dumb-terminal          0        0     0         0        0     0        0     0
narrow-terminal        0        0     0         0        0     0        0     0
read-only-folder       0        5     5         0        0     0        0     0
not-utf8-argument      3        2     2         0        0     0        3     3

                    explain info export presets runs curves improve serve
no-arguments              2    2      0       0    0      2       2     2
help                      0    0      0       0    0      0       0     0
bad-flag                  2    2      2       2    2      2       2     2
misspelt-flag             2    2      2       2    2      2       2     2
as-it-should              0    0      0       0    0      0       -     -
missing-file              4    4      4       2    2      4       3     4
directory-as-file         4    4      4       2    0      3       3     4
unreadable-file           4    4      4       2    2      4       3     4
zip-as-text               4    4      4       2    2      4       3     4
docx-as-text              4    4      4       2    2      4       3     4
csv-as-text               4    4      4       2    2      4       3     4
json-as-text              4    4      4       2    2      4       3     4
gzip-as-text              4    4      4       2    2      4       -     4
closed-stdin              0    0      0       0    0      0       -     -
closed-stdout             5    5      5       5    5      5       -     -
closed-stderr             0    0      0       0    0      0       -     -
full-stdout               5    5      5       5    5      5       -     -
full-stderr               0    0      0       0    0      0       -     -
reader-gone             141  141    141     141  141    141       -     -
terminal                  0    0      0       0    0      0       -     -
typed-text                -    -      -       -    -      -       -     -
plain-locale              0    0      0       0    0      0       -     -
cp1252                    0    0      0       0    0      0       -     -
dumb-terminal             0    0      0       0    0      0       -     -
narrow-terminal           0    0      0       0    0      0       -     -
read-only-folder          0    0      5       0    0      0       -     -
not-utf8-argument         0    4      4       2    2      4       3     4
"""
"""The exit code of each command in each situation; - where there is no such situation.

`tfm train` without arguments begins to train. It prints nothing, so that its standard output does not matter. A table
and a folder are translated as a whole, so `tfm translate --input a.csv` lacks an --output. `tfm export` lists what it
can write. `tfm improve` and `tfm serve` do not end by themselves in a time that a test has.
"""

SAME_OUTPUT = [
    *("as-it-should", "closed-stdin", "closed-stderr", "full-stderr", "plain-locale", "cp1252"),
    *("dumb-terminal", "narrow-terminal", "read-only-folder"),
]
"""Situations in which standard output holds what it always does."""

STREAMS: dict[str, dict[str, str | None]] = {
    "closed-stdin": {"stdin": None},
    "closed-stdout": {"stdout": None},
    "closed-stderr": {"stderr": None},
    "full-stdout": {"stdout": "/dev/full"},
    "full-stderr": {"stderr": "/dev/full"},
}
ENVIRONMENTS = {
    "plain-locale": {"LANG": "C", "LC_ALL": "C"},
    "cp1252": {"PYTHONIOENCODING": "cp1252"},
    "dumb-terminal": {"TERM": "dumb"},
    "narrow-terminal": {"COLUMNS": "20"},
}
NAMES = {
    "missing-file": "nowhere",
    "directory-as-file": "folder",
    "unreadable-file": "locked",
    "zip-as-text": "texts.zip",
    "docx-as-text": "texts.docx",
    "csv-as-text": "texts.csv",
    "json-as-text": "texts.json",
    "gzip-as-text": "train.en.gz",
}
"""What is given as a file to read."""
BEFORE = {
    "unreadable-file": "without_privileges",
    "read-only-folder": "without_privileges",
    "reader-gone": "without_reader",
}
"""Functions of the fork server that arrange a situation."""
SAID: dict[str, dict[str, list[str]]] = {
    "misspelt-flag": {
        "data": ["--src"],
        "tokenize": ["--vocab-size"],
        "train": ["--max-steps"],
        "translate": ["--beam-size"],
        "generate": ["--temperature"],
        "embed": ["--input"],
        "evaluate": ["--metric"],
        "check": ["--checkpoint"],
        "explain": ["--head"],
        "info": ["--run"],
        "export": ["--quantization"],
        "presets": ["--json"],
    },
    "typed-text": {command: ["type a sentence and press Enter; Ctrl-D ends", "> "] for command in COMMANDS},
    "closed-stdout": {command: ["standard output is closed"] for command in COMMANDS if command != "train"},
    "full-stdout": {command: ["cannot write standard output: No space"] for command in COMMANDS if command != "train"},
    "docx-as-text": {command: ["take its texts out as XLIFF or PO"] for command in COMMANDS[:8]},
}
"""What standard error names: the right option, what to do, what is wrong."""
OWN_PROCESS = 4
"""One try of so many is made with the installed command."""


def codes() -> dict[tuple[str, str], int]:
    """The tables: exit code by situation and command."""
    found: dict[tuple[str, str], int] = {}
    for table in CODES.strip().split("\n\n"):
        commands, *rows = (line.split() for line in table.splitlines())
        for situation, *ends in rows:
            found |= {
                (situation, command): int(code) for command, code in zip(commands, ends, strict=True) if code != "-"
            }
    return found


EXPECTED = codes()
SITUATIONS = list(dict.fromkeys(situation for situation, _ in EXPECTED))


@pytest.fixture(scope="session")
def workshop(server: ForkServer, corpus_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus, a run of each kind, and files that are no text."""
    folder = tmp_path_factory.mktemp("workshop")
    for file in corpus_files.iterdir():
        shutil.copy(file, folder)
    zipped = b"PK\x03\x04" + bytes(100)
    (folder / "texts.zip").write_bytes(zipped)
    (folder / "texts.docx").write_bytes(zipped)
    (folder / "texts.csv").write_text("src,tgt\none,eins\n")
    (folder / "texts.json").write_text('[{"src": "one", "tgt": "eins"}]\n')
    (folder / "train.en.gz").write_bytes(gzip.compress((folder / "train.en").read_bytes()))
    (folder / "locked").write_text("one\n")
    (folder / "locked").chmod(0)
    (folder / "folder").mkdir()
    text = ["--text", "train.en", "--dev-text", "dev.en"]
    for name, steps, flags in (
        ("translator", 60, [*PAIRS, *TINY, *FAST]),
        ("writer", 2, ["--config", "toy-text", *text, *DECODER]),
        ("encoder", 2, ["--config", "toy-encoder", *PAIRS, *ENCODER]),
    ):
        done = server.run("train", *flags, "--max-steps", steps, "--run", name, cwd=folder)
        assert done.code == 0, done.said
    return folder


def arguments_of(command: str, situation: str) -> list[str]:
    """What is typed."""
    match situation:
        case "no-arguments":
            return [command]
        case "help":
            return [command, "--help"]
        case "bad-flag":
            return [command, "--utter-nonsense"]
        case "misspelt-flag":
            return [command, MISSPELT[command], "x"]
        case "typed-text":
            return [command, *AS_IT_SHOULD[command][:-1]]
        case "not-utf8-argument" if command in ("translate", "generate", "embed", "explain"):
            return [command, *(one.replace("one", "one\udcff") for one in AS_IT_SHOULD[command])]
        case "not-utf8-argument":
            return [command, *(one.replace("{}", "a\udcff") for one in FILE[command])]
        case _ if situation in NAMES:
            return [command, *(one.replace("{}", NAMES[situation]) for one in FILE[command])]
        case _:
            return [command, *AS_IT_SHOULD[command]]


CTRL_D = b"\x04"


class Terminal:
    """A pseudo-terminal, and what appears on it.

    Args:
        typed: What somebody types.
    """

    def __init__(self, typed: bytes) -> None:
        self._ours, self._theirs = pty.openpty()
        self.name = os.ttyname(self._theirs)
        self._shown = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        os.write(self._ours, typed)

    def _read(self) -> None:
        ended = False
        with contextlib.suppress(OSError):  # nobody has it open any more
            while piece := os.read(self._ours, 65536):
                self._shown += piece
                if not ended and self._shown.count(b"> ") == 2:  # it asks for one more line
                    os.write(self._ours, CTRL_D)
                    ended = True

    def close(self) -> bytes:
        """Closes it once the command has ended; returns all that appeared."""
        os.close(self._theirs)
        self._reader.join()
        os.close(self._ours)
        return self._shown.replace(b"\r\n", b"\n")


def run(start: Callable[..., Ended], folder: Path, command: str, situation: str) -> Ended:
    """A command in a situation, by `ForkServer.run` or by `installed`."""
    options: dict[str, Any] = {"env": ENVIRONMENTS.get(situation, {}), **STREAMS.get(situation, {})}
    if situation in BEFORE:
        options["before"] = f"helpers.forkserver:{BEFORE[situation]}"
    terminal = Terminal(b"one two\n") if situation in ("terminal", "typed-text") else None
    if terminal is not None:
        options |= {"stdin": terminal.name, "stdout": terminal.name, "stderr": terminal.name}
    folder.chmod(0o555 if situation == "read-only-folder" else 0o755)
    try:
        done = start(*arguments_of(command, situation), cwd=folder, **options)
        return done if terminal is None else Ended(done.code, b"", terminal.close(), done.seconds)
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder / "out", ignore_errors=True)


def installed(
    *arguments: str,
    cwd: Path,
    stdin: str | None = os.devnull,
    stdout: str | None = "",
    stderr: str | None = "",
    env: Mapping[str, str],
    before: str = "",
) -> Ended:
    """The installed command in a process of its own; the options are those of `ForkServer.call`."""

    def arrange() -> None:
        if before:
            getattr(forkserver, before.partition(":")[2])()
        for number, name in enumerate((stdin, stdout, stderr)):
            if name is None:
                os.close(number)

    began = time.monotonic()
    with contextlib.ExitStack() as files:
        streams = [
            subprocess.PIPE if not name else files.enter_context(open(name, mode))
            for name, mode in ((stdin or os.devnull, "rb"), (stdout, "wb"), (stderr, "wb"))
        ]
        done = subprocess.run(
            [TFM, *arguments],
            cwd=cwd,
            env={**os.environ, "OMP_NUM_THREADS": "1", **env},
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            preexec_fn=arrange,
            timeout=240,
            check=False,
        )
    return Ended(done.returncode, done.stdout or b"", done.stderr or b"", time.monotonic() - began)


def problems_of(done: Ended, command: str, situation: str, usual: bytes) -> list[str]:
    """What is wrong with the end of a command."""
    code = EXPECTED[situation, command]
    lines = done.said.splitlines()
    errors = [line for line in lines if line.startswith("tfm: error: ")]
    wrong = [f"exit code {done.code}, not {code}"] if done.code != code else []
    wrong += [f"says {words!r}" for words in ("Traceback", "bug in tfm", "Exception ignored") if words in done.said]
    if len(errors) != (code in (2, 3, 4, 5)):
        wrong.append(f"{len(errors)} lines of errors")
    if errors and lines[-1] != errors[0]:
        wrong.append("something follows the error")
    if code and done.stdout:
        wrong.append("results before an error")
    if not code and situation in SAME_OUTPUT and done.stdout != usual:
        wrong.append(f"another output: {done.stdout[:300]!r} instead of {usual[:300]!r}")
    for words in SAID.get(situation, {}).get(command, ()):
        if words not in done.said:
            wrong.append(f"does not say {words!r}")
    return wrong


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_in_every_situation(
    command: str, server: ForkServer, workshop: Path, share: Share, tell: Tell
) -> None:
    number = COMMANDS.index(command)
    situations = [situation for situation in SITUATIONS if (situation, command) in EXPECTED]
    shift = 5 * number % len(situations)
    chosen = [*situations[shift:], *situations[:shift]][: share(1, len(situations))]
    usual = run(server.run, workshop, command, "as-it-should").stdout if set(chosen) & set(SAME_OUTPUT) else b""
    seconds: list[float] = []
    wrong: list[str] = []
    for turn, situation in enumerate(chosen):
        alone = (turn + number) % OWN_PROCESS == OWN_PROCESS - 1 or situation == "plain-locale"
        start: Callable[..., Ended] = installed if alone else server.run
        done = run(start, workshop, command, situation)
        seconds.append(done.seconds)
        wrong += [
            f"tfm {command}, {situation}{', installed' if alone else ''}: {problem}\n{done.said}"
            for problem in problems_of(done, command, situation, usual)
        ]
    assert not wrong, "\n".join(wrong)
    tell(f"{len(chosen)} situations: 0 surprises, {statistics.mean(seconds):.1f} s each")


@pytest.mark.parametrize(
    ("arguments", "code", "stdout", "stderr"),
    [
        ([], 2, b"", b"Usage: tfm"),
        (["--help"], 0, b"Usage: tfm", b""),
        (["--version"], 0, b"tfm 0.", b""),
        (["nonsense"], 2, b"", b"tfm: error: No such command 'nonsense'"),
        (["--nonsense"], 2, b"", b"tfm: error: No such option: --nonsense"),
    ],
)
def test_tfm_itself(
    arguments: list[str], code: int, stdout: bytes, stderr: bytes, server: ForkServer, tmp_path: Path
) -> None:
    done = server.run(*arguments, cwd=tmp_path)
    assert done.code == code
    assert done.stdout.startswith(stdout) and done.stderr.startswith(stderr)
    assert bool(done.stdout) == bool(stdout) and bool(done.stderr) == bool(stderr)


@dataclass(frozen=True)
class Work:
    """A command that takes about a second or two.

    Attributes:
        arguments: Of the command, which runs in an empty folder; `{}` stands for the workshop.
        unfinished: What it may leave there, when it is interrupted.
    """

    arguments: list[str]
    unfinished: tuple[str, ...] = ()


BIG = ["--src", "{}/big.en", "--tgt", "{}/big.de"]
SMALL = ["--src", "{}/train.en", "--tgt", "{}/train.de"]
TRAIN = ["train", *SMALL, *TINY_FLAGS, "--precision", "fp32", "--max-steps", "60", "--run", "out"]
WORKS = {
    "data": Work(["data", *BIG, "--report", "out"], ("out.partial",)),
    "tokenize": Work(["tokenize", "--src", "{}/random.en", "--vocab-size", "4000", "--output", "out"]),
    "train": Work([*TRAIN, "--set", "training.ranks=1"], ("out",)),
    "train, two processes": Work([*TRAIN, "--set", "training.ranks=2"], ("out",)),
    "train --dry-run": Work([*TRAIN, "--set", "training.ranks=2", "--dry-run"], ("out",)),
    "translate": Work(
        ["translate", "--run", "{}/translator", "--input", "{}/train.en", "--output", "out"],
        ("out.partial", "out.work.partial"),
    ),
    "generate": Work(["generate", "--run", "{}/writer", "--input", "{}/train.en", "--output", "out"], ("out.partial",)),
    "embed": Work(
        ["embed", "--run", "{}/encoder", "--input", "{}/big.en", "--output", "out.jsonl"], ("out.jsonl.partial",)
    ),
    "evaluate": Work(["evaluate", "--run", "{}/translator", *SMALL, "--output", "out"], ("out.partial",)),
    "check": Work(["check", "--run", "{}/translator"]),
    "explain": Work(["explain", "--run", "{}/translator", "one two", "--output", "out.html"], ("out.html.partial",)),
    "info": Work(["info", "--run", "{}/translator"]),
    "export": Work(["export", "--run", "{}/translator", "--output", "out"], ("out",)),
    "presets": Work(["presets"]),
}
A_FEW = ("translate",)
"""Works that are interrupted in every test, the others in full attacks alone."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SOON, LATEST = 1.0, 15.0
"""Seconds within which half of the tries end, where many are made, and all of them on a machine that is busy."""


@pytest.fixture(scope="session")
def big(workshop: Path) -> Path:
    """The workshop with a corpus, and a text for SentencePiece, on which work takes a while."""
    for side in ("en", "de"):
        (workshop / f"big.{side}").write_text((workshop / f"train.{side}").read_text("utf-8") * 60, "utf-8")
    dice = random.Random(0)
    words = ("".join(dice.choices("abcdefghijklmnop", k=dice.randint(3, 9))) for _ in range(40_000))
    lines = (" ".join(some) + "\n" for some in zip(*[words] * 8, strict=True))
    (workshop / "random.en").write_text("".join(lines), "utf-8")
    return workshop


class Attempt:
    """A work under way in an empty folder, with its own folder for temporary files.

    Args:
        work: What is done.
        big: The workshop.
        folder: For both folders.
        server: Starts it; without one, the installed command is a process of its own.
    """

    def __init__(self, work: Work, big: Path, folder: Path, server: ForkServer | None) -> None:
        self.mark = f"attempt-{os.getpid()}-{folder.name}"
        self.place, self.temporary = folder / "place", folder / "temporary"
        self.place.mkdir(parents=True)
        self.temporary.mkdir()
        arguments = [one.replace("{}", str(big)) for one in work.arguments]
        env = {"ATTEMPT": self.mark, "TMPDIR": str(self.temporary)}
        self._job = self._process = None
        if server is not None:
            before = {"before": "helpers.forkserver:with_temporary_folder", "told": str(self.temporary)}
            self._job = server.start(*arguments, cwd=self.place, env=env, **before)
            self.pid = self._job.pid
        else:
            self._process = subprocess.Popen(
                [TFM, *arguments],
                cwd=self.place,
                env={**os.environ, "OMP_NUM_THREADS": "1", **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self.pid = self._process.pid

    def await_command(self) -> None:
        """Waits until signals are the command's to answer.

        Raises:
            AssertionError: It has ended, and never answered any.
        """
        status = Path(f"/proc/{self.pid}/status")
        while not self.has_ended():
            caught = next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("SigCgt:"))
            if int(caught, 16) >> (signal.SIGTERM - 1) & 1:
                return
            time.sleep(0.002)
        raise AssertionError("the command answers no SIGTERM")

    def has_ended(self) -> bool:
        """Whether nothing is left to be interrupted."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    def send(self, number: signal.Signals) -> None:
        """Sends a signal: to the command, or to all of its group where a terminal would."""
        with contextlib.suppress(ProcessLookupError):
            (os.kill if number == signal.SIGTERM else os.killpg)(self.pid, number)

    def wait(self) -> Ended:
        """Waits until it ends, and measures how long that takes from now on."""
        began = time.monotonic()
        if self._job is not None:
            done = self._job.wait(60)
        else:
            assert self._process is not None
            stdout, stderr = self._process.communicate(timeout=60)
            done = Ended(self._process.returncode, stdout, stderr, 0)
        return Ended(done.code, done.stdout, done.stderr, time.monotonic() - began)

    def names(self) -> set[str]:
        """What is in the folder in which it ran."""
        return {path.name for path in self.place.iterdir()}

    def left_behind(self, expected: set[str]) -> list[str]:
        """Processes, temporary files but for torch's own, and files that were not to be expected."""
        last = time.monotonic() + 0.5
        while (alive := self._alive()) and time.monotonic() < last:
            time.sleep(0.02)
        empty = [path.name for path in self.place.iterdir() if path.is_file() and not path.stat().st_size]
        return [
            *(f"process {one}" for one in alive),
            *(f"temporary {path.name}" for path in self.temporary.iterdir() if "torchinductor" not in path.name),
            *(f"file {name}" for name in sorted(self.names() - expected)),
            *(f"empty file {name}" for name in empty),
        ]

    def _alive(self) -> list[str]:
        """Processes that inherited our mark."""
        found: list[str] = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"ATTEMPT={self.mark}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_text().replace("\0", " ").strip())
        return [one for one in found if one]


def wrong_after_signal(number: signal.Signals, done: Ended, attempt: Attempt, work: Work, usual: Attempt) -> list[str]:
    """What is wrong with how a work ended that was sent a signal."""
    lines = done.said.splitlines()
    wrong = [f"says {words!r}" for words in ("Traceback", "tfm: error", "Exception ignored") if words in done.said]
    if done.seconds > LATEST:
        wrong.append(f"ended after {done.seconds:.1f} s")
    answered = bool(lines) and lines[-1].startswith("tfm: ")
    if done.code == 128 + number and not answered:
        wrong.append("does not say that it was interrupted")
    if done.code == 128 + number or (done.code == -number and answered):  # answered, and then came a second one
        return wrong + attempt.left_behind({*work.unfinished, *usual.names()})
    if done.code not in (0, -number):
        return [*wrong, f"exit code {done.code}"]
    # It had ended, but for Python's own end.
    if attempt.names() != usual.names():
        wrong.append(f"exit code {done.code}, but {attempt.names()} is not all")
    return wrong + attempt.left_behind(usual.names())


@pytest.mark.parametrize("name", WORKS)
def test_every_command_answers_every_signal(
    name: str, server: ForkServer, big: Path, tmp_path: Path, share: Share, tell: Tell
) -> None:
    tries = share(2 if name in A_FEW else 0, 24)
    if not tries:
        pytest.skip("only at scale")
    work, dice = WORKS[name], random.Random(name)
    usual = Attempt(work, big, tmp_path / "usual", server)
    whole = usual.wait()
    assert whole.code == 0, whole.said
    seconds: list[float] = []
    after = 0
    for turn in range(tries):
        number, alone = SIGNALS[turn % 3], turn % OWN_PROCESS == OWN_PROCESS - 1
        moment = dice.uniform(0, whole.seconds + 2 * alone)
        twice = dice.random() < 0.25
        attempt = Attempt(work, big, tmp_path / f"try-{turn}", None if alone else server)
        attempt.await_command()
        time.sleep(moment)
        if attempt.has_ended():
            after += 1
        attempt.send(number)
        if twice:
            time.sleep(0.005)
            attempt.send(number)
        done = attempt.wait()
        seconds.append(done.seconds)
        wrong = wrong_after_signal(number, done, attempt, work, usual)
        how = f"{'twice ' * twice}after {moment:.3f} of {whole.seconds:.1f} s{', installed' * alone}"
        assert not wrong, f"{name}, try {turn}: {number.name} {how}: {'; '.join(wrong)}\n{done.said}"
    # A training makes its update first, and saves.
    assert statistics.median(seconds) < SOON or tries < 10 or name.startswith("train"), seconds
    tell(
        f"{tries} signals, {after} of them after the end: nothing left behind; ended after"
        f" {statistics.median(seconds):.2f} s (median), {max(seconds):.2f} s (longest)"
    )
