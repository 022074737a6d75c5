"""`tfm runs`: each run with what it is, its pairs, its best score, its date and its size."""

import json
import shutil
from datetime import date
from pathlib import Path

import pytest
from helpers.command import Tfm, error_of

from tfm.cli.runs import _size


def test_runs_are_listed_newest_first(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny_run, tmp_path / "runs" / "first")
    shutil.copytree(Path(__file__).parents[1] / "keepsakes" / "text", tmp_path / "runs" / "a text")
    (tmp_path / "runs" / "failed").mkdir()
    for path in (tmp_path / "runs" / "first" / "checkpoints").iterdir():
        path.touch()
    done = tfm("runs")
    titles, first, second = done.stdout.decode().splitlines()
    assert titles.split() == ["run", "what", "pairs", "best", "score", "step", "date", "size"]
    assert first.startswith("runs/first") and second.startswith("runs/a text"), error_of(done)
    assert "translator" in first and "BLEU " in first and f"{date.today()}" in first and "language model" in second
    found = {row["name"]: row for row in json.loads(tfm("runs", "--json").stdout)}
    whole = sum(path.stat().st_size for path in (tmp_path / "runs" / "first").rglob("*") if path.is_file())
    assert found["runs/first"]["bytes"] == whole
    assert found["runs/first"]["step"] == 20 and found["runs/first"]["examples"] > 100
    shutil.rmtree(tmp_path / "runs" / "first" / "cache")
    newest = max((tmp_path / "runs" / "first" / "checkpoints").iterdir())
    (newest / "model.json").write_text("{")
    broken = tfm("runs", tmp_path / "runs", "--json")
    row = next(row for row in json.loads(broken.stdout) if row["name"].endswith("first"))
    assert row["examples"] is None and "model.json" in row["problem"]


def test_no_run_is_no_error(tfm: Tfm) -> None:
    done = tfm("runs")
    assert (done.returncode, done.stdout) == (0, b"there is no run in runs/ yet; train one with tfm train\n")


@pytest.mark.parametrize(("count", "words"), [(0, "0 B"), (999, "999 B"), (25_400_000, "25 MB"), (2e15, "2000 TB")])
def test_sizes(count: float, words: str) -> None:
    assert _size(count) == words
