"""Where training stands."""

import math
from dataclasses import dataclass


@dataclass
class Progress:
    """Everything besides weights and moments that a resumed run needs (part of `state.json`)."""

    step: int = 0
    """Updates made."""
    epoch: int = 0
    next_batch: int = 0
    """Index, in the epoch's plan, of the first batch of the next step."""
    tokens: int = 0
    """Target tokens trained on."""
    loss_sum: float = 0.0
    """Summed loss since the last log line."""
    loss_tokens: int = 0
    """Tokens of this sum."""
    validated_step: int = -1
    score: float | None = None
    """Score of the validation at this very step, if there was one; higher is better."""
    loss: float | None = None
    """Loss of the validation at this very step; of equal scores the lower loss is better."""
    best_score: float | None = None
    best_loss: float | None = None
    best_step: int = 0
    bad_validations: int = 0
    """Validations in a row without a higher score."""
    lowest_loss: float | None = None
    """Lowest validation loss so far."""
    lowest_loss_step: int = 0
    """The step of that validation."""
    validations_since: int = 0
    """Validations since the lowest loss."""
    falling_since: int = 0
    """Step after which the learning rate falls because the validation loss had stopped falling; 0 if it has not."""
    stopped_early: bool = False
    bad_updates: int = 0
    """Updates in a row that were skipped because the gradient was not finite."""
    fitting: int = 0
    """The most positions, padding included, that a piece of a batch may have, as more did not fit into memory; 0 if
    every batch has fitted."""
    divided: int = 0
    """Batches, of all processes, that were computed in pieces. From the first of them on the run is not, bit for bit,
    the one that more memory would give."""

    @property
    def mean_loss(self) -> float | None:
        """Mean loss of a token since the last log line; None if there was no token."""
        return self.loss_sum / self.loss_tokens if self.loss_tokens else None

    def count_update(self, loss_sum: float, num_tokens: int) -> None:
        """Takes account of one more update."""
        self.step += 1
        self.tokens += num_tokens
        if math.isfinite(loss_sum):
            self.loss_sum += loss_sum
            self.loss_tokens += num_tokens
        self.score = self.loss = None

    def count_validation(self, score: float | None, loss: float | None, early_stopping: int) -> None:
        """Takes account of a validation at this step.

        Args:
            score: Higher is better; None if nothing was scored.
            loss: Of the validation set; it decides where scores are equal.
            early_stopping: Validations without a new best after which training stops; 0 for never.
        """
        self.validated_step = self.step
        if score is None:
            return
        self.score, self.loss = score, loss
        higher = self.best_score is None or score > self.best_score
        self.bad_validations = 0 if higher else self.bad_validations + 1
        if higher or (score == self.best_score and self._loss_is_lower()):
            self.best_score, self.best_loss, self.best_step = score, loss, self.step
        self.stopped_early = bool(early_stopping and self.bad_validations >= early_stopping)

    def _loss_is_lower(self) -> bool:
        return self.loss is not None and self.best_loss is not None and self.loss < self.best_loss

    def count_loss(self, loss: float) -> None:
        """Takes account of a validation loss; one that is not finite is never the lowest."""
        if math.isfinite(loss) and (self.lowest_loss is None or loss < self.lowest_loss):
            self.lowest_loss, self.lowest_loss_step, self.validations_since = loss, self.step, 0
        else:
            self.validations_since += 1
