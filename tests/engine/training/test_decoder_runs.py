"""Runs of a decoder-only model, on pairs and on text alone: one that is stopped goes on bit for bit."""

from pathlib import Path
from typing import Any

import pytest
from helpers.tiny_run import TINY, Recorder

from tfm.configs import RunConfig, merge, parse_config
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.training.train import TrainingResult, train
from tfm.system.files import sha256_file
from tfm.system.interrupts import Interrupts

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


@pytest.mark.parametrize(
    ("ranks", "kind"), [(1, "pairs"), (1, "text"), (2, "pairs"), pytest.param(2, "text", marks=pytest.mark.slow)]
)
def test_a_run_that_was_stopped_is_the_one_that_was_not(
    corpus: dict[str, Any], text: dict[str, Any], tmp_path: Path, kind: str, ranks: int
) -> None:
    """Dropout, subword dropout and the moving average on; one process and two."""
    data, metric = (corpus, "exact") if kind == "pairs" else (text, "loss")
    settings: dict[str, Any] = {"schedule": "constant", "ranks": ranks, "max_steps": 12}
    run(configure(data, metric, **settings), tmp_path / "once")
    assert run(configure(data, metric, **settings | {"max_steps": 7}), tmp_path / "twice").step == 7
    assert run(configure(data, metric, **settings), tmp_path / "twice").step == 12
    assert weights(tmp_path / "once") == weights(tmp_path / "twice")
