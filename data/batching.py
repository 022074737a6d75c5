"""Which pairs are trained on together, as rows of ids; seq2seq/training/batch.py makes tensors of them.

Batch order is a function of (seed, epoch) alone: there is no iterator state to save, and a resumed run sees exactly the
batches that an uninterrupted one would have seen.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .encoding import Ids
from .store import TokenStore
from .tokenizer import BOS_ID, EOS_ID

if TYPE_CHECKING:
    from .subword_dropout import SubwordDropout

RowNumbers = npt.NDArray[np.uint32]
Row = tuple[list[int], list[int]]
"""A pair as ids: the source, ending in eos, or in bos if it was turned round; the target from bos to eos. A text alone
has an empty source."""

_NEIGHBOURS = 256
"""Batches with about as many tokens as each other are looked for among this many batches."""


def training_rows(pairs: Iterable[tuple[list[int], list[int]]]) -> list[Row]:
    """Pairs as a model reads them. Where none has a source, they are texts alone: without its eos, too."""
    pairs = list(pairs)
    eos = [EOS_ID] if any(src for src, _ in pairs) else []
    return [([*src, *eos], [BOS_ID, *tgt, EOS_ID]) for src, tgt in pairs]


def turned_round(row: Row) -> Row:
    """A pair from target to source. Its source ends in bos, where that of the other direction ends in eos."""
    src, tgt = row
    return [*tgt[1:-1], BOS_ID], [BOS_ID, *src]


def plan_epoch(
    src_lengths: npt.NDArray[np.int32],
    tgt_lengths: npt.NDArray[np.int32],
    *,
    seed: int,
    epoch: int,
    max_tokens: int,
    group: int = 1,
) -> list[RowNumbers]:
    """Divides one epoch into batches of similar lengths.

    Rows are shuffled, then sorted by target and source length, so that rows of equal lengths stay in random order; the
    sorted sequence is cut wherever one more row would exceed the budget, and the batches are shuffled. Where several
    processes compute the batches of one group at the same time, the slowest decides: groups are then made of batches
    with about as many tokens, from some hundred that are neighbours in the shuffled order, and shuffled again.

    Args:
        src_lengths, tgt_lengths: Pieces of each row, shape (N,).
        max_tokens: Most positions, padding included, that a batch may have on either side.
        seed, epoch: All that the result depends on besides the lengths.
        group: Batches that are computed at the same time.

    Returns row numbers of each batch; every row is in exactly one.
    """
    rng = np.random.Generator(np.random.Philox(key=[seed, epoch]))
    order = _sorted(rng.permutation(len(src_lengths)).astype(np.uint32), src_lengths, tgt_lengths)
    batches = list(_cut(order, src_lengths, tgt_lengths, max_tokens))
    batches = [batches[i] for i in rng.permutation(len(batches))]
    return batches if group == 1 else _in_equal_groups(batches, tgt_lengths, group, rng)


def _in_equal_groups(
    batches: list[RowNumbers], tgt_lengths: Ids, group: int, rng: np.random.Generator
) -> list[RowNumbers]:
    """Reorders batches so that each `group` in a row have about as many target tokens."""
    ordered: list[RowNumbers] = []
    size = _NEIGHBOURS // group * group or group
    for start in range(0, len(batches), size):
        neighbours = batches[start : start + size]
        tokens = [int(tgt_lengths[rows].sum()) + len(rows) for rows in neighbours]
        ranked = sorted(range(len(neighbours)), key=tokens.__getitem__)
        groups = [ranked[i : i + group] for i in range(0, len(ranked), group)]
        last = [groups.pop()] if len(groups[-1]) < group else []  # an incomplete one ends the epoch
        for i in rng.permutation(len(groups)).tolist():
            ordered += [neighbours[member] for member in groups[i]]
        ordered += [neighbours[member] for members in last for member in members]
    return ordered


def _sorted(rows: RowNumbers, src_lengths: Ids, tgt_lengths: Ids) -> RowNumbers:
    """Rows by target length, then source length, then as they came.

    The three keys are the bits of one number, sorted in place, so that the plan of millions of pairs takes little more
    memory than their row numbers. (Absurd lengths would push the target's highest bits out: more padding, no harm.)
    """
    if not len(rows):
        return rows
    place_bits, src_bits = len(rows).bit_length(), int(src_lengths.max()).bit_length()
    keys = tgt_lengths[rows].astype(np.uint64)
    keys <<= np.uint64(src_bits)
    keys |= src_lengths[rows].view(np.uint32)
    keys <<= np.uint64(place_bits)
    keys |= np.arange(len(rows), dtype=np.uint32)
    keys.sort()
    keys &= np.uint64((1 << place_bits) - 1)
    return rows[keys.view(np.int64)]


def _cut(order: RowNumbers, src_lengths: Ids, tgt_lengths: Ids, max_tokens: int) -> Iterator[RowNumbers]:
    """Cuts a sequence of rows into batches, each as long as the budget allows."""
    start = 0
    while start < len(order):
        # Targets only get longer from here. Each side has one special piece: eos, or bos against eos.
        least = int(tgt_lengths[order[start]]) + 1
        rows = order[start : start + max(max_tokens // least, 1)]
        widths = np.maximum.accumulate(np.maximum(src_lengths[rows], tgt_lengths[rows])) + 1
        size = max(np.count_nonzero(widths * np.arange(1, len(rows) + 1) <= max_tokens), 1)
        yield rows[:size]
        start += size


class BatchSource:
    """The endless sequence of training batches of a run.

    The seed decides their order and what subword dropout divides. That comes after planning: a batch can exceed its
    budget by it. A `group` is the batches of one update. In `both_directions`, each pair is turned round in every
    second epoch, half of the pairs in each: a batch has more padding then where sides differ in length.
    """

    def __init__(
        self,
        store: TokenStore,
        *,
        max_tokens: int,
        seed: int,
        group: int = 1,
        subword_dropout: "tuple[SubwordDropout, SubwordDropout] | None" = None,
        both_directions: bool = False,
    ) -> None:
        self._store, self._subword_dropout, self._both_directions = store, subword_dropout, both_directions
        self._max_tokens, self._seed, self._group = max_tokens, seed, group
        self._epoch = -1
        self._plan: list[RowNumbers] = []

    def plan(self, epoch: int) -> list[RowNumbers]:
        """The row numbers of each batch of an epoch."""
        if epoch != self._epoch:
            self._plan = []  # frees the old plan first: two together would need twice the memory
            lengths = self._store.src_lengths, self._store.tgt_lengths
            self._plan = plan_epoch(
                *lengths, max_tokens=self._max_tokens, seed=self._seed, epoch=epoch, group=self._group
            )
            self._epoch = epoch
        return self._plan

    def rows(self, epoch: int, index: int, part: int = 0, parts: int = 1) -> list[Row]:
        """The pairs of one batch of an epoch, or of part number `part` of `parts`; none if there are too few for that.

        A part is every `parts`-th pair, from number `part` on: the pairs of a batch stand in order of length, so that
        its parts are about equally much work. Subword dropout is drawn for the whole batch, so that it does not depend
        on the parts.
        """
        chosen, numbers = slice(part, None, parts), self.plan(epoch)[index].tolist()
        if part >= len(numbers):
            return []
        if self._subword_dropout is None:
            pairs = [self._store[number] for number in numbers[chosen]]
        else:
            rng = np.random.Generator(np.random.Philox(key=[self._seed, epoch], counter=[0, 0, 0, index + 1]))
            sides = zip(*(self._store[number] for number in numbers), strict=True)
            src, tgt = (dropout(ids, rng) for dropout, ids in zip(self._subword_dropout, sides, strict=True))
            pairs = list(zip(src, tgt, strict=True))[chosen]
        rows = training_rows((src.tolist(), tgt.tolist()) for src, tgt in pairs)
        if not self._both_directions:
            return rows
        turned = ((number + epoch) % 2 for number in numbers[chosen])
        return [turned_round(row) if turn else row for row, turn in zip(rows, turned, strict=True)]
