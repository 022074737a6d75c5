"""Subword dropout: words seen in ever different pieces, so that a model learns what the pieces have in common.

BPE-dropout (Provilkov et al. 2020) leaves out merges at random while it segments a text. Here a piece of the finished
segmentation is taken apart again, which needs no text, only ids, and does for any kind of vocabulary.
"""

from collections.abc import Sequence

import numpy as np

from .encoding import Ids
from .tokenizer import UNK_ID, Vocabulary


class SubwordDropout:
    """Replaces pieces by two shorter ones that spell the same, each with probability `rate`, in any possible way.

    Rows that would become longer than `max_pieces` stay as they are.
    """

    def __init__(self, vocabulary: Vocabulary, rate: float, max_pieces: int) -> None:
        self._rate, self._max_pieces = rate, max_pieces
        divisions = _divisions(vocabulary)
        self._counts = np.array([len(ways) for ways in divisions])
        self._starts = np.cumsum(self._counts) - self._counts
        self._parts = np.array([way for ways in divisions for way in ways], np.int32).reshape(-1, 2)

    @property
    def has_effect(self) -> bool:
        """Whether there is a piece that can be divided."""
        return len(self._parts) > 0

    def __call__(self, rows: Sequence[Ids], rng: np.random.Generator) -> list[Ids]:
        """Divides pieces of rows of ids at random."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        ids = np.concatenate(rows)
        divided = (rng.random(len(ids), np.float32) < self._rate) & (self._counts[ids] > 0)
        way = self._starts[ids] + (rng.random(len(ids)) * self._counts[ids]).astype(np.int64)
        row_of = np.repeat(np.arange(len(rows)), lengths)
        longer = lengths + np.bincount(row_of, divided, len(rows)).astype(np.int64)
        divided &= (longer <= self._max_pieces)[row_of]
        places = np.arange(len(ids)) + np.cumsum(divided) - divided  # of each piece, or of its first part
        result = np.repeat(ids, 1 + divided)
        result[places[divided]] = self._parts[way[divided], 0]
        result[places[divided] + 1] = self._parts[way[divided], 1]
        lengths = np.where(longer <= self._max_pieces, longer, lengths)
        return np.split(result, np.cumsum(lengths)[:-1])


def _divisions(vocabulary: Vocabulary) -> list[list[tuple[int, int]]]:
    """For each piece, the pairs of pieces that spell it. Bytes, control pieces and the unknown piece have none."""
    apart = {UNK_ID, *vocabulary.control_ids()}
    spelling = {vocabulary.piece(i): i for i in range(len(vocabulary)) if i not in apart and not vocabulary.is_byte(i)}
    return [
        [
            (spelling[piece[:cut]], spelling[piece[cut:]])
            for cut in range(1, len(piece))
            if piece[:cut] in spelling and piece[cut:] in spelling
        ]
        if spelling.get(piece := vocabulary.piece(i)) == i
        else []
        for i in range(len(vocabulary))
    ]
