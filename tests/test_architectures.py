"""Presets of the other architectures, trained to their end by the command: what each must reach."""

import json
from pathlib import Path

import pytest
from helpers.command import run_command
from helpers.toy_recogniser import is_grammatical

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def train(preset: str, folder: Path, *arguments: object) -> None:
    done = run_command("train", "--config", preset, "--run", preset, *arguments, cwd=folder, timeout=3600)
    assert done.returncode == 0, done.stderr.decode()


def exact(folder: Path, run: str, *arguments: object) -> float:
    """Percent of a test set whose translations are exactly right."""
    done = run_command("evaluate", "--run", run, "--metric", "exact", "--json", *arguments, cwd=folder, timeout=3600)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)["scores"]["exact"]


def test_a_decoder_only_translator_learns_the_toy_language(tmp_path: Path) -> None:
    """Combinations that it has never seen."""
    train("toy-decoder", tmp_path)
    assert exact(tmp_path, "toy-decoder", "--data", "toy") >= 95


def test_a_language_model_makes_up_grammatical_sentences(tmp_path: Path) -> None:
    """Of the likeliest pieces that sum to 0.9: the others, one in ten, would be most of the mistakes."""
    train("toy-text", tmp_path)
    draw = ["generate", "--run", "toy-text", "--seed", 1, "--top-p", 0.9]
    done = run_command(*draw, cwd=tmp_path, stdin=b"\n" * 500)
    assert done.returncode == 0, done.stderr.decode()
    sentences = done.stdout.decode().splitlines()
    assert len(sentences) == 500 and len(set(sentences)) > 450
    assert sum(map(is_grammatical, sentences)) >= 475
