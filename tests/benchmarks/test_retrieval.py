"""The script that measures what vectors of sentences are good for: its arithmetic, and the whole of it."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from helpers.command import TINY_FLAGS, Tfm, write_lines

from .test_scripts import FOLDER, run_script


@pytest.fixture(scope="module")
def retrieval() -> ModuleType:
    """The script as a module."""
    sys.path.insert(0, str(FOLDER))
    try:
        import retrieval  # pyright: ignore[reportMissingImports]
    finally:
        sys.path.remove(str(FOLDER))
    return retrieval


def test_the_best_threshold_is_the_one_of_brute_force(retrieval: ModuleType) -> None:
    similarities = [0.9, 0.8, 0.8, 0.7, 0.3, 0.2, 0.1, 0.85, 0.05]
    wrong = [False, False, True, False, True, False, True, False, True]
    found = retrieval.detect(similarities, wrong, retrieval.best_threshold(similarities, wrong))
    tried = [retrieval.detect(similarities, wrong, threshold / 1000) for threshold in range(1001)]
    assert found.f1 == max(one.f1 for one in tried)
    assert (found.precision, found.recall) == (3 / 4, 3 / 4)
    assert found.f1 == pytest.approx(2 * found.precision * found.recall / (found.precision + found.recall))


def test_a_shuffle_moves_a_share_of_the_targets_among_themselves(retrieval: ModuleType) -> None:
    sides = [f"s{i}" for i in range(200)], [f"t{i}" for i in range(200)]
    (sources, targets), wrong = retrieval.shuffled(sides, 0.05, 1)
    assert sources == sides[0] and sorted(targets) == sorted(sides[1])
    assert sum(wrong) == 10
    assert wrong == [before != after for before, after in zip(sides[1], targets, strict=True)]
    assert retrieval.shuffled(sides, 0.05, 1)[0][1] == targets != retrieval.shuffled(sides, 0.05, 2)[0][1]


def test_it_prints_retrieval_and_detection(forked: Tfm, tmp_path: Path) -> None:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    src = [" ".join(words[(i * 7 + j * j) % 10] for j in range(1 + i % 7)) for i in range(120)]
    for name, lines in (("train", src), ("dev", src[:60]), ("test", src[60:])):
        write_lines(tmp_path / f"{name}.en", lines)
        write_lines(tmp_path / f"{name}.de", [" ".join(reversed(line.split())) for line in lines])
    (tmp_path / "hidden").mkdir()
    encoder = ("--set", "model.num_decoder_layers=0")
    data = ("--src", "train.en", "--tgt", "train.de", "--max-steps", 3, "--run", "run")
    done = forked("train", "--config", "toy-encoder", *data, *TINY_FLAGS, *encoder, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    flags = ("--run", "run", "--src", "test.en", "--tgt", "test.de", "--dev-src", "dev.en", "--dev-tgt", "dev.de")
    report = run_script(tmp_path, "retrieval.py", *flags, "--shuffle", 0.1, "--seed", 3)
    assert re.search(r"^\| 60 \| [\d.]+ % \| [\d.]+ % \| [\d.]+ % \|$", report, re.MULTILINE), report
    assert re.search(r"^\| test \| 60 \| [56] \| \d+ \| ([\d.]+ % \| ?){3}$", report, re.MULTILINE), report
    assert "* Linux" in report or "Python" in report
    assert "`retrieval.py --run run" in report and "Threshold" in report
