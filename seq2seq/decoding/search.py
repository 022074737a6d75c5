"""What every search shares. A search knows no model: it calls a step, which reads and extends a state.

R is the number of rows being extended: sentences still unfinished, times the beam size in beam search.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F


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
        """Takes the newest tokens (R,), standing at `position`; returns logits (R, V), without gradients.

        They hold until the next step, and the caller may overwrite them.
        """
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


_GROUP = 64
"""Neighbours that are looked at together in a long row to find its largest elements."""
_LONG_ROW = 2000
"""Elements from which a row counts as long."""


def largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest elements of each row of x (R, V), in falling order, and where they stand; each (R, k).

    torch's `topk` and `argmax` look at the elements of a long row one by one. NumPy's `argmax` takes many at a time;
    for more elements than one, a row is divided into groups, whose maxima torch finds many at a time: the k largest
    elements are in k groups with the largest maxima.
    """
    width = x.size(1)
    if x.device.type != "cpu" or width < max(_LONG_ROW, 2 * k * _GROUP):
        return x.topk(k, dim=1)
    if k == 1:
        place = torch.from_numpy(x.numpy().argmax(axis=1, keepdims=True))
        return x.gather(1, place), place
    count = width // _GROUP
    grouped = x[:, : count * _GROUP].unflatten(1, (count, _GROUP))  # (R, groups, 64)
    groups = grouped.amax(dim=2).topk(k, dim=1).indices  # (R, k)
    candidates = grouped.gather(1, groups.unsqueeze(2).expand(-1, -1, _GROUP)).flatten(1)  # (R, k * 64)
    rest = x[:, count * _GROUP :]  # (R, fewer than 64)
    if rest.size(1):  # it is one more group, which follows the chosen ones
        candidates, groups = torch.cat([candidates, rest], dim=1), F.pad(groups, (0, 1), value=count)
    values, chosen = candidates.topk(k, dim=1)
    return values, groups.gather(1, torch.floor_divide(chosen, _GROUP)) * _GROUP + chosen.remainder(_GROUP)


def log_softmax(logits: Tensor) -> Tensor:
    """Log-probabilities (R, V) of logits (R, V); on a CPU in their place, as new memory costs as much time."""
    logits = logits.float()
    return torch.log_softmax(logits, dim=-1, out=logits if logits.device.type == "cpu" else None)


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
