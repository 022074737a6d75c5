"""Real input, trained and scored by the command line. Minutes each; needs the corpora."""

import json
import re
import shlex
from pathlib import Path

import pytest
from helpers.command import run_command
from helpers.documents import commands

QUALITY = (Path(__file__).parent.parent / "benchmarks" / "quality.md").read_text(encoding="utf-8")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]


def train_and_score(
    tmp_path: Path, preset: str, train: dict[str, Path], test: tuple[Path, Path], metrics: list[str], *flags: object
) -> dict[str, float]:
    files = [flag for name, path in train.items() for flag in (f"--{name}", path)]
    options = {"cwd": tmp_path, "timeout": 7000}
    done = run_command("train", "--config", preset, *files, **options)  # pyright: ignore[reportArgumentType]
    assert done.returncode == 0, done.stderr.decode()
    wanted = [flag for name in metrics for flag in ("--metric", name)]
    done = run_command("evaluate", "--src", test[0], "--tgt", test[1], *wanted, *flags, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)["scores"]


def test_multi30k_reaches_39_bleu(tmp_path: Path, corpora: Path) -> None:
    folder = corpora / "multi30k"
    train = {"src": folder / "train.en", "tgt": folder / "train.de"}
    dev = {"dev-src": folder / "valid.en", "dev-tgt": folder / "valid.de"}
    test = folder / "test2016.en", folder / "test2016.de"
    assert train_and_score(tmp_path, "multi30k", train | dev, test, ["bleu"])["bleu"] >= 39


def test_scan_is_solved_by_the_lines_of_the_readme(tmp_path: Path, corpora: Path) -> None:
    """Trained and scored as benchmarks/quality.md says; the score is the one in its table, within 0.3."""
    lines = [line for line in commands(QUALITY, "tfm") if "/scan/" in line]
    assert [line.split()[1] for line in lines] == ["train", "evaluate"]
    said = ""
    for line in lines:
        words = shlex.split(line.replace("$TFM_CORPORA", str(corpora)))
        done = run_command(*words[1:], cwd=tmp_path, timeout=7000)
        assert done.returncode == 0, done.stderr.decode()
        said = done.stdout.decode()
    found = re.search(r"exact\W+([\d.]+)", said)
    stated = re.search(r"^\| SCAN .* ([\d.]+) % exactly", QUALITY, re.MULTILINE)
    assert found and stated
    assert float(found[1]) == pytest.approx(float(stated[1]), abs=0.3)


def test_cmudict_letters_to_phones(tmp_path: Path, corpora: Path) -> None:
    folder = corpora / "cmudict_g2p"
    train = {"src": folder / "train.src", "tgt": folder / "train.tgt"}
    dev = {"dev-src": folder / "valid.src", "dev-tgt": folder / "valid.tgt"}
    test = folder / "test.src", folder / "test.refs.tsv"
    scores = train_and_score(tmp_path, "g2p", train | dev, test, ["exact", "wer"])
    assert 100 - scores["exact"] <= 33  # share of words with any wrong phone
