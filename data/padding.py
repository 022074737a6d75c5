"""Rows of ids as one integer array. Apart from `batching`, so that a translator need not load what reads corpora."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .tokenizer import EOS_ID, PAD_ID

Array = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]


def pad_sources(sources: Sequence[Ids | list[int]]) -> Array:
    """Source ids with eos appended, as one (B, S) array."""
    return pad(sources, after=[EOS_ID])


def pad(rows: Sequence[Ids | list[int]], *, before: Sequence[int] = (), after: Sequence[int] = ()) -> Array:
    """Rows of different lengths, each between special pieces, as one (B, longest) array, filled up with pad."""
    width = max(map(len, rows)) + len(before) + len(after)
    padded = np.full((len(rows), width), PAD_ID, dtype=np.int64)
    padded[:, : len(before)] = before
    for cells, row in zip(padded, rows, strict=True):
        end = len(before) + len(row)
        cells[len(before) : end] = row
        cells[end : end + len(after)] = after
    return padded
