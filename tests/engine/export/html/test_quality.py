"""The choice between 8 and 16 bits: by what 8 bits cost, in the figure of each kind of machine."""

from pathlib import Path
from typing import get_args

import pytest
from helpers.learned import made

from tfm.engine.export.html import quality as quality_module
from tfm.engine.export.html.quality import BLEU, FOUND, LOSS, MACHINES, choose_weights, figure_of, machine_of, quality
from tfm.engine.runs.checkpoint import Purpose
from tfm.engine.runs.load import TrainedRun, load_run


@pytest.fixture(scope="module")
def loaded(run_directory: Path) -> TrainedRun:
    """A run."""
    return load_run(run_directory, None, device="cpu")


@pytest.mark.parametrize(("cost", "weights"), [(0.0, "int8"), (0.29, "int8"), (0.31, "float16"), (-1.0, "int8")])
def test_8_bits_unless_they_cost_more_than_3_tenths(
    loaded: TrainedRun, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, cost: float, weights: str
) -> None:
    found = iter([20.0, 20.0 - cost])
    monkeypatch.setattr(quality_module, "quality", lambda *_: next(found))
    choice = choose_weights(loaded, pairs)
    assert choice.weights == weights
    assert "BLEU 20.00" in choice.reason
    assert ("that costs more than 0.3, so that weights are float16" in choice.reason) == (weights == "float16")


def test_without_a_validation_set_nothing_is_measured(loaded: TrainedRun) -> None:
    choice = choose_weights(loaded, [])
    assert choice.weights == "int8" and "no one knows" in choice.reason


def test_each_purpose_has_its_machine() -> None:
    assert set(MACHINES) == set(get_args(Purpose))


def test_each_machine_has_its_figure(loaded: TrainedRun, pairs: list[tuple[str, str]]) -> None:
    generator = made(loaded.tokenizer, pairs, steps=3, text_only=True, architecture="decoder_only")
    embedder = made(loaded.tokenizer, pairs, steps=0, architecture="encoder_only")
    for run, figure in ((loaded, BLEU), (generator, LOSS), (embedder, FOUND)):
        machine = machine_of(run)
        assert figure_of(machine) is figure
        assert quality(machine, pairs) >= 0
        assert choose_weights(run, pairs[:8]).reason.startswith(figure.name)
    assert LOSS.cost(1.0, 1.5) == 0.5 and BLEU.cost(20.0, 19.0) == 1.0
