"""What every search shares. A search knows no model: it calls a step, which reads and extends a state.

R is the number of rows being extended: sentences still unfinished, times the beam size in beam search.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class SearchState(Protocol):
    """Everything a step needs to know of the rows so far; at first each sentence has one row."""

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Makes what row `rows[i]` has generated that of row i.

        Args:
            rows: Equally many for each sentence, those of one sentence side by side.
            sentences: Sentence j becomes sentence `sentences[j]`; the same sentences in the same order if not given.
        """
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


_GROUPS = 100
"""Groups that a long row is divided into to find its largest elements."""


def largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest elements of each row of x (R, V), in falling order, and where they stand; each (R, k).

    torch's `topk` and `argmax` look at the elements of a row one by one. Where that takes long, each row is divided
    into groups, whose maxima are found many at a time; the k largest elements are in k groups with the largest maxima.
    """
    size = x.size(1) // _GROUPS
    if x.device.type != "cpu" or k >= _GROUPS or size * x.size(0) < 4 * _GROUPS:
        return x.topk(k, dim=1)
    grouped = x[:, : size * _GROUPS].unflatten(1, (size, _GROUPS))  # a group is a column, (R, size, groups)
    groups = grouped.amax(dim=1).topk(k, dim=1).indices  # (R, k)
    candidates = grouped.gather(2, groups[:, None].expand(-1, size, -1)).flatten(start_dim=1)  # (R, size * k)
    places = (torch.arange(size, device=x.device)[:, None] * _GROUPS + groups[:, None]).flatten(start_dim=1)
    rest = x[:, size * _GROUPS :]
    if rest.size(1):
        candidates = torch.cat([candidates, rest], dim=1)
        behind = torch.arange(size * _GROUPS, x.size(1), device=x.device)
        places = torch.cat([places, behind.expand(len(x), -1)], dim=1)
    best = candidates.topk(k, dim=1)
    return best.values, places.gather(1, best.indices)


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
