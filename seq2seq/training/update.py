"""One update of the weights. It knows tensors and callables: no text, no files, no clock.

What an update does depends on its number, the configuration and the data alone. Every random choice is seeded by what
it is for, never by what came before.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...system.errors import TrainingDiverged
from .batch import Batch, BatchProvider, Group, MicroBatches
from .config import TrainingConfig
from .gradients import GradientBuffer
from .optimizer import MovingAverage, Optimizer
from .pieces import add_gradients
from .progress import Progress

MAX_BAD_UPDATES = 3
"""So many updates in a row may have a gradient that is not finite; each is skipped, then training stops."""
Loss = Callable[[Any, Batch], tuple[Tensor, int]]
"""What is minimised: takes a model and a batch. Gives the loss summed over what it is measured on (tokens, say), and
the number of that."""


class UpdateFigures(NamedTuple):
    """What one update says of itself: its learning rate, and its gradient's norm before clipping, if that is finite."""

    lr: float
    grad_norm: float | None


@dataclass
class Trainer:
    """Makes updates.

    Args:
        model: On its device.
        optimizer: Over its parameters.
        average: Moving average of the weights, or None.
        config: Seed, schedule, accumulation, clipping.
        loss: What to minimise.
        provider: The training data.
        progress: Where training stands; moves on with each update.
        group: The processes that share an update; each has a trainer.
        parts: Micro-batches into which each batch is cut for them.
    """

    model: nn.Module
    optimizer: Optimizer
    average: MovingAverage | None
    config: TrainingConfig
    loss: Loss
    provider: BatchProvider
    progress: Progress = field(default_factory=Progress)
    group: Group = field(default_factory=Group)
    parts: int = 1

    def __post_init__(self) -> None:
        self.gradients = GradientBuffer(self.model)
        self.micro_batches = MicroBatches(self.provider, self.config.grad_accum_steps, self.parts, self.group)

    def update(self, rate: float) -> UpdateFigures:
        """Makes one update: gradients of one or more batches, added, normalised by their tokens, clipped, applied.

        Args:
            rate: The learning rate, a function of the step and of the length of the run; see `schedule`.

        Raises:
            TrainingDiverged: Several updates in a row had no finite gradient.
            OutOfMemory: Not even one sentence fits into memory.
        """
        self.model.train()
        micro_batches = self.micro_batches.take(self.progress)
        add_gradients(micro_batches, self._add_gradient, self.gradients, self.progress)
        self.group.all_reduce(self.gradients.flat)
        self.micro_batches.load_ahead(self.progress)
        totals = self.gradients.normalise_and_clip(self.config.max_grad_norm)
        if self._is_good(rate, totals.loss_sum + totals.grad_norm):
            self.optimizer.step(rate)
            if self.average is not None:
                self.average.update(self.progress.step + 1)
        self.progress.count_update(totals.loss_sum, totals.num_tokens)
        self.progress.divided += totals.divided
        return UpdateFigures(rate, totals.grad_norm if math.isfinite(totals.grad_norm) else None)

    def _add_gradient(self, batch: Batch, number: int, piece: int) -> None:
        seed_torch(self.config.seed, "dropout", self.progress.step + 1, number, *([piece] if piece else []))
        loss, num_tokens = self.loss(self.model, batch)
        loss.backward()  # adds to self.gradients
        self.gradients.count(loss, num_tokens)

    def _is_good(self, rate: float, figure: float) -> bool:
        """Whether an update may be applied: its figures must be finite numbers."""
        if math.isfinite(figure):
            self.progress.bad_updates = 0
            return True
        self.progress.bad_updates += 1
        if self.progress.bad_updates >= MAX_BAD_UPDATES:
            where = f"step {self.progress.step + 1:,} (learning rate {rate:.3g})"
            raise diverged(where, "loss or gradient is not finite", self.config)
        return False


def diverged(where: str, why: str, config: TrainingConfig) -> TrainingDiverged:
    """The error that ends a training, with flags for a tenth of the rates.

    Args:
        where: The step.
        why: What is not finite.
        config: Has the rates.
    """
    rates = {"learning_rate": config.learning_rate}
    if config.optimizer == "muon":
        rates["muon_learning_rate"] = config.muon_learning_rate
    lower = " ".join(f"--set training.{name}={rate / 10:.2g}" for name, rate in rates.items())
    return TrainingDiverged(f"training diverged at {where}: {why}; try a new --run with {lower}")


def counter_seed(seed: int, purpose: str, *counters: int) -> int:
    """A 63-bit seed that is a function of its arguments alone.

    Args:
        seed: The run's seed.
        purpose: `dropout`, `weights`, ..: keeps the streams of different uses apart.
        counters: For example step and micro-batch.
    """
    text = " ".join([str(seed), purpose, *map(str, counters)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


def seed_torch(seed: int, purpose: str, *counters: int) -> None:
    """Sets torch's global generators, of all devices, to the state that the counters name."""
    torch.manual_seed(counter_seed(seed, purpose, *counters))
