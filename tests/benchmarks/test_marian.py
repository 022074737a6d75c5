"""Which models of ours transformers' MarianMTModel can be."""

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tfm.seq2seq.model.config import ModelConfig

BENCHMARKS = str(Path(__file__).parent.parent.parent / "benchmarks")


@pytest.fixture
def why_not(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str | None]:
    monkeypatch.setattr(sys, "path", [BENCHMARKS, *sys.path])
    import marian  # pyright: ignore[reportMissingImports]

    return marian.why_not


@pytest.mark.parametrize("settings", [{}, {"attention_output_bias": True}])
def test_the_papers_model_with_all_biases_it_can_be(
    why_not: Callable[..., str | None], settings: dict[str, Any]
) -> None:
    assert why_not(asdict(ModelConfig(**settings)), True) is None


@pytest.mark.parametrize(
    "settings",
    [
        {"attention_bias": False},
        {"attention_output_bias": False},
        {"feed_forward_output_bias": False},
        {"norm_eps": 0.0},
    ],
)
def test_a_model_without_one_of_them_it_cannot_be(why_not: Callable[..., str | None], settings: dict[str, Any]) -> None:
    [(name, value)] = settings.items()
    assert f"{name} is {value}" in str(why_not(asdict(ModelConfig(**settings)), True))


def test_a_model_of_an_earlier_version_lacks_settings(why_not: Callable[..., str | None]) -> None:
    model = asdict(ModelConfig())
    del model["attention_output_bias"], model["feed_forward_output_bias"]
    assert why_not(model, True) is None
