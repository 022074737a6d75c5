"""The script that measures what text without translations brings."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.command import write_lines
from helpers.little_language import SIZE, TRAINED, write_language

FOLDER = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.mark.parametrize("updates", [12, pytest.param(120, marks=pytest.mark.slow)])
def test_a_rung_is_improved_with_the_rest_of_its_corpus(tmp_path: Path, updates: int) -> None:
    """After 120 updates it has become better."""
    corpus, rung = tmp_path / "corpora" / "multi30k", tmp_path / "work" / "multi30k-5k"
    corpus.mkdir(parents=True)
    rung.mkdir(parents=True)
    write_language(corpus)
    sides = {
        language: (corpus / f"text.{language}").read_text(encoding="utf-8").splitlines() for language in ("en", "de")
    }
    for language, side in (("en", "src"), ("de", "tgt")):
        lines = (corpus / f"train.{language}").read_text(encoding="utf-8").splitlines()
        write_lines(corpus / f"train.{language}", [*lines, *sides[language]])
        write_lines(rung / f"train.{side}", lines)
        for part, name in (("valid", "dev"), ("test", "dev")):
            write_lines(
                rung / f"{part}.{side}", (corpus / f"{name}.{language}").read_text(encoding="utf-8").splitlines()
            )
    flags = [f"--train-flag={flag}" for flag in (*TRAINED, *SIZE, "--max-steps", "20")]
    flags += [f"--flag={flag}" for flag in (*TRAINED, "--set", f"training.max_steps={updates}")]
    command = [sys.executable, str(FOLDER / "improve.py"), "multi30k-5k", "--work", str(rung.parent), "--lines", "150"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TFM_CORPORA": str(corpus.parent)}
    done = subprocess.run([*command, *flags], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [row] = [line for line in done.stdout.splitlines() if line.startswith("| multi30k-5k |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert float(cells[2]) >= 0 and 0 <= float(cells[6]) <= 1
    if updates == 120:
        assert float(cells[3]) > float(cells[2]) and float(cells[6]) < 0.05 and cells[-1].startswith("round 1")
    text = set((rung.parent / "improved" / "multi30k-5k-150.txt").read_text(encoding="utf-8").splitlines())
    assert text <= set(sides["de"])
    assert not text & {
        line for part in ("train", "valid") for line in (rung / f"{part}.tgt").read_text("utf-8").split("\n")
    }
