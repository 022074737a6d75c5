"""The configuration of a run: one dataclass per part of tfm."""

from dataclasses import dataclass, field
from typing import ClassVar

from ..data.config import DataConfig, TokenizerConfig
from ..seq2seq.decoding.config import DecodingConfig
from ..seq2seq.model.config import ModelConfig
from ..seq2seq.training.config import TrainingConfig


@dataclass(frozen=True)
class RunConfig:
    """Everything that `tfm train` needs to know but a vocabulary or weights to begin with: a run's `config.yaml`."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    data: DataConfig = field(default_factory=DataConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
