"""Rows of ids as one integer array. Apart from `batching`, so that a translator need not load what reads corpora."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .tokenizer import EOS_ID, PAD_ID

Array = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int32]


def pad_sources(sources: Sequence[Ids | list[int]]) -> Array:
    """Source ids with eos appended, as one (B, S) array, filled up with pad."""
    padded = np.full((len(sources), max(map(len, sources)) + 1), PAD_ID, dtype=np.int64)
    for cells, row in zip(padded, sources, strict=True):
        cells[: len(row)], cells[len(row)] = row, EOS_ID
    return padded
