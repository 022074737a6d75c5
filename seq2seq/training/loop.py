"""The training loop: batches in, updates out. It knows tensors and callables, no text and no files.

What happens at a step depends on the step number, the configuration and the data alone. Logging, saving and the clock
never change the weights; validation changes them only by ending the run (early stopping).
"""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from ...data.errors import Interrupted, InterruptedAtOnce, TrainingDiverged
from ..evaluation.loss import TensorBatch
from ..model.transformer import Transformer
from .config import TrainingConfig
from .gradients import GradientBuffer
from .loss import training_loss
from .optimizer import MovingAverage, Optimizer
from .randomness import seed_torch
from .ranks import Ranks
from .schedule import learning_rate

MAX_BAD_UPDATES = 3
"""So many updates in a row may have a gradient that is not finite; each is skipped, then training stops."""

PLAN_STEP = 60
"""With a time limit, the number of updates after which the number of steps is fixed."""


@dataclass
class Progress:
    """Where training stands: everything besides weights and moments that a resumed run needs (`state.json`)."""

    step: int = 0
    epoch: int = 0
    next_batch: int = 0
    """Index, in the epoch's plan, of the first batch of the next step."""
    tokens: int = 0
    """Target tokens trained on."""
    loss_sum: float = 0.0
    """Summed loss since the last log line, and its tokens."""
    loss_tokens: int = 0
    validated_step: int = -1
    score: float | None = None
    """Score of the validation at this very step, if there was one; higher is better."""
    best_score: float | None = None
    best_step: int = 0
    bad_validations: int = 0
    """Validations in a row without a new best."""
    stopped_early: bool = False
    bad_updates: int = 0
    """Updates in a row that were skipped because the gradient was not finite."""


class BatchProvider(Protocol):
    """The batches of each epoch, in the order to train on them."""

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        ...

    def load_part(self, epoch: int, index: int, part: int, parts: int) -> TensorBatch | None:
        """One of so many equal parts of a batch, on the training device; None if the batch is too small for that."""
        ...


class _Update(NamedTuple):
    """What an update trains on: some batches of an epoch, cut into micro-batches, which the ranks share.

    Attributes:
        epoch: Of the batches.
        batches: Their indices.
        micro_batches: Their parts, numbered from 0: those of the first batch, then those of the second, and so on.
        loaded: Micro-batches that are loaded already, by their number.
    """

    epoch: int
    batches: range
    micro_batches: range
    loaded: dict[int, TensorBatch | None]


@dataclass
class Hooks:
    """What the loop calls out to; each may be left out."""

    validate: Callable[[Progress], dict[str, Any] | None] = lambda progress: None
    """Scores the model as it stands; the result's `score` (higher is better) decides about the best."""
    save: Callable[[Progress], None] = lambda progress: None
    log: Callable[[dict[str, Any]], None] = lambda record: None
    """Takes a record of deterministic figures."""
    on_step: Callable[[Progress, int | None], None] = lambda progress, max_steps: None
    """Called after each update, with the number of steps planned, once it is known."""
    stop_requested: Callable[[], int | None] = lambda: None
    """The signal that asks the loop to stop, if one has arrived."""
    plan_steps: Callable[[Progress, float], int] | None = None
    """Given the seconds that a step takes, says how many steps fit the time; called once, after `PLAN_STEP` updates."""


