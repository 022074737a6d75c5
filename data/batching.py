"""Which pairs are trained on together, and as which padded integer arrays.

Batch order is a function of (seed, epoch) alone: there is no iterator state to save, and a resumed run sees exactly the
batches that an uninterrupted one would have seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .store import Ids, TokenStore
from .tokenizer import BOS_ID, EOS_ID, PAD_ID

Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """One padded batch; B sentences, S longest source, T longest target, both counting their special piece.

    Attributes:
        src: (B, S) source ids, ending in eos.
        tgt_in: (B, T) what the decoder reads: bos, then the target.
        tgt_out: (B, T) what it must predict: the target, then eos.
        num_tokens: Target positions that are not padding, eos included.
    """

    src: Array
    tgt_in: Array
    tgt_out: Array
    num_tokens: int


def make_batch(pairs: Sequence[tuple[Ids | list[int], Ids | list[int]]]) -> Batch:
    """Pads pairs of ids to arrays."""
    sources, targets = zip(*pairs, strict=True)
    tgt_in = pad_rows([[BOS_ID, *t] for t in targets])
    tgt_out = pad_rows([[*t, EOS_ID] for t in targets])
    return Batch(pad_sources(sources), tgt_in, tgt_out, sum(len(t) + 1 for t in targets))


def pad_sources(sources: Sequence[Ids | list[int]]) -> Array:
    """Source ids with eos appended, as one (B, S) array."""
    return pad_rows([[*s, EOS_ID] for s in sources])


def pad_rows(rows: Sequence[Sequence[int]]) -> Array:
    """Rows of different lengths as one (B, longest) array, filled up with pad."""
    padded = np.full((len(rows), max(map(len, rows))), PAD_ID, dtype=np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


def plan_epoch(
    src_lengths: npt.NDArray[np.int32],
    tgt_lengths: npt.NDArray[np.int32],
    *,
    max_tokens: int,
    seed: int,
    epoch: int,
) -> list[Array]:
    """Divides one epoch into batches of similar lengths.

    Rows are shuffled, then sorted by target and source length, so that rows of equal lengths stay in random order; the
    sorted sequence is cut wherever one more row would exceed the budget, and the batches are shuffled.

    Args:
        src_lengths, tgt_lengths: Pieces of each row, shape (N,).
        max_tokens: Most positions, padding included, that a batch may have on either side.
        seed, epoch: All that the result depends on besides the lengths.

    Returns:
        Row numbers of each batch; every row is in exactly one.
    """
    rng = np.random.Generator(np.random.Philox(key=[seed, epoch]))
    shuffled = rng.permutation(len(src_lengths))
    order = shuffled[np.lexsort((src_lengths[shuffled], tgt_lengths[shuffled]))]
    batches = _cut(order, src_lengths, tgt_lengths, max_tokens)
    return [batches[i] for i in rng.permutation(len(batches))]


def _cut(
    order: npt.NDArray[np.int64],
    src_lengths: npt.NDArray[np.int32],
    tgt_lengths: npt.NDArray[np.int32],
    max_tokens: int,
) -> list[Array]:
    batches: list[Array] = []
    start = longest = 0
    # Each side carries one special piece: eos, or bos against eos.
    widths = (np.maximum(src_lengths[order], tgt_lengths[order]) + 1).tolist()
    for end, width in enumerate(widths):
        widened = max(longest, width)
        if end > start and widened * (end - start + 1) > max_tokens:
            batches.append(order[start:end])
            start, widened = end, width
        longest = widened
    if start < len(order):
        batches.append(order[start:])
    return batches


class BatchSource:
    """The endless sequence of training batches of a run.

    Args:
        store: The tokenised corpus.
        max_tokens: Budget of a batch, see `plan_epoch`.
        seed: Seed of the batch order.
    """

    def __init__(self, store: TokenStore, *, max_tokens: int, seed: int) -> None:
        self._store = store
        self._max_tokens = max_tokens
        self._seed = seed
        self._epoch, self._plan = -1, []

    def plan(self, epoch: int) -> list[Array]:
        """The row numbers of each batch of an epoch."""
        if epoch != self._epoch:
            lengths = self._store.src_lengths, self._store.tgt_lengths
            self._plan = plan_epoch(*lengths, max_tokens=self._max_tokens, seed=self._seed, epoch=epoch)
            self._epoch = epoch
        return self._plan

    def load(self, rows: Array) -> Batch:
        """Reads and pads the rows of one batch."""
        return make_batch([self._store[row] for row in rows.tolist()])
