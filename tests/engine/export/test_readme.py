"""The README of an export, where it depends on the model; test_directory.py runs what it says."""

from collections.abc import Callable
from typing import get_args

import pytest

from tfm.data.tokenizer import Tokenizer
from tfm.engine.export.readme import render_readme
from tfm.engine.runs.checkpoint import ModelDescription
from tfm.seq2seq.model.config import Positions
from tfm.seq2seq.model.encoder_decoder import Transformer

Describe = Callable[[Transformer], ModelDescription]


@pytest.mark.parametrize("positions", get_args(Positions))
def test_it_says_what_becomes_of_a_source_that_is_too_long(
    positions: str, model: Transformer, describe_model: Describe, tokenizer: Tokenizer
) -> None:
    description = describe_model(model)
    description.model["positions"] = positions
    text = render_readme(description, tokenizer, quantization="float32")
    assert ("for it raises an error" in text) == (positions == "learned")


def test_positions_that_are_not_known_are_refused(
    model: Transformer, describe_model: Describe, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    description = describe_model(model)
    config = description.model_config()
    object.__setattr__(config, "positions", "unheard-of")  # as if added after all else
    monkeypatch.setattr(ModelDescription, "model_config", lambda self: config)
    with pytest.raises(NotImplementedError, match=r"^positions 'unheard-of' is not implemented here$"):
        render_readme(description, tokenizer, quantization="float32")
