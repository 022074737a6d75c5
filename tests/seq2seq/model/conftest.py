"""Tiny models in which every parameter is random, biases and LayerNorms too, so that wrong wiring shows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.encoder_decoder import Transformer

TINY = ModelConfig(
    d_model=16, d_ff=24, num_heads=4, num_encoder_layers=2, num_decoder_layers=2, max_seq_len=32, dropout=0.0
)


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def tiny_config() -> Callable[..., ModelConfig]:
    """`tiny_config(norm_order="pre")`: a small configuration without dropout, and the changes asked for."""

    def make(**changes: Any) -> ModelConfig:
        return replace(TINY, **changes)

    return make


@pytest.fixture(scope="session")
def randomise() -> Callable[[nn.Module], None]:
    """Adds noise to every parameter: a fresh model's zero biases and unit LayerNorms would hide mistakes."""

    def add_noise(module: nn.Module) -> None:
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(torch.randn_like(parameter), alpha=0.2)

    return add_noise


@pytest.fixture(scope="session")
def build_model(
    tiny_config: Callable[..., ModelConfig], randomise: Callable[[nn.Module], None]
) -> Callable[..., Transformer]:
    """`build_model(positions="none")`: a random tiny model in eval mode, 11 source and 13 target pieces."""

    def make(*, seed: int = 0, **changes: Any) -> Transformer:
        torch.manual_seed(seed)
        config = tiny_config(**changes)
        model = Transformer(config, src_vocab_size=11, tgt_vocab_size=13, shared_vocab=False)
        randomise(model)
        return model.eval()

    return make
