"""How often the vector nearest to that of a sentence is that of its translation."""

import math
from dataclasses import dataclass

from torch import Tensor

_ROWS = 1000
"""Sentences compared with all the others at a time, so that memory does not grow with their square."""


@dataclass(frozen=True)
class Retrieval:
    """Share of sentences, in percent, whose nearest one on the other side is a right one; not a number for no pairs."""

    src_to_tgt: float
    tgt_to_src: float

    @property
    def mean(self) -> float:
        """Of both directions."""
        return (self.src_to_tgt + self.tgt_to_src) / 2


def top_1(sources: Tensor, targets: Tensor, src_keys: Tensor, tgt_keys: Tensor) -> Retrieval:
    """Looks for the translation of each sentence among those of all, by (N, D) unit vectors; row i of both is a pair.

    The keys are (N,) numbers, equal for equal sentences. A sentence that occurs twice has two right answers.
    """

    def share(queries: Tensor, candidates: Tensor) -> float:
        right = 0
        for rows in (slice(start, start + _ROWS) for start in range(0, len(queries), _ROWS)):
            found = (queries[rows] @ candidates.T).argmax(dim=1)
            right += int(((src_keys[rows] == src_keys[found]) | (tgt_keys[rows] == tgt_keys[found])).sum())
        return 100 * right / len(queries) if len(queries) else math.nan

    return Retrieval(share(sources, targets), share(targets, sources))
