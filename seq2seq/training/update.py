"""One update of the weights. It knows tensors and callables: no text, no files, no clock.

What an update does depends on its number, the configuration and the data alone. Every random choice is seeded by what
it is for, never by what came before.
"""

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from ...system.errors import TrainingDiverged
from .batch import Batch, BatchProvider, Group, MicroBatches
from .config import TrainingConfig
from .low_memory import Pieces
from .optimizer import MovingAverage, Optimizer
from .progress import Progress

if TYPE_CHECKING:
    from .graphs import CudaGraphs

MAX_BAD_UPDATES = 3
"""This many updates in a row may have a gradient that is not finite; each is skipped, then training stops."""
Loss = Callable[[Any, Batch], tuple[Tensor, int]]
"""Takes a model and a batch. Returns the summed loss, and the number of tokens, pairs or guesses in the sum."""


class Totals(NamedTuple):
    """The sums of one update over all its micro-batches, and the norm of its gradient."""

    loss_sum: float
    num_tokens: int
    divided: int
    """Batches computed in pieces."""
    grad_norm: float
    """The norm of the gradient divided by the number of tokens, before clipping."""


class GradientBuffer:
    """The gradients of one update. Beside them stand the summed loss, the tokens, and the batches computed in pieces.

    Each parameter's `grad` is a view of the buffer, so that a backward pass adds to it and one all-reduce takes all.
    """

    def __init__(self, model: nn.Module) -> None:
        parameters = list(model.parameters())
        sizes = [parameter.numel() for parameter in parameters]
        self.flat = torch.zeros(sum(sizes) + 3, device=parameters[0].device)
        """Gradients one after the other, then the summed loss, the tokens, and the batches computed in pieces."""
        self._gradients, self._totals = self.flat[:-3], self.flat[-3:]
        for parameter, gradient in zip(parameters, self._gradients.split(sizes), strict=True):
            parameter.grad = gradient.view_as(parameter)

    def clear(self) -> None:
        """Begins an update."""
        self.flat.zero_()

    def count(self, loss: Tensor, num_tokens: int) -> None:
        """Adds the totals of one micro-batch, or of a piece of it, whose backward pass has added its gradients."""
        self._totals[0] += loss
        self._totals[1] += num_tokens

    def count_divided(self) -> None:
        """Counts a micro-batch that was computed in pieces."""
        self._totals[2] += 1

    def normalise_and_clip(self, max_norm: float) -> "Totals":
        """Divides by the number of tokens, then scales down to a norm of at most `max_norm` (0: any), in one pass.

        The only place in an update where the host waits for the device.
        """
        loss_sum, num_tokens, divided, norm_of_sum = torch.cat([self._totals, self._gradients.norm()[None]]).tolist()
        norm = norm_of_sum / num_tokens
        excess = max(norm / max_norm, 1.0) if max_norm else 1.0
        self._gradients.div_(num_tokens * excess)
        return Totals(loss_sum, int(num_tokens), int(divided), norm)


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
        graphs: Adds gradients faster on a GPU, or None.
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
    graphs: "CudaGraphs | None" = None

    def __post_init__(self) -> None:
        self.gradients = GradientBuffer(self.model)
        self.micro_batches = MicroBatches(self.provider, self.config.grad_accum_steps, self.parts, self.group)

    def update(self, rate: float) -> float | None:
        """Makes one update: gradients of one or more batches, added, normalised by their tokens, clipped, applied.

        Args:
            rate: The learning rate, a function of the step and of the length of the run; see `schedule`.

        Returns:
            The norm of the gradient before clipping, if it is finite.

        Raises:
            TrainingDiverged: Several updates in a row had no finite gradient.
            OutOfMemory: Not even one sentence fits into memory.
        """
        self.model.train()
        pieces = Pieces(self.micro_batches.take(self.progress), self.gradients, self.progress)
        for number, index, batch in pieces:
            with pieces.fitting(batch):
                seed_torch(self.config.seed, "dropout", self.progress.step + 1, number, *([index] if index else []))
                loss, num_tokens = self.backward(batch)
                self.gradients.count(loss, num_tokens)
        self.group.all_reduce(self.gradients.flat)
        self.micro_batches.load_ahead(self.progress)
        totals = self.gradients.normalise_and_clip(self.config.max_grad_norm)
        if self._is_good(rate, totals.loss_sum + totals.grad_norm):
            if self.graphs is not None and self.group.count == 1:
                self.graphs.step(self.optimizer, rate)
            else:
                self.optimizer.step(rate)
            if self.average is not None:
                self.average.update(self.progress.step + 1)
        self.progress.count_update(totals.loss_sum, totals.num_tokens)
        self.progress.divided += totals.divided
        return totals.grad_norm if math.isfinite(totals.grad_norm) else None

    def backward(self, batch: Batch) -> tuple[Tensor, int]:
        """Adds the gradients of a micro-batch to the buffer. Returns its summed loss, and the tokens in the sum."""
        if self.graphs is not None and self.graphs.ready(batch):
            return self.graphs.backward(batch)
        loss, num_tokens = self.loss(self.model, batch)
        loss.backward()
        return loss.detach(), num_tokens

    def _is_good(self, rate: float, figure: float) -> bool:
        """Whether an update may be applied: its figures must be finite numbers. Counts those in a row that may not."""
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
        purpose: `dropout`, `weights`, ..: keeps the streams of different uses apart.
        counters: For example step and micro-batch.
    """
    text = " ".join([str(seed), purpose, *map(str, counters)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


def seed_torch(seed: int, purpose: str, *counters: int) -> None:
    """Sets torch's global generators, of all devices, to the state that the counters name.

    It does what `torch.manual_seed` does to the devices in use. For those that are not in use, that would write down
    each time from where it was called, which is a twentieth of an update of a tiny model.
    """
    number = counter_seed(seed, purpose, *counters)
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(number)
