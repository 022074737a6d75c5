"""One update of the weights. It knows tensors and callables: no text, no files, no clock.

What an update does depends on its number, the configuration and the data alone. What happens between two updates
(logging, validating, saving) is in `runs.session`.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from torch import Tensor, nn

from ...system.errors import OutOfMemory, TrainingDiverged
from ..out_of_memory import free_memory, is_out_of_memory
from .batches import Alone, BatchProvider, Divisible, Group, MicroBatches, in_pieces
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
            OutOfMemory: Not even one sentence fits into memory.
        """
        step = self.progress.step + 1
        self.model.train()
        self._add_gradients(step)
        self.group.add_up(self.gradients.flat)
        self.micro_batches.load_ahead(self.progress)
        totals = self.gradients.normalise_and_clip(self.config.max_grad_norm)
        if self._is_good(step, rate, totals.loss_sum + totals.grad_norm):
            self.optimizer.step(rate)
            if self.average is not None:
                self.average.update(step)
        self.progress.count_update(totals.loss_sum, totals.num_tokens)
        self.progress.divided += totals.divided
        return UpdateFigures(rate, totals.grad_norm if math.isfinite(totals.grad_norm) else None)

    def _add_gradients(self, step: int) -> None:
        """Adds the gradients of this process's micro-batches.

        Where memory is not enough, all that were added are computed anew, in smaller pieces: the backward pass that
        failed may have added some of its gradients.
        """
        self.gradients.clear()
        taken: list[tuple[int, Any]] = []
        for number, batch in self.micro_batches.take(self.progress):
            taken.append((number, batch))
            fits = self._add_gradients_of(step, number, batch)
            while not fits:
                free_memory()
                self.gradients.clear()
                fits = all(self._add_gradients_of(step, *one) for one in taken)

    def _add_gradients_of(self, step: int, number: int, batch: Any) -> bool:
        """Adds the gradients of one micro-batch, in pieces if so many positions have not fitted into memory before.

        Returns:
            Whether it fitted. If not, `progress.fitting` has become smaller.

        Raises:
            OutOfMemory: Not even one sentence fits.
        """
        pad_id: Any = self.model.pad_id
        pieces = in_pieces(batch, self.progress.fitting, pad_id)
        for index, piece in enumerate(pieces):
            seed_torch(self.config.seed, "dropout", step, number, *([index] if index else []))
            try:
                loss, num_tokens = self.loss(self.model, piece)
                loss.backward()  # adds to self.gradients
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                if len(piece) == 1:
                    raise OutOfMemory(_too_large(step, piece)) from error
                self.progress.fitting = piece.positions // 2
                return False
            self.gradients.count(loss, num_tokens)
        if len(pieces) > 1:
            self.gradients.count_divided()
        return True

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


def _too_large(step: int, batch: Divisible) -> str:
    """What to say of a sentence that does not fit into memory."""
    return (
        f"step {step:,}: not enough memory for a single sentence of {batch.positions:,} positions; end other programs,"
        " or train a smaller model in a new --run: --set model.d_model=.. model.max_seq_len=.., or with"
        " training.ranks=1"
    )


def _lower_rates(config: TrainingConfig) -> str:
    """The flags for a tenth of the rates."""
    rates = {"learning_rate": config.learning_rate}
    if config.optimizer == "muon":
        rates["muon_learning_rate"] = config.muon_learning_rate
    return " ".join(f"--set training.{name}={rate / 10:.2g}" for name, rate in rates.items())
