"""A few batches that are the same in every epoch, a model small enough for them, and a trainer of both."""

from typing import Any, Literal

import torch

from tfm.data.batching import training_rows
from tfm.seq2seq.model import ModelConfig, Transformer
from tfm.seq2seq.training.batch import Batch
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.loss import NextTokenLoss
from tfm.seq2seq.training.optimizer import Optimizer
from tfm.seq2seq.training.schedule import learning_rate
from tfm.seq2seq.training.update import Trainer

PAIRS = [([5, 6, 7], [8, 9]), ([6, 5], [9, 8, 7, 9]), ([10, 11, 5], [7]), ([7, 7, 8, 5], [10, 11, 10])]


class FixedBatches:
    """The same batches in every epoch."""

    def __init__(self, *batches: Batch) -> None:
        self.batches = batches

    def num_batches(self, epoch: int) -> int:
        del epoch
        return len(self.batches)

    def load_part(self, epoch: int, index: int, part: int, parts: int) -> Batch | None:
        del epoch
        batch = self.batches[index]
        return batch.rows(slice(part, None, parts)) if part < len(batch) else None


class WholeBatches(FixedBatches):
    """Batches as they are: they may be packed."""

    def load_part(self, epoch: int, index: int, part: int, parts: int) -> Batch | None:
        del epoch, part, parts
        return self.batches[index]


def batch(*rows: int) -> Batch:
    return Batch.of(training_rows([PAIRS[row] for row in rows]))


def build_model(dropout: float = 0.0, norm_order: Literal["pre", "post"] = "pre") -> Transformer:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "d_model": 32,
        "d_ff": 32,
        "num_heads": 2,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
    }
    config = ModelConfig(**sizes, max_seq_len=12, dropout=dropout, norm_order=norm_order)
    return Transformer(config, src_vocab_size=12, tgt_vocab_size=12, shared_vocab=True)


def make_trainer(
    model: Transformer, batches: FixedBatches, *, parts: int = 1, dtype: torch.dtype = torch.float32, **settings: Any
) -> Trainer:
    """A trainer of this model; training settings by name."""
    defaults: dict[str, Any] = {
        "learning_rate": 1e-2,
        "warmup_steps": 1,
        "schedule": "constant",
        "label_smoothing": 0.0,
        "validate_every": 10_000,
        "checkpoint_every": 10_000,
    }
    config = TrainingConfig(**defaults | settings)
    loss = NextTokenLoss(config.label_smoothing, dtype)
    return Trainer(model, Optimizer(model, config), None, config, loss, batches, parts=parts)


def make_updates(trainer: Trainer) -> None:
    """All the updates that are configured."""
    assert trainer.config.max_steps is not None
    while trainer.progress.step < trainer.config.max_steps:
        rate = learning_rate(trainer.progress.step + 1, trainer.config, trainer.config.max_steps)
        trainer.update(rate)
