"""What every search shares. A search knows no model: it calls a step, which reads and extends a state.

R is the number of rows being extended: sentences still unfinished, times the beam size in beam search.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class SearchState(Protocol):
    """Everything a step needs to know of the rows so far."""

    def select(self, rows: Tensor) -> None:
        """Makes row `rows[i]` row i: drops finished sentences, or repeats rows for a beam."""
        ...

    def reorder(self, rows: Tensor) -> None:
        """Like `select`, where every row keeps its sentence: only what has been generated moves."""
        ...


class Step(Protocol):
    """Extends every row by the token given and says what may come next."""

    def __call__(self, last: Tensor, position: int, state: SearchState) -> Tensor:
        """Takes the newest tokens (R,), standing at `position`; returns logits (R, V)."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One finished output.

    Attributes:
        ids: Token ids, without bos and eos.
        log_prob: Sum of the log-probabilities of the tokens, eos included, under the model without its control pieces.
        score: The log-probability normalised for length; what beam search ranks by.
    """

    ids: list[int]
    log_prob: float
    score: float


def length_normaliser(length: int, alpha: float) -> float:
    """((5 + length) / 6)^alpha, the length penalty of Wu et al. (2016, arXiv:1609.08144, eq. 14); eos counts."""
    return ((5 + length) / 6) ** alpha


def finished(ids: list[int], log_prob: float, alpha: float) -> Hypothesis:
    """A hypothesis from its ids without eos; the length that is normalised by includes it."""
    return Hypothesis(ids, log_prob, log_prob / length_normaliser(len(ids) + 1, alpha))


def force_eos(log_probs: Tensor, at_limit: Tensor, eos_id: int) -> Tensor:
    """Leaves eos as the only choice in rows that have reached their longest length.

    Args:
        log_probs: (R, V).
        at_limit: (R,) bool.
    """
    if not bool(at_limit.any()):
        return log_probs
    forbidden = at_limit[:, None] & (torch.arange(log_probs.size(1), device=log_probs.device) != eos_id)
    return log_probs.masked_fill(forbidden, float("-inf"))
