"""The `model.json` of a small model, for tests that train none."""

from dataclasses import asdict, replace
from typing import Any

from tfm.engine.runs.checkpoint import ModelDescription
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.model.config import ModelConfig


def describe(config: ModelConfig, **changes: Any) -> ModelDescription:
    """Of a model with one vocabulary of 7 pieces."""
    whole = ModelDescription(
        format=1,
        tfm_version="0.1.0",
        model=asdict(config),
        src_vocab_size=7,
        tgt_vocab_size=7,
        shared_vocab=True,
        tokenizer_sha256="0" * 64,
        weights="model",
        decoding=asdict(DecodingConfig()),
    )
    return replace(whole, **changes)
