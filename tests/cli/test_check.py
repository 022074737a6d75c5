"""`tfm check`: one line for each test, and exit code 4 where one fails."""

import json
from pathlib import Path

from helpers.command import Tfm, error_of


def test_a_run_that_has_hardly_learned_fails_one_test_alone(tfm: Tfm, tiny_run: Path, corpus: Path) -> None:
    """It ignores its source; all else holds of any weights."""
    done = tfm("check", "--run", tiny_run, "--src", "dev.en", "--tgt", "dev.de")
    assert done.returncode == 4
    lines = done.stdout.decode().splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 7 + ["FAILED"]
    assert lines[-1].split()[1] == "source"
    assert "fails 1 of 8 tests: source" in error_of(done)
    told = tfm("check", "--run", tiny_run, "--src", "dev.en", "--tgt", "dev.de", "--json")
    assert told.returncode == 4
    checks = json.loads(told.stdout)["checks"]
    assert [one["passed"] for one in checks] == [True] * 7 + [False]


def test_without_its_validation_set_it_makes_up_sentences(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    """The run names its data relative to another directory."""
    done = tfm("check", "--run", tiny_run)
    assert done.returncode == 0, error_of(done)
    assert "checked with made-up sentences: its validation set is not there" in error_of(done)
    assert done.stdout.decode().splitlines()[-1].startswith("-       source      not checked")


def test_a_language_model_and_a_sentence_encoder(tfm: Tfm, corpus: Path) -> None:
    small = ["--max-steps", 2, "--set", "model.d_model=16", "--set", "model.num_heads=2", "--set", "model.d_ff=32"]
    small += ["--set", "tokenizer.vocab_size=340", "--set", "training.validate_every=2"]
    encoder = ["--config", "toy-encoder", "--set", "model.num_encoder_layers=1"]
    for flags, checks in (
        (["--text", "train.en", "--set", "model.num_decoder_layers=1"], 8),
        ([*encoder, "--src", "train.en", "--tgt", "train.de"], 5),
    ):
        done = tfm("train", *flags, *small, "--run", flags[0][2:])
        assert done.returncode == 0, error_of(done)
        done = tfm("train", *flags, *small, "--run", "tried", "--dry-run")
        assert done.returncode == 0 and " for 2 updates" in done.stdout.decode(), error_of(done)
        done = tfm("check", "--run", flags[0][2:])
        assert len(done.stdout.decode().splitlines()) == checks
        failed = [line for line in done.stdout.decode().splitlines() if line.startswith("FAILED")]
        assert all(line.split()[1] == "source" for line in failed), failed
