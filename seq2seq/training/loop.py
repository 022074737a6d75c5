"""One update of the weights. It knows tensors and callables: no text, no files, no clock.

What an update does depends on its number, the configuration and the data alone. What happens between two updates
(logging, validating, saving) is in `runs.session`.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn

from ...data.errors import TrainingDiverged
from .batches import Alone, BatchProvider, Group, MicroBatches
from .config import TrainingConfig
from .gradients import GradientBuffer
from .optimizer import MovingAverage, Optimizer
from .progress import Progress
from .randomness import seed_torch

MAX_BAD_UPDATES = 3
"""So many updates in a row may have a gradient that is not finite; each is skipped, then training stops."""


class Loss(Protocol):
    """What is minimised; each machine brings its own."""

    def __call__(self, model: Any, batch: Any) -> tuple[Tensor, int]:
        """The loss of a batch, summed over what it is measured on, and the number of that (tokens, say)."""
        ...


class UpdateFigures(NamedTuple):
    """What one update says of itself: its learning rate, and the norm of the gradient before clipping."""

    lr: float
    grad_norm: float


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
    group: Group = field(default_factory=Alone)
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
        """
        step = self.progress.step + 1
        self.model.train()
        self.gradients.clear()
        for number, batch in self.micro_batches.take(self.progress):
            seed_torch(self.config.seed, "dropout", step, number)
            loss, num_tokens = self.loss(self.model, batch)
            loss.backward()  # adds to self.gradients
            self.gradients.count(loss, num_tokens)
        self.group.add_up(self.gradients.flat)
        self.micro_batches.load_ahead(self.progress)
        loss_sum, num_tokens, grad_norm = self.gradients.normalise_and_clip(self.config.max_grad_norm)
        if self._is_good(step, rate, loss_sum + grad_norm):
            self.optimizer.step(rate)
            if self.average is not None:
                self.average.update(step)
        self.progress.count_update(loss_sum, num_tokens)
        return UpdateFigures(rate, grad_norm)

    def _is_good(self, step: int, rate: float, figure: float) -> bool:
        """Whether an update may be applied: its figures must be finite numbers."""
        if math.isfinite(figure):
            self.progress.bad_updates = 0
            return True
        self.progress.bad_updates += 1
        if self.progress.bad_updates >= MAX_BAD_UPDATES:
            where = f"step {step:,} (learning rate {rate:.3g})"
            raise diverged(where, "loss or gradient is not finite", self.config)
        return False


def diverged(where: str, why: str, config: TrainingConfig) -> TrainingDiverged:
    """The error that ends a training, with what may help.

    Args:
        where: The step.
        why: What is not finite.
        config: Has the rates, of which a tenth is advised.
    """
    return TrainingDiverged(f"training diverged at {where}: {why}; try a new --run with {_lower_rates(config)}")


def _lower_rates(config: TrainingConfig) -> str:
    """The flags for a tenth of the rates."""
    rates = {"learning_rate": config.learning_rate}
    if config.optimizer == "muon":
        rates["muon_learning_rate"] = config.muon_learning_rate
    return " ".join(f"--set training.{name}={rate / 10:.2g}" for name, rate in rates.items())
