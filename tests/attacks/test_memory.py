"""Attack: long inputs, long lines and long trainings. Memory stays flat, and a stream is answered as it comes."""

import contextlib
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest
from helpers.forkserver import ForkServer
from helpers.memory import MEGABYTE, resident

from tfm.data.reading import read_lines
from tfm.data.toy import toy_pairs

from .conftest import PAIRS, TINY_AND_SAME, Share, Tell

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc tells how much memory is held")


def sentences(count: int) -> tuple[list[bytes], str]:
    """So many English sentences, and where they are from."""
    folder = os.environ.get("TFM_CORPORA")
    path = Path(folder or "", "multi30k", "train.en")
    if folder and path.exists():
        return [(line or "").encode() for line in islice(cycle(read_lines(path)), count)], "Multi30k"
    return [src.encode() for src, _ in toy_pairs("train", size=count)], "the toy language"


class Translating:
    """`tfm translate` on pipes.

    Args:
        server: Starts it.
        model: The run.
        folder: For the pipes.
        flags: Further ones.
    """

    def __init__(self, server: ForkServer, model: Path, folder: Path, *flags: str) -> None:
        pipes = [tempfile.mktemp(dir=folder) for _ in range(2)]
        for pipe in pipes:
            os.mkfifo(pipe)
        options = {"cwd": folder, "stdin": pipes[0], "stdout": pipes[1]}
        self.job = server.start("translate", "--run", model, "--beam-size", 1, *flags, **options)
        self.stdin, self.stdout = open(pipes[0], "wb"), open(pipes[1], "rb")  # noqa: SIM115

    def __enter__(self) -> "Translating":
        return self

    def __exit__(self, *_: object) -> None:
        self.job.kill()
        for stream in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):  # what could not be flushed any more
                stream.close()

    def ask(self, line: bytes) -> tuple[bytes, float]:
        """A line, its answer, and the seconds between them."""
        began = time.monotonic()
        self.stdin.write(line + b"\n")
        self.stdin.flush()
        return self.stdout.readline(), time.monotonic() - began

    def send(self, lines: list[bytes]) -> None:
        """Writes lines from a thread of their own, and ends the input."""

        def write() -> None:
            with contextlib.suppress(OSError):  # it has died
                self.stdin.writelines(line + b"\n" for line in lines)
                self.stdin.close()

        threading.Thread(target=write, daemon=True).start()


def test_translating_many_lines(server: ForkServer, model: Path, tmp_path: Path, share: Share, tell: Tell) -> None:
    lines, origin = sentences(share(2_000, 20_000))
    held: list[int] = []
    with Translating(server, model, tmp_path) as translating:
        translating.send(lines)
        number = 0
        for number, answer in enumerate(translating.stdout, start=1):
            assert answer.endswith(b"\n")
            if number % 500 == 0 and number < len(lines):  # the process is sure to be there
                held.append(resident(translating.job.pid))
        assert translating.job.wait().code == 0 and number == len(lines)
    growth = max(held) - held[1]
    tell(f"{len(lines):,} lines of {origin} translated: {growth / MEGABYTE:.1f} MB more than after 1,000")
    assert growth < 50 * MEGABYTE


def echoed(server: ForkServer, path: Path, by_name: bool, pause: float) -> dict[str, int]:
    """What the line machinery tells of the lines of a file, which it is told the name of or reads as a stream."""
    source, stdin = (str(path), b"") if by_name else (None, str(path))
    job = server.call("helpers.memory:echo_lines", source, pause, cwd=path.parent, stdin=stdin)
    return json.loads(job.wait(600).stdout)


@pytest.mark.parametrize("by_name", [True, False], ids=["a file", "a stream"])
def test_the_line_machinery(server: ForkServer, tmp_path: Path, share: Share, tell: Tell, by_name: bool) -> None:
    count = share(50_000, 1_000_000)
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"line {number} of a million, which all say the same\n" for number in range(count)))
    found = echoed(server, path, by_name, pause=0)
    tell(f"{found['lines']:,} lines through a model that echoes: {found['growth'] / MEGABYTE:.1f} MB more")
    assert found["lines"] == count and found["growth"] < 20 * MEGABYTE


def test_a_training(server: ForkServer, corpus_files: Path, tmp_path: Path, share: Share, tell: Tell) -> None:
    steps, run = share(120, 600), tmp_path / "run"
    seldom = ["--set", "training.validate_every=50", "--set", "training.checkpoint_every=50"]
    job = server.start("train", *PAIRS, *TINY_AND_SAME, *seldom, "--max-steps", steps, "--run", run, cwd=corpus_files)
    held: list[int] = []
    for step in steps_of(run / "metrics.jsonl", steps):
        if step >= 100:
            held.append(resident(job.pid))
    assert job.wait().code == 0
    growth = max(held) - held[0]
    tell(f"{steps} steps: {growth / MEGABYTE:.1f} MB more than after 100, seen {len(held)} times")
    assert growth < 50 * MEGABYTE


