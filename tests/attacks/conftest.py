"""Attacks: small shares of each in `make test`; all of one by `make attack-kills`, `make attack-disk`, and so on."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.command import TINY_FLAGS
from helpers.forkserver import ForkServer

PAIRS = ["--src", "train.en", "--tgt", "train.de", "--dev-src", "dev.en", "--dev-tgt", "dev.de"]
"""The data of a training in the folder `corpus_files`."""
TINY_AND_SAME = [*TINY_FLAGS, "--precision", "fp32", "--set", "training.ranks=1"]
"""Makes a preset small enough for a test, and its results the same on every machine."""

Tell = Callable[[str], None]
Share = Callable[[int, int], int]


@pytest.fixture
def share(request: pytest.FixtureRequest) -> Share:
    """Of two numbers, a few and all: how often a test is to try."""
    at_scale = request.config.getoption("--at-scale")
    return lambda few, all_: all_ if at_scale else few


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Says what was measured, in a line at the end of the tests."""
    return lambda figure: record_property("figure", figure)


@pytest.fixture(scope="session")
def corpus_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.en, train.de, dev.en and dev.de: number words and their translations, reversed."""
    english = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    german = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
    rows = [[(i * 7 + j * j) % 10 for j in range(1 + i % 9)] for i in range(150)]
    folder = tmp_path_factory.mktemp("corpus")
    for name, part in (("train", rows[20:]), ("dev", rows[:20])):
        sources = "".join(" ".join(english[w] for w in row) + "\n" for row in part)
        targets = "".join(" ".join(german[w] for w in reversed(row)) + "\n" for row in part)
        (folder / f"{name}.en").write_text(sources, encoding="utf-8")
        (folder / f"{name}.de").write_text(targets, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def model(server: ForkServer, corpus_files: Path) -> Path:
    """A trained model."""
    ended = server.run("train", *PAIRS, *TINY_AND_SAME, "--max-steps", 20, "--run", "model", cwd=corpus_files)
    assert ended.code == 0, ended.said
    return corpus_files / "model"
