"""The `model.json` of a small model, for tests that train none."""

from dataclasses import asdict, replace
from typing import Any

from tfm.data.tokenizer import Tokenizer
from tfm.engine.runs.checkpoint import ModelDescription
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.model.config import ModelConfig


def describe(config: ModelConfig, tokenizer: Tokenizer | None = None, **changes: Any) -> ModelDescription:
    """Of a model with this tokenizer; without one it has one vocabulary of 7 pieces."""
    whole = ModelDescription(
        format=1,
        tfm_version="0.1.0",
        model=asdict(config),
        src_vocab_size=7 if tokenizer is None else len(tokenizer.src),
        tgt_vocab_size=7 if tokenizer is None else len(tokenizer.tgt),
        shared_vocab=tokenizer is None or tokenizer.joint,
        tokenizer_sha256="0" * 64 if tokenizer is None else tokenizer.sha256,
        weights="model",
        decoding=asdict(DecodingConfig()),
    )
    return replace(whole, **changes)