@dataclass
class Trainer:
    """Trains a model.

    Args:
        model: On its device.
        optimizer: Over its parameters.
        average: Moving average of the weights, or None.
        config: Seed, schedule, accumulation, cadence.
        batches: The training data.
        dtype: Precision of activations and matrix products; weights, optimizer and sums stay float32.
        progress: Where to start.
        max_steps: Updates in all, or None if `hooks.plan_steps` is to decide.
        hooks: Validation, saving, logging; the leader's alone.
        ranks: Who shares the work; each rank has a trainer.
        parts: Micro-batches into which each batch is cut for them.
    """

    model: Transformer
    optimizer: Optimizer
    average: MovingAverage | None
    config: TrainingConfig
    batches: BatchProvider
    dtype: torch.dtype = torch.float32
    progress: Progress = field(default_factory=Progress)
    max_steps: int | None = None
    hooks: Hooks = field(default_factory=Hooks)
    ranks: Ranks = field(default_factory=Ranks)
    parts: int = 1

    def __post_init__(self) -> None:
        self._gradients = GradientBuffer(self.model)
        self._ahead: _Update | None = None

    def run(self) -> None:
        """Trains until the last step or until validation no longer improves.

        Raises:
            Interrupted: A stop was requested; the state has been saved.
            TrainingDiverged: Several updates in a row had no finite gradient.
        """
        self._step_ends: list[float] = []
        self._validate_if_due()
        while not self._finished():
            self._stop_if_requested()
            self.ranks.go_on(self.max_steps)
            self._train_step()
            self._log_if_due()
            self._plan_if_due()
            self.hooks.on_step(self.progress, self.max_steps)
            if not self._validate_if_due() and self.progress.step % self.config.checkpoint_every == 0:
                self._save()

    def follow(self) -> None:
        """Makes the updates that the leader asks for."""
        for max_steps in self.ranks.updates():
            self.max_steps = max_steps
            self._train_step()

    def _finished(self) -> bool:
        return self.progress.stopped_early or self.progress.step >= self._total_steps

    @property
    def _total_steps(self) -> int:
        """Updates in all; while a time limit is still to be turned into a number, at most so many."""
        return self.config.max_steps if self.max_steps is None else self.max_steps

    def _stop_if_requested(self) -> None:
        number = self.hooks.stop_requested()
        if number is not None:
            self._save()
            raise Interrupted(f"stopped after step {self.progress.step:,}{self._unsaved()}", number)

    def _train_step(self) -> None:
        """One update: gradients of one or more batches, added, normalised by their tokens, clipped, applied."""
        progress = self.progress
        step = progress.step + 1
        update = self._next_update()
        self.model.train()
        self._gradients.clear()
        for number in self.ranks.share(update.micro_batches):
            batch = update.loaded.pop(number) if number in update.loaded else self._load(update, number)
            if batch is not None:
                seed_torch(self.config.seed, "dropout", step, number)
                self._gradients.add(self._loss(batch), batch.num_tokens)
        self.ranks.add_up(self._gradients.flat)
        if step < self._total_steps:
            self._load_ahead()
        loss_sum, num_tokens, grad_norm = self._gradients.normalise(self.config.max_grad_norm)
        rate = learning_rate(step, self.config, self._total_steps)
        self._update(step, rate, loss_sum, grad_norm)
        progress.step = step
        progress.tokens += num_tokens
        if math.isfinite(loss_sum):
            progress.loss_sum += loss_sum
            progress.loss_tokens += num_tokens
        progress.score = None
        self._last = {"lr": rate, "grad_norm": grad_norm}

    def _next_update(self) -> _Update:
        """Moves on to the batches that the next update takes."""
        update = self._ahead or self._update_ahead()
        self.progress.epoch, self.progress.next_batch = update.epoch, update.batches.stop
        self._ahead = None
        return update

    def _update_ahead(self) -> _Update:
        """The next update, nothing of it loaded yet; the last of an epoch may have fewer batches."""
        epoch, start = self.progress.epoch, self.progress.next_batch
        if start >= self.batches.num_batches(epoch):
            epoch, start = epoch + 1, 0
        stop = min(start + self.config.grad_accum_steps, self.batches.num_batches(epoch))
        return _Update(epoch, range(start, stop), range((stop - start) * self.parts), {})

    def _load_ahead(self) -> None:
        """Loads this rank's first share of the next update, before the host waits for the device to end this one."""
        self._ahead = self._update_ahead()
        for number in self.ranks.share(self._ahead.micro_batches)[:1]:
            self._ahead.loaded[number] = self._load(self._ahead, number)

    def _load(self, update: _Update, number: int) -> TensorBatch | None:
        """A micro-batch of an update, by its number."""
        batch, part = divmod(number, self.parts)
        return self.batches.load_part(update.epoch, update.batches[batch], part, self.parts)

    def _loss(self, batch: TensorBatch) -> Tensor:
        hidden = self.model.hidden_states(batch.src, batch.tgt_in, self.dtype)
        smoothing = self.config.label_smoothing
        return training_loss(hidden, self.model.output_layer, batch.tgt_out, smoothing, self.model.pad_id)

    def _update(self, step: int, rate: float, loss_sum: float, grad_norm: float) -> None:
        if not (math.isfinite(loss_sum) and math.isfinite(grad_norm)):
            self.progress.bad_updates += 1
            if self.progress.bad_updates >= MAX_BAD_UPDATES:
                raise TrainingDiverged(
                    f"training diverged at step {step:,} (learning rate {rate:.3g}): loss or gradient is not finite;"
                    f" try a new --run with {_lower_rates(self.config)}"
                )
            return
        self.progress.bad_updates = 0
        self.optimizer.step(rate)
        if self.average is not None:
            self.average.update(step)

    def _log_if_due(self) -> None:
        progress = self.progress
        if progress.step % self.config.log_every == 0:
            loss = progress.loss_sum / max(progress.loss_tokens, 1)
            self.hooks.log(
                {"step": progress.step, "kind": "train", "epoch": progress.epoch, "loss": loss, **self._last}
                | {"tokens": progress.tokens}
            )
            progress.loss_sum, progress.loss_tokens = 0.0, 0

    def _plan_if_due(self) -> None:
        """Turns the time limit into a number of steps, once; the first third of the steps timed are warm-up.

        What a step takes is the median, which has no pauses in it.
        """
        if not self._plan_pending():
            return
        self._step_ends.append(time.monotonic())
        if len(self._step_ends) >= PLAN_STEP:
            assert self.hooks.plan_steps is not None
            timed = self._step_ends[len(self._step_ends) // 3 :]
            try:
                self.max_steps = self.hooks.plan_steps(
                    self.progress, statistics.median(end - start for start, end in pairwise(timed))
                )
            except InterruptedAtOnce:
                raise  # it says itself what is lost
            except Interrupted as error:
                raise Interrupted(f"{error}{self._unsaved()}", error.signal_number) from error

    def _plan_pending(self) -> bool:
        """Whether the run's length is still to be measured; a run that ends before that needs no plan."""
        return self.max_steps is None and self.hooks.plan_steps is not None and not self._finished()

    def _unsaved(self) -> str:
        """What to say of stopping now if it loses something."""
        lost = ", before the time limit became a number of steps: these are not saved"
        return lost if self._plan_pending() else ""

    def _save(self) -> None:
        # A run whose length is still unknown leaves no checkpoint: it would resume with another measurement.
        if not self._plan_pending():
            self.hooks.save(self.progress)

    def _validate_if_due(self) -> bool:
        """Validates at every `validate_every`-th step and at the last one; then saves, so not before it may."""
        progress = self.progress
        due = progress.step > 0 and (progress.step % self.config.validate_every == 0 or self._finished())
        if not due or progress.validated_step == progress.step or self._plan_pending():
            return False
        self.validate_and_save()
        return True

    def validate_and_save(self) -> None:
        """Scores the model, keeps account of the best, and saves."""
        progress = self.progress
        try:
            result = self.try_validation()
        except InterruptedAtOnce:  # perhaps while averages and weights were being exchanged
            raise
        except Interrupted:
            self._save()
            raise
        progress.validated_step = progress.step
        if result is not None:
            self.hooks.log({"step": progress.step, "kind": "validation", "epoch": progress.epoch, **result})
            progress.score = result["score"]
            if progress.best_score is None or result["score"] > progress.best_score:
                progress.best_score, progress.best_step, progress.bad_validations = result["score"], progress.step, 0
            else:
                progress.bad_validations += 1
            patience = self.config.early_stopping
            progress.stopped_early = bool(patience and progress.bad_validations >= patience)
        self._save()

    def try_validation(self) -> dict[str, Any] | None:
        """Runs validation on the averaged weights, if there are any, in evaluation mode; keeps no account of it."""
        self.model.eval()
        with self.ranks.others_idle():
            if self.average is None:
                return self.hooks.validate(self.progress)
            self.average.swap()
            try:
                return self.hooks.validate(self.progress)
            finally:
                self.average.swap()


def _lower_rates(config: TrainingConfig) -> str:
    """The flags for a tenth of the rates."""
    rates = {"learning_rate": config.learning_rate}
    if config.optimizer == "muon":
        rates["muon_learning_rate"] = config.muon_learning_rate
    return " ".join(f"--set training.{name}={rate / 10:.2g}" for name, rate in rates.items())
