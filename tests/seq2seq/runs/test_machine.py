"""What belongs to each machine: settings that suit it, and a run of it that goes on bit for bit."""

from pathlib import Path
from typing import Any

import pytest
from helpers.tiny_run import TINY, Recorder

from tfm.configs import RunConfig, merge, parse_config
from tfm.data.errors import UsageError
from tfm.data.files import sha256_file
from tfm.seq2seq.interrupts import Interrupts
from tfm.seq2seq.runs.directory import RunDirectory
from tfm.seq2seq.runs.leader import TrainingResult
from tfm.seq2seq.runs.machine import check_machine, purpose_of
from tfm.seq2seq.runs.train import train

DECODER: dict[str, Any] = {"architecture": "decoder_only", "num_encoder_layers": 0, "num_decoder_layers": 2}


def configure(data: dict[str, Any], best_metric: str, **training: Any) -> RunConfig:
    """The tiny configuration of a decoder-only model."""
    return parse_config(
        merge(TINY, {"data": data, "model": DECODER, "training": {"best_metric": best_metric, **training}})
    )


@pytest.fixture
def text(corpus: dict[str, Any]) -> dict[str, Any]:
    """The source side as text alone."""
    return {"text": corpus["src"], "dev_text": corpus["dev_src"]}


def run(settings: RunConfig, directory: Path) -> TrainingResult:
    result = train(settings, run=directory, reporter=Recorder(), interrupts=Interrupts())
    assert result is not None
    return result


def weights(directory: Path) -> str:
    return sha256_file(RunDirectory(directory).checkpoints()[-1] / "model.safetensors")


@pytest.mark.parametrize("kind", ["pairs", "text"])
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_run_that_was_stopped_is_the_one_that_was_not(
    corpus: dict[str, Any], text: dict[str, Any], tmp_path: Path, kind: str, ranks: int
) -> None:
    """Dropout, subword dropout and the moving average on; one process and two."""
    data, metric = (corpus, "exact") if kind == "pairs" else (text, "loss")
    settings: dict[str, Any] = {"schedule": "constant", "ranks": ranks}
    run(configure(data, metric, **settings), tmp_path / "once")
    assert run(configure(data, metric, max_steps=13, **settings), tmp_path / "twice").step == 13
    assert run(configure(data, metric, **settings), tmp_path / "twice").step == 24
    assert weights(tmp_path / "once") == weights(tmp_path / "twice")


def test_its_purpose_follows_from_architecture_and_data(corpus: dict[str, Any], text: dict[str, Any]) -> None:
    assert purpose_of(configure(corpus, "bleu")) == "translator"
    assert purpose_of(configure(text, "loss")) == "language model"
    assert purpose_of(parse_config(merge(TINY, {"data": corpus}))) == "translator"
    with pytest.raises(UsageError, match=r"--text needs model\.architecture decoder_only"):
        purpose_of(parse_config(merge(TINY, {"data": text})))


def test_what_does_not_suit_is_refused(corpus: dict[str, Any], text: dict[str, Any]) -> None:
    check_machine(configure(text, "loss"))
    with pytest.raises(UsageError, match=r"training.best_metric of a language model must be loss, but is bleu"):
        check_machine(configure(text, "bleu"))
    two = merge(TINY, {"data": corpus, "model": DECODER, "tokenizer": {"separate": True}})
    with pytest.raises(UsageError, match=r"one vocabulary; leave tokenizer\.separate out"):
        check_machine(parse_config(two))


def test_a_tokenizer_of_two_vocabularies_is_refused(corpus: dict[str, Any], tmp_path: Path) -> None:
    separate = parse_config(
        merge(TINY, {"data": corpus, "tokenizer": {"separate": True}, "training": {"max_steps": 1}})
    )
    train(separate, run=tmp_path / "two", reporter=Recorder(), interrupts=Interrupts())
    with pytest.raises(UsageError, match="this tokenizer has two; make one without --separate"):
        train(
            configure(corpus, "exact"),
            run=tmp_path / "run",
            tokenizer=tmp_path / "two" / "tokenizer",
            reporter=Recorder(),
            interrupts=Interrupts(),
        )
