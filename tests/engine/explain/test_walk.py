"""The walk: its formulas follow the configuration, its code and sources exist."""

import importlib
from pathlib import Path
from typing import get_args

import pytest
from helpers.explained import SMALL, layers_of

from tfm.engine.explain.stations import TITLES, Station
from tfm.engine.explain.walk import WALKS, Sizes, stations
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.config import Architecture, Positions

ROOT = Path(__file__).parents[3]


def walk(**settings: object) -> list[Station]:
    architecture = str(settings.get("architecture", "encoder_decoder"))
    config = ModelConfig(**SMALL, **layers_of(architecture), **settings)  # pyright: ignore[reportArgumentType]
    return stations(Sizes(config, {"src": 5, "tgt": 6, "seq": 11}, 300, has_checkpoints=True))


def test_each_architecture_has_its_walk() -> None:
    assert set(WALKS) == set(get_args(Architecture))


@pytest.mark.parametrize("positions", get_args(Positions))
@pytest.mark.parametrize("architecture", get_args(Architecture))
def test_each_station_names_code_and_sources_that_there_are(architecture: str, positions: str) -> None:
    for station in walk(architecture=architecture, positions=positions):
        assert all(station.cited()), station.id  # of a key that is unknown there is no title: an error
        file, name = station.code
        assert (ROOT / file).is_file(), station.id
        value = importlib.import_module("tfm." + file.removesuffix(".py").replace("/", "."))
        for part in name.split("."):
            value = getattr(value, part)


def test_the_texts_are_those_of_the_documentation() -> None:
    documented = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    for key in set(TITLES) - {"Paper", "Su 2021", "Wu 2016"}:
        assert f"| [{key}] |" in documented


def plain(**settings: object) -> str:
    return "\n".join(station.plain for station in walk(**settings))


def test_formulas_follow_the_configuration() -> None:
    assert "LayerNorm(x + SubLayer(x))" in plain() and "x + SubLayer(LayerNorm(x))" in plain(norm_order="pre")
    assert "Q = Z W^Q + b^Q" in plain() and "Q = Z W^Q, K" in plain(attention_bias=False)
    assert "GELU(x W_1 + b_1)" in plain(activation="gelu") and "SiLU(x W_g" in plain(activation="swiglu")
    assert "W_2 + b_2" in plain() and "+ b_2" not in plain(feed_forward_output_bias=False)
    assert "* sqrt(d_model)" in plain() and "* sqrt(d_model)" not in plain(scale_embeddings=False)
    assert (
        "PE(pos, 2i)" in plain() and "Z = X + P" in plain(positions="learned") and "PE" not in plain(positions="none")
    )
    assert "a = pos / 10000^(2i / d_k)" in plain(positions="rotary") and "Z = X" not in plain(positions="rotary")
    assert "W^O + b^O" in plain() and "b^O" not in plain(attention_output_bias=False)
    assert "Q = Z~ W^Q" in plain(norm_order="pre") and "FFN(x~) = max(0, x~ W_1" in plain(norm_order="pre")
    assert "l = y W\n" in plain() and "l = y W + b" in plain(output_bias=True)
    assert "S_ij = -inf for j > i" in plain(architecture="decoder_only")


def test_shapes_have_the_sizes_of_the_sentence() -> None:
    shapes = [symbol for station in walk(d_k=3, d_v=7) for symbol, _ in station.shapes]
    assert "Q, K: n × d_k = 5 × 3" in shapes and "V: n × d_v = 5 × 7" in shapes
    assert "A: m × n = 6 × 5" in shapes and "Concat: n × H d_v = 5 × 14" in shapes
