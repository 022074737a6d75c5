"""The course of a run: updates, one after the other, and between them logging, planning, validating and saving.

Nothing here changes the weights. Validation alone decides something: when the learning rate begins to fall
(`training.patience`), and whether the run ends early (`training.early_stopping`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...seq2seq.training.update import Trainer, UpdateFigures, diverged
from ...system.errors import EnvironmentFault, Interrupted, InterruptedAtOnce
from ..workers.ranks import Ranks
from .plan import Plan


@dataclass
class Hooks:
    """What a session calls out to; each may be left out."""

    validate: Callable[[], dict[str, Any] | None] = lambda: None
    """Scores the model as it stands; the result's `score` (higher is better) decides about the best."""
    save: Callable[[], None] = lambda: None
    say: Callable[[str], None] = lambda text: None
    warn: Callable[[str], None] = lambda text: None
    log: Callable[[dict[str, Any]], None] = lambda record: None
    """Takes a record of deterministic figures."""
    after_update: Callable[[], None] = lambda: None
    moved: Callable[[], str | None] = lambda: None
    """What to say if the run directory has got another name."""
    look_around: Callable[[], None] = lambda: None
    """Called where time has passed, before anything is written."""
    stop_requested: Callable[[], int | None] = lambda: None
    """The signal that asks the run to stop, if one has arrived."""


@dataclass
class Session:
    """The leader's side of a run under way.

    Args:
        trainer: Makes the updates.
        plan: How many there are.
        hooks: Validation, saving, logging.
        ranks: The processes that share the work.
    """

    trainer: Trainer
    plan: Plan
    hooks: Hooks = field(default_factory=Hooks)
    ranks: Ranks = field(default_factory=Ranks)

    def __post_init__(self) -> None:
        self.progress, self.config = self.trainer.progress, self.trainer.config

    def run(self) -> None:
        """Trains until the last step or until validation no longer improves.

        Raises:
            Interrupted: A stop was requested; the state has been saved, or the message says that it has not.
            TrainingDiverged: Several updates in a row had no finite gradient.
        """
        self._validate_if_due()
        while not self._finished():
            self._stop_if_requested()
            self._say_if_the_rate_begins_to_fall()
            rate = self.plan.learning_rate(self.progress.step + 1)
            self.ranks.go_on(rate)
            figures = self._update(rate)
            self.hooks.look_around()
            self._log_if_due(figures)
            self._plan_if_due()
            self.hooks.after_update()
            if not self._validate_if_due() and self.progress.step % self.config.checkpoint_every == 0:
                self._save()
            self._stop_if_moved()

    def _update(self, rate: float) -> UpdateFigures:
        """One update. Says when a batch first does not fit into memory: the run is then another one."""
        divided = self.progress.divided
        figures = self.trainer.update(rate)
        if not divided and self.progress.divided:
            self.hooks.warn(
                f"step {self.progress.step:,}: memory was not enough for a batch; it was computed in pieces, and such"
                " batches are from now on. No sentence is left out, and the result will be as good, but not bit for"
                " bit that of a run with enough memory (a smaller training.max_tokens_per_batch fits, in a new --run)"
            )
        return figures

    def _say_if_the_rate_begins_to_fall(self) -> None:
        """Says so where a run that finds its length by itself comes near its largest number of updates before."""
        plan, progress = self.plan, self.progress
        if not self.config.patience or progress.falling_since or plan.told_to_finish:
            return
        if plan.phase(progress.step) != "lr falls" and plan.phase(progress.step + 1) == "lr falls":
            self.hooks.say(
                f"step {progress.step:,}: the learning rate falls from now on, to 0 at step {plan.limit:,}, where the"
                " run ends: no more updates are allowed"
            )

    def _finished(self) -> bool:
        return self.progress.stopped_early or self.progress.step >= self.plan.limit

    def _stop_if_requested(self) -> None:
        number = self.hooks.stop_requested()
        if number is not None:
            self._save()
            raise Interrupted(f"stopped after step {self.progress.step:,}{self._unsaved()}", number)

    def _stop_if_moved(self) -> None:
        """Saves where the run directory is by now, and stops: under its old name another run would come to be."""
        if (moved := self.hooks.moved()) is not None:
            self._save()
            raise EnvironmentFault(f"stopped after step {self.progress.step:,}{self._unsaved()}: {moved}")

    def _log_if_due(self, figures: UpdateFigures) -> None:
        progress = self.progress
        if progress.step % self.config.log_every == 0:
            record = {
                "step": progress.step,
                "kind": "train",
                "epoch": progress.epoch,
                "loss": progress.mean_loss or 0.0,
            }
            self.hooks.log(record | figures._asdict() | {"tokens": progress.tokens})
            progress.loss_sum, progress.loss_tokens = 0.0, 0

    def _plan_if_due(self) -> None:
        try:
            self.plan.after_update(self.progress.step, self._score)
        except InterruptedAtOnce:
            raise  # it says itself what is lost
        except Interrupted as error:
            self._save()
            raise Interrupted(f"{error}{self._unsaved()}", error.signal_number) from error

    def _plan_pending(self) -> bool:
        """Whether the run's length is still to be measured; a run that ends before that needs no plan."""
        return self.plan.pending and not self._finished()

    def _unsaved(self) -> str:
        """What to say of stopping now if it loses something."""
        lost = ", before the time limit became a number of steps: these are not saved"
        return lost if self._plan_pending() else ""

    def _save(self) -> None:
        # A run whose length is still unknown leaves no checkpoint: it would resume with another measurement.
        if not self._plan_pending():
            self.hooks.save()

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
            with self.plan.timing_validation():
                result = self._score()
        except InterruptedAtOnce:  # perhaps while averages and weights were being exchanged
            raise
        except Interrupted:
            self._save()
            raise
        self.hooks.look_around()
        score, loss = (None, None) if result is None else (result["score"], result.get("loss"))
        for name, figure in (("loss", loss), ("score", score)):
            if figure is not None and not math.isfinite(figure):
                raise diverged(f"step {progress.step:,}", f"the validation gave no finite {name}", self.config)
        progress.count_validation(score, loss, self.config.early_stopping)
        if result is not None:
            self.hooks.log({"step": progress.step, "kind": "validation", "epoch": progress.epoch, **result})
            self._fall_if_due(result)
        self._save()

    def _fall_if_due(self, result: dict[str, Any]) -> None:
        """Lets the learning rate fall once the validation loss has not fallen for so many validations.

        Losses before the rate has come to its peak do not count: those of a model to start from may be lower.
        """
        progress, patience = self.progress, self.config.patience
        if not patience or progress.falling_since or progress.step <= self.config.warmup_steps:
            return
        progress.count_loss(result["loss"])
        if progress.validations_since < patience or not self.plan.fall(progress.step):
            return
        progress.falling_since = progress.step
        lowest = ""
        if progress.lowest_loss is not None:
            lowest = f" below {progress.lowest_loss:.3f}, that of step {progress.lowest_loss_step:,},"
        self.hooks.say(
            f"the validation loss has not fallen{lowest} for {progress.validations_since} validations:"
            f" the learning rate falls from now on, to 0 at step {self.plan.limit:,}, where the run ends"
        )

    def _score(self) -> dict[str, Any] | None:
        """Runs validation on the averaged weights, if there are any, in evaluation mode; keeps no account of it."""
        model, average = self.trainer.model, self.trainer.average
        model.eval()
        with self.ranks.others_idle():
            if average is None:
                return self.hooks.validate()
            average.swap()
            try:
                return self.hooks.validate()
            finally:
                average.swap()
