"""`tfm curves`: runs drawn together in the terminal, as a picture, as JSON."""

import json
import shutil
from pathlib import Path

import pytest
from helpers.command import Tfm, error_of


@pytest.fixture
def two_runs(tiny_run: Path, tmp_path: Path) -> Path:
    for name in ("a", "b"):
        shutil.copytree(tiny_run, tmp_path / "runs" / name)
    return tmp_path


def test_all_runs_are_drawn(tfm: Tfm, two_runs: Path) -> None:
    done = tfm("curves")
    out = done.stdout.decode()
    assert done.returncode == 0, error_of(done)
    assert [line for line in out.splitlines() if line.startswith("Validation")] == [
        "Validation loss",
        "Validation BLEU",
    ]
    assert "a  runs/a: " in out and "b  runs/b: " in out and "step 20" in out and "\33" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_picture_and_figures(tfm: Tfm, two_runs: Path) -> None:
    drawn = tfm("curves", "a", "runs/b", "--metric", "chrf", "--output", "both.png")
    assert drawn.returncode == 0 and not drawn.stdout, error_of(drawn)
    assert (two_runs / "both.png").read_bytes().startswith(b"\x89PNG")
    panels = json.loads(tfm("curves", "a", "--metric", "chrf", "--json").stdout)
    assert [panel["title"] for panel in panels] == ["Validation loss", "Validation chrF"]
    assert [curve["label"] for curve in panels[0]["curves"]] == ["runs/a"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--metric", "blue"], "there is no metric 'blue'"),
        (["--output", "both.jpg"], "name it so, such as both.png"),
        (["nowhere"], "there is no run nowhere (there are: runs/a, runs/b)"),
        (["a", "--output", "runs/a/learning_curve.png"], "which RUN reads"),
    ],
)
def test_what_cannot_be_drawn(tfm: Tfm, two_runs: Path, flags: list[str], words: str) -> None:
    del two_runs
    done = tfm("curves", *flags)
    assert done.returncode in (2, 4) and words in error_of(done)