def steps_of(log: Path, last: int) -> Iterator[int]:
    """The steps that a training writes to its log, as it goes; not the last one, after which it may be gone."""
    step, patience = 0, time.monotonic() + 240
    while step < last and time.monotonic() < patience:
        records = [json.loads(line) for line in log.read_text().split("\n")[:-1]] if log.exists() else []
        now = max((record.get("step", 0) for record in records), default=0)
        if step < now < last:
            yield now
        step = now
        time.sleep(0.01)


def test_a_stream_is_answered_line_by_line(
    server: ForkServer, model: Path, tmp_path: Path, share: Share, tell: Tell
) -> None:
    rng = random.Random(17)
    waits: list[float] = []
    with Translating(server, model, tmp_path) as translating:
        translating.ask(b"one")  # the model is loaded
        for line in sentences(share(10, 300))[0]:
            answer, seconds = translating.ask(line)
            assert answer.endswith(b"\n")
            waits.append(seconds)
            time.sleep(rng.choice([0, 0, 0.01, 0.1]))
        assert translating.job.ended() is None
    tell(f"{len(waits)} lines on an open pipe: the slowest answer after {max(waits):.2f} s")
    assert max(waits) < 2


@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "JSON"])
def test_the_reader_dies(
    server: ForkServer, model: Path, tmp_path: Path, share: Share, tell: Tell, flags: list[str]
) -> None:
    count = share(1, 50)
    for number in range(count):
        with Translating(server, model, tmp_path, *flags) as translating:
            translating.send([b"one two three"] * 5_000)
            for _ in range(random.Random(number).choice([0, 1, 7, 300])):
                translating.stdout.readline()
            translating.stdout.close()
            ended = translating.job.wait()
            said = [line for line in ended.said.splitlines() if "translated in parts" not in line]
            assert (ended.code, said) == (141, []), f"try {number}"
    tell(f"{count} dead readers: 141 each time, and not a word")


COMMANDS = {
    "translate a file": ["translate", "--run", "model", "--beam-size", 1, "--input", "long.txt"],
    "translate a stream": ["translate", "--run", "model", "--beam-size", 1],
    "build a vocabulary": ["tokenize", "--src", "long.txt", "--output", "vocabulary"],
    "train": ["train", "--src", "long.txt", "--tgt", "long.txt", *TINY_AND_SAME, "--max-steps", 2, "--run", "run"],
}


@pytest.mark.parametrize(
    "name", [*COMMANDS][:2] + [pytest.param(name, marks=pytest.mark.slow) for name in [*COMMANDS][2:]]
)
def test_a_line_of_a_hundred_megabytes(
    server: ForkServer, model: Path, tmp_path: Path, share: Share, tell: Tell, name: str
) -> None:
    (tmp_path / "model").symlink_to(model)
    size, peaks = share(20, 100), list[int]()
    for megabytes in (2, size):  # a line is cut after one
        folder = tmp_path / str(megabytes)
        folder.mkdir()
        (folder / "model").symlink_to(model)
        around = [b"".join(b"line %d %s\n" % (number, end) for number in range(200)) for end in (b"before", b"behind")]
        (folder / "long.txt").write_bytes(around[0] + b"x" * megabytes * MEGABYTE + b"\n" + around[1])
        told, stdin = str(folder / "peak"), str(folder / "long.txt") if name == "translate a stream" else b""
        options = {"stdin": stdin, "before": "helpers.memory:tell_peak", "told": told}
        ended = server.run(*COMMANDS[name], cwd=folder, **options)
        assert ended.code == (3 if name.startswith("translate") else 0), ended
        peaks.append(int(Path(told).read_text()))
    growth = peaks[1] - peaks[0]
    tell(f"{name}, with a line of {size} MB: {growth / MEGABYTE:.1f} MB more than with one of 2 MB")
    assert growth < 50 * MEGABYTE


@pytest.mark.parametrize("by_name", [True, False], ids=["a file", "a stream"])
def test_many_long_lines(server: ForkServer, tmp_path: Path, share: Share, tell: Tell, by_name: bool) -> None:
    path, count = tmp_path / "long.txt", share(100, 1_000)
    with open(path, "wb") as file:
        file.writelines([b"one\n"] * 1_000)
        file.writelines(b"x" * 900_000 + b"\n" for _ in range(count))
    found = echoed(server, path, by_name, pause=0.01)
    tell(f"{count:,} lines of 0.9 MB: {found['growth'] / MEGABYTE:.1f} MB more")
    assert found["lines"] == 1_000 + count and found["growth"] < 50 * MEGABYTE
