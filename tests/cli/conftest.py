"""A corpus and a tiny run to use the command on."""

import shutil
from functools import partial
from pathlib import Path

import pytest
from helpers.command import TINY_FLAGS, Tfm, run_command, write_lines


@pytest.fixture
def tfm(tmp_path: Path, forked: Tfm) -> Tfm:
    """Runs the command in the test's own directory, its imports done; what begins before them needs `installed`."""
    return partial(forked, cwd=tmp_path)


@pytest.fixture
def installed(tmp_path: Path) -> Tfm:
    """Runs the console script in the test's own directory, as a user runs it."""
    return partial(run_command, cwd=tmp_path)


@pytest.fixture(scope="session")
def sentences() -> list[tuple[str, str]]:
    """Number words and their translations, reversed."""
    english = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    german = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
    rows = [[(i * 7 + j * j) % 10 for j in range(1 + i % 9)] for i in range(200)]
    return [(" ".join(english[w] for w in row), " ".join(german[w] for w in reversed(row))) for row in rows]


@pytest.fixture
def corpus(tmp_path: Path, sentences: list[tuple[str, str]]) -> Path:
    """train.en, train.de, dev.en, dev.de in the test's directory."""
    for name, part in (("train", sentences[20:]), ("dev", sentences[:20])):
        write_lines(tmp_path / f"{name}.en", [src for src, _ in part])
        write_lines(tmp_path / f"{name}.de", [tgt for _, tgt in part])
    return tmp_path


@pytest.fixture(scope="session")
def tiny_run(forked: Tfm, tmp_path_factory: pytest.TempPathFactory, sentences: list[tuple[str, str]]) -> Path:
    """A run directory trained for a few steps by the command itself; not to be changed."""
    folder = tmp_path_factory.mktemp("tiny")
    write_lines(folder / "train.tsv", ["\t".join(pair) for pair in sentences])
    done = forked("train", "--data", "train.tsv", "--max-steps", 20, "--run", "tiny", *TINY_FLAGS, cwd=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder / "tiny"


@pytest.fixture
def calibrated_run(tfm: Tfm, tiny_run: Path, corpus: Path) -> Path:
    """A copy of it that has been calibrated with what it was trained on."""
    run = corpus / "calibrated"
    shutil.copytree(tiny_run, run)
    done = tfm("evaluate", "--run", run, "--src", "train.en", "--tgt", "train.de", "--calibrate")
    assert done.returncode == 0, done.stderr.decode()
    return run
