"""The ladder of small corpora: no sentence on two sides, rungs within each other, loops counted."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from helpers.command import TINY_FLAGS, write_lines

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"
WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


@pytest.fixture
def ladder(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    import ladder  # pyright: ignore[reportMissingImports]

    return ladder


@pytest.fixture
def built(ladder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two rungs of a corpus with sentences that stand in several parts, and twice in one."""
    numbers = [" ".join(WORDS[int(digit)] for digit in str(number)) for number in range(100, 220)]
    (tmp_path / "corpora" / "counting").mkdir(parents=True)
    parts = {"train": [*numbers, *numbers[:5], ""], "valid": numbers[100:115], "test": numbers[110:]}
    for part, sources in parts.items():
        write_lines(tmp_path / "corpora" / "counting" / f"{part}.en", sources)
        write_lines(tmp_path / "corpora" / "counting" / f"{part}.xx", [f"{source} !" for source in sources])
    monkeypatch.setattr(ladder, "SOURCES", (ladder.Source("counting", "en", "xx"),))
    monkeypatch.setattr(ladder, "SIZES", (40, 80, 160))
    monkeypatch.setattr(ladder, "rung_name", lambda folder, size: f"{folder}-{size}")
    ladder.build(tmp_path / "corpora", tmp_path / "work")
    return tmp_path / "work"


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_no_source_stands_on_two_sides_and_a_rung_is_within_the_next(built: Path) -> None:
    assert sorted(path.name for path in built.iterdir()) == ["counting-40", "counting-80"]
    small, large = (lines(built / rung / "train.src") for rung in ("counting-40", "counting-80"))
    assert len(small) == 40 and large[:40] == small
    parts = [set(large), *(set(lines(built / "counting-80" / f"{part}.src")) for part in ("valid", "test"))]
    assert len(parts[0]) == 80 and (len(parts[1]), len(parts[2])) == (10, 10)
    assert not parts[0] & parts[1] and not parts[0] & parts[2] and not parts[1] & parts[2]
    for part in ("train", "valid", "test"):
        sides = [lines(built / "counting-80" / f"{part}.{side}") for side in ("src", "tgt")]
        assert sides[1] == [f"{source} !" for source in sides[0]]


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("", False),
        ("a b c a b c", False),
        ("a b c a b c a b c", True),
        ("a a a a a", True),
        ("a a a a", False),
        ("a b c d a b c e a b c", True),
    ],
)
def test_a_text_loops_if_a_trigram_stands_in_it_three_times(ladder: ModuleType, text: str, repeats: bool) -> None:
    assert ladder.loops(text) == repeats


def test_the_share_of_texts_that_loop(ladder: ModuleType) -> None:
    assert ladder.looping_share(["a a a a a", "a b", "", "c"]) == 25
    assert ladder.looping_share([]) == 0


def test_a_rung_is_trained_scored_and_only_scored_the_next_time(built: Path) -> None:
    flags = [f"--flag={flag}" for flag in (*TINY_FLAGS, "--max-steps", "3")]
    command = [sys.executable, str(FOLDER / "ladder.py"), "run", "--work", str(built), "counting-40", *flags]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=False) for _ in range(2)
    )
    for done in (first, second):
        assert done.returncode == 0, done.stderr
        [row] = [line for line in done.stdout.splitlines() if line.startswith("| counting-40 |")]
        assert row.endswith("| 3 | 3 |")
        assert "tok:13a" in done.stdout and "* scored on valid" in done.stdout
    assert "is already finished at step 3" in second.stderr
    state = built / "runs" / "counting-40" / "checkpoints" / "step-000003" / "state.json"
    assert json.loads(state.read_text())["progress"]["step"] == 3
