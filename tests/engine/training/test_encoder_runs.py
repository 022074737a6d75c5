"""Runs of an encoder-only model: trained, resumed bit for bit, started from hidden tokens, described."""

import re
from pathlib import Path
from typing import Any

import pytest
from helpers.command import records
from helpers.tiny_run import TINY, Recorder

from tfm.configs import load_config, merge, parse_config
from tfm.engine.describe import describe_run
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.training import setup as setups
from tfm.engine.training.setup import read_setup
from tfm.engine.training.train import TrainingResult, train
from tfm.system.errors import Interrupted
from tfm.system.interrupts import Interrupts

from .test_resume import StopAfter, fingerprint

ENCODER: dict[str, Any] = {
    "model": {"architecture": "encoder_only", "num_decoder_layers": 0},
    "training": {"best_metric": "retrieval", "max_steps": 16, "grad_accum_steps": 1},
}
MASKED: dict[str, Any] = {"objective": "masked_lm", "best_metric": "loss"}


def train_encoder(
    directory: Path,
    corpus: dict[str, Any],
    *,
    interrupts: Interrupts | None = None,
    init_from: Path | None = None,
    reporter: Recorder | None = None,
    **training: Any,
) -> TrainingResult:
    settings = parse_config(merge(merge(TINY, ENCODER), {"data": corpus, "training": training}))
    result = train(
        settings,
        run=directory,
        reporter=reporter or Recorder(),
        interrupts=interrupts or Interrupts(),
        init_from=init_from,
    )
    assert result is not None
    return result


def losses(run: Path, kind: str = "train") -> list[float]:
    return [float(str(record["loss"])) for record in records(run / "metrics.jsonl") if record["kind"] == kind]


@pytest.mark.parametrize("training", [{}, MASKED], ids=["contrastive", "masked_lm"])
def test_a_stopped_run_goes_on_bit_for_bit(tmp_path: Path, corpus: dict[str, Any], training: dict[str, Any]) -> None:
    train_encoder(tmp_path / "whole", corpus, **training)
    with pytest.raises(Interrupted):
        train_encoder(tmp_path / "parts", corpus, interrupts=StopAfter(7), **training)
    train_encoder(tmp_path / "parts", corpus, **training)
    assert fingerprint(tmp_path / "parts", 16) == fingerprint(tmp_path / "whole", 16)


@pytest.mark.parametrize("training", [{}, MASKED], ids=["contrastive", "masked_lm"])
def test_two_processes_compute_what_one_does(tmp_path: Path, corpus: dict[str, Any], training: dict[str, Any]) -> None:
    """Each takes one of the two batches of an update; parts of them, the contrastive loss does not allow."""
    same = {"precision": "fp32", "grad_accum_steps": 2, "subword_dropout": 0.0, "max_steps": 6, "log_every": 1}
    for ranks in (1, 2):
        train_encoder(tmp_path / str(ranks), corpus, **training, **same, ranks=ranks)
    assert losses(tmp_path / "2") == pytest.approx(losses(tmp_path / "1"), rel=1e-3)


def test_a_contrastive_batch_is_never_cut(
    tmp_path: Path, corpus: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setups, "part_overhead", lambda matrices: 0.0)  # cutting would pay
    parts: list[int] = []
    for name, training in (("masked", MASKED), ("contrastive", {})):
        train_encoder(tmp_path / name, corpus, **training, ranks=2, max_tokens_per_batch=1024, max_steps=1)
        setup = read_setup(RunDirectory(tmp_path / name))
        assert setup is not None
        parts.append(setup.division.parts)
    assert parts[0] > 1 and parts[1] == 1


def test_it_learns_and_is_validated_by_retrieval(tmp_path: Path, corpus: dict[str, Any]) -> None:
    """Number words in the other language: a bag of words is enough, so a little training does it."""
    easy = {"max_steps": 120, "validate_every": 60, "ema_decay": 0.0, "subword_dropout": 0.0}
    recorder = Recorder()
    result = train_encoder(tmp_path / "run", corpus, reporter=recorder, **easy, max_tokens_per_batch=400)
    found = [record for record in records(tmp_path / "run" / "metrics.jsonl") if record["kind"] == "validation"]
    assert result.use == f"Embed with: tfm embed --run {tmp_path / 'run'}"
    assert result.best_score == max(float(str(record["retrieval"])) for record in found)
    for record in found:
        directions = [float(str(record[name])) for name in ("src_to_tgt", "tgt_to_src")]
        assert record["retrieval"] == record["score"] == sum(directions) / 2
    assert result.best_score is not None and result.best_score > 60
    assert any(re.search(r"retrieval [\d.]+ % among \d+ pairs", said) for said in recorder.said)


def test_the_loss_decides_where_it_is_asked_to(tmp_path: Path, corpus: dict[str, Any]) -> None:
    result = train_encoder(tmp_path / "run", corpus, best_metric="loss", max_steps=8)
    assert result.best_score == -min(losses(tmp_path / "run", "validation"))


def test_hidden_tokens_prepare_a_sentence_encoder(tmp_path: Path, corpus: dict[str, Any]) -> None:
    first = train_encoder(tmp_path / "first", corpus, **MASKED)
    assert f"--run NEW --init-from {tmp_path / 'first'}" in first.use
    last = records(tmp_path / "first" / "metrics.jsonl")[-1]
    assert last["score"] == -float(str(last["loss"])) and 0 <= float(str(last["accuracy"])) <= 100
    recorder = Recorder()
    result = train_encoder(tmp_path / "then", corpus, init_from=tmp_path / "first", reporter=recorder, max_steps=2)
    assert result.step == 2
    assert any("starting from the weights of" in said for said in recorder.said)
    assert records(tmp_path / "then" / "metrics.jsonl")[0]["step"] == 0, "it is validated before it is trained"


def test_hidden_tokens_need_no_translations(tmp_path: Path, corpus: dict[str, Any]) -> None:
    text = {"text": corpus["src"], "dev_text": corpus["dev_src"]}
    result = train_encoder(tmp_path / "run", text, **MASKED, subword_dropout=0.0)
    assert result.step == 16


def test_it_is_described(tmp_path: Path, corpus: dict[str, Any]) -> None:
    train_encoder(tmp_path / "run", corpus, max_steps=2)
    found = describe_run(RunDirectory(tmp_path / "run"))
    assert found["architecture"] == "sentence encoder (encoder_only)"
    assert found["training"]["examples"] > 2
    assert found["export"].startswith("not possible")


@pytest.mark.slow
def test_the_toy_preset_finds_the_translations_of_unseen_sentences(tmp_path: Path) -> None:
    settings = parse_config(load_config("toy-encoder"))
    train(settings, run=tmp_path / "run", reporter=Recorder(), interrupts=Interrupts())
    last = records(tmp_path / "run" / "metrics.jsonl")[-1]
    assert float(str(last["src_to_tgt"])) >= 90 and float(str(last["tgt_to_src"])) >= 90
