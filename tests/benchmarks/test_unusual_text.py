"""benchmarks/unusual_text.py: what it changes, and that it prints figures of a run."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.tiny_run import TrainTiny

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"


def test_figures_of_a_run_and_typing_errors(
    train_tiny: TrainTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train_tiny(tmp_path / "run", max_steps=4)
    (tmp_path / "src").write_text("The cat.\nA dog\n\n12\n", encoding="utf-8")
    (tmp_path / "tgt").write_text("Die Katze.\nEin Hund\n\n12\n", encoding="utf-8")
    files = ("--src", tmp_path / "src", "--tgt", tmp_path / "tgt")
    command = [sys.executable, FOLDER / "unusual_text.py", tmp_path / "run", *files]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    rows = re.findall(r"^\| \S+ \| ([a-z ]+) \| (\d+) \|", printed, re.MULTILINE)
    counted = {
        "as it is": "3",
        "capitals": "2",
        "title": "2",
        "small letters": "2",
        "typing errors": "2",
        "no last sign": "1",
    }
    assert dict(rows) == counted
    monkeypatch.syspath_prepend(str(FOLDER))
    unusual_text = importlib.import_module("unusual_text")
    found = {unusual_text.typed("word", np.random.default_rng(seed)) for seed in range(60)}
    assert found == {"wrod", "wodr", "wrd", "wod", "woord", "worrd"}
