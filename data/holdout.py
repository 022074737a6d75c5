"""Holding out: a validation set split off a corpus, the same one at every start, and remembered."""

import json
import math
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..system.errors import DataError
from ..system.files import replace_file, sha256_bytes
from .cleaning import clean
from .corpus import Corpus, Pair, dev_flags

if TYPE_CHECKING:
    from .vocabulary_training import VocabularySample

HOLD_OUT_SHARE, HOLD_OUT_PAIRS = 0.05, 1_000
FEW = 20
"""The scores of fewer different sentences say little about other sentences."""


def hold_out(
    corpus: Corpus, *, seed: int, memo: Path | None = None, sample: "VocabularySample | None" = None
) -> tuple[Corpus, Corpus]:
    """Splits a validation set off a corpus: 5 % of it, at most 1,000 pairs, and no source sentence on both sides.

    A corpus of texts alone is split by its texts. The same seed always holds out the same pairs of a corpus. If a few
    sentences are a large part of the corpus, only sentences that are rare enough are held out.

    Args:
        memo: A directory where the split is kept, so that the corpus need not be read for it again.
        sample: Receives the pairs that are left for training. For that the corpus is read, even if the split is kept.

    Returns:
        The corpus that is left for training, and the one held out.

    Raises:
        DataError: Each sentence is in it so often that none can be held out.
    """
    split = _remembered_split(corpus, seed, memo, sample) if memo else _split(corpus, seed, sample)

    def identity(name: str) -> str:
        return sha256_bytes(f"{corpus.identity} {seed} {split.threshold} {name}".encode())

    rest = replace(
        corpus,
        name=f"{corpus.name} (rest)",
        identity=identity("rest"),
        pairs=lambda: _without(corpus.pairs(), split.rows),
        quick_count=None,
    )
    held_out = replace(
        corpus,
        name=f"{corpus.name} (held out)",
        identity=identity("held out"),
        pairs=lambda: iter(split.pairs),
        quick_count=None,
        remarks=_few(corpus, split),
    )
    return rest, held_out


def _few(corpus: Corpus, split: "_Split") -> tuple[str, ...]:
    """What there is to say of a validation set of few sentences."""
    different = len({clean(pair[_side(corpus)]) for pair in split.pairs})
    if different >= min(FEW, len(split.pairs)):
        return ()
    return (
        f"{corpus.name} repeats its sentences so often that its {len(split.pairs):,} held-out {corpus.unit}s have only"
        f" {different:,} different ones: their scores say little; a validation set of your own says more",
    )


_LAST = 2**32 - 1
"""The rank of a blank row, which is never held out."""
_CHOSEN = 2**32
"""Takes the place of a threshold, and is higher than any, where the groups are chosen by their size."""


@dataclass(frozen=True)
class _Split:
    """The rows of a corpus, and the pairs in them, that are held out: those whose rank is below a threshold."""

    threshold: int
    rows: list[int]
    pairs: list[Pair]


def _side(corpus: Corpus) -> int:
    """The side by which rows are told apart: the sources; of texts alone, which have none, the texts."""
    return 1 if corpus.text_only else 0


def _split(corpus: Corpus, seed: int, sample: "VocabularySample | None") -> _Split:
    """Ranks the rows by a hash of their sources. One reading: the pairs of the lowest ranks so far are kept aside."""
    salt, side = zlib.crc32(f"{seed}\t".encode()), _side(corpus)
    row_ranks, near, bound = array("I"), dict[int, Pair](), _LAST
    for row, pair in enumerate(corpus.pairs()):
        text = clean(pair[side])
        if sample is not None:
            other = clean(pair[1 - side])
            sample.add((other, text) if side else (text, other))
        rank = zlib.crc32(text.encode(), salt) if text else _LAST  # blank lines stay where they are
        row_ranks.append(rank)
        if rank < bound:
            near[row] = pair
            if len(near) > 10 * HOLD_OUT_PAIRS:  # most of them are too high: as many as are held out are lower
                bound = sorted(row_ranks[row] for row in near)[HOLD_OUT_PAIRS]
                near = {row: pair for row, pair in near.items() if row_ranks[row] < bound}
    ranks = np.array(row_ranks, dtype=np.uint32)
    usable = int((ranks < _LAST).sum()) if corpus.incomplete else len(ranks)
    size = min(math.ceil(HOLD_OUT_SHARE * usable), HOLD_OUT_PAIRS)
    threshold = int(np.partition(ranks, size)[size]) if len(ranks) > 1 else 0
    held = ranks < threshold
    if held.sum() < size / 2 and len(ranks) > 1:
        threshold, held = _CHOSEN, _held_by_size(ranks, size)
        if not held.any() and usable > 1 and (ranks < _LAST).any():  # of blank lines others tell
            raise DataError(
                f"{corpus.name} has {usable:,} {corpus.unit}s, but only {len(np.unique(ranks)):,} different"
                f" {('sources', 'texts')[side]}, each of them too often to hold out 5 % of the"
                f" {corpus.unit}s for validation; name a validation set with {dev_flags(corpus)}"
            )
    rows = np.flatnonzero(held).tolist()
    chosen_by_size = threshold == _CHOSEN  # then the corpus, which repeats itself, is read once more
    pairs = list(compress(corpus.pairs(), held)) if chosen_by_size else [near[row] for row in rows]
    if sample is not None:
        sample.leave_out([(clean(src), clean(tgt)) for src, tgt in pairs])
    return _Split(threshold, rows, list(dict.fromkeys(pairs)) if corpus.repeats else pairs)


def _held_by_size(ranks: npt.NDArray[np.uint32], size: int) -> npt.NDArray[np.bool_]:
    """Which rows are held out: sentences in the order of their ranks, but for those too frequent for what is left."""
    different, counts = np.unique(ranks, return_counts=True)
    chosen: list[int] = []
    for rank, count in zip(different.tolist(), counts.tolist(), strict=True):
        if count <= size and rank < _LAST:
            chosen.append(rank)
            size -= count
    return np.isin(ranks, np.array(chosen, dtype=np.uint32))


def _without(pairs: Iterator[Pair], rows: list[int]) -> Iterator[Pair]:
    """All pairs but those in these rows, which are in order."""
    next_row = 0
    for row in rows:
        yield from islice(pairs, row - next_row)
        next(pairs, None)
        next_row = row + 1
    yield from pairs


def _remembered_split(corpus: Corpus, seed: int, memo: Path, sample: "VocabularySample | None") -> _Split:
    path = memo / f"held-out-{sha256_bytes(f'{corpus.identity} {seed}'.encode())[:16]}.json"
    if sample is None and (kept := _kept_split(path)) is not None:
        return kept
    split = _split(corpus, seed, sample)
    record = _ascii_json(asdict(split))
    replace_file(path, b'{"sha256": "%s",\n"split": %s}\n' % (sha256_bytes(record).encode(), record))
    return split


def _kept_split(path: Path) -> _Split | None:
    """The split in a file; None if it is absent or damaged."""
    try:
        recorded = json.loads(path.read_bytes())
        if sha256_bytes(_ascii_json(recorded["split"])) == recorded["sha256"]:
            split = recorded["split"]
            return _Split(split["threshold"], split["rows"], [(src, tgt) for src, tgt in split["pairs"]])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def _ascii_json(value: Any) -> bytes:
    return json.dumps(value).encode("ascii")  # half characters, which JSON Lines can bring, survive as \\u escapes
