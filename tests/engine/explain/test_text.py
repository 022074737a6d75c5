"""The walk in a terminal has the numbers of the place that is looked at."""

from pathlib import Path
from typing import get_args

import pytest
from helpers.explained import SMALL, layers_of, write_run

from tfm.data.tokenizer import Tokenizer
from tfm.engine.explain.explanation import explain
from tfm.engine.explain.text import Focus, number, text
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.load import load_run
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.config import Architecture


@pytest.mark.parametrize("architecture", get_args(Architecture))
def test_it_shows_the_chosen_layer_head_piece_and_step(
    tmp_path: Path, tokenizer: Tokenizer, architecture: Architecture
) -> None:
    config = ModelConfig(**SMALL, **layers_of(architecture), architecture=architecture)
    run = write_run(tmp_path / "run", tokenizer, config, steps=(10, 20))
    with_checkpoints = architecture != "encoder_only"
    found = explain(
        RunDirectory(run), load_run(run, None), "my sister finds two apples", with_checkpoints=with_checkpoints
    )
    place = Focus(layer=1, head=1, token=3, step=2)
    shown = text(found, place)
    for station in found.stations:
        assert f"\n{station.title}\n" in shown
        assert station.plain in shown
    stack = "decoder" if architecture == "decoder_only" else "encoder"
    query = found.arrays[f"{stack}.layers.1.self_attn.q"][1, 3]
    assert "the query q: " + " ".join(number(x) for x in query[:6].tolist()) in shown
    mean = found.arrays[f"{stack}.layers.1.self_attn_residual.norm.mean"][3]
    assert f"mean {mean:.5f}" in shown
    weights = found.arrays[f"{stack}.layers.1.self_attn.weights"][1]
    assert "".join(f"{x:9.2f}" for x in weights[3, :12].tolist()) in shown
    if found.output is None:
        return
    assert f"step 3 wrote {found.written[2].text}, with a probability of {found.steps[2].probability:.4f}" in shown
    assert all(one.text in shown for one in found.samples)
    assert "  step 20: " in shown
    assert text(found, Focus(layer=0, head=0, token=0, step=0)) != shown
