"""Sequences of unequal lengths as one tensor, and who may attend to whom in it.

Either they are filled up with padding, and stand in rows; or they are packed, one after the other, in one row. A mask
is boolean, True = may attend, and broadcasts against scores of shape (B, H, T, S); or it is `Within` packed sequences.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

PAD_ID = 0
"""The id that fills rows up, which is no token: nobody attends to it, and it is never predicted."""


def pad(rows: Sequence[Sequence[int]], width: int | None = None) -> Tensor:
    """Rows of token ids as one tensor (B, width), filled up with padding; by default as wide as the longest."""
    width = max(map(len, rows)) if width is None else width
    if width == 0:
        return torch.empty((len(rows), 0), dtype=torch.long)
    ids = array("q")  # some ten times as fast as a tensor of lists of lists
    for row in rows:
        ids.extend(row)
        ids.extend([PAD_ID] * (width - len(row)))
    return torch.frombuffer(ids, dtype=torch.long).view(len(rows), width)


class Packed(NamedTuple):
    """Where sequences stand that are packed into one row of N positions, each of which belongs to one of them."""

    starts: Tensor
    """(R + 1,) where each begins, and where the last one ends."""
    positions: Tensor
    """(1, N) where in its sequence each token stands: 0, 1, ..; 0 in sequences that only fill the row up."""
    longest: int
    """Length of the longest sequence, often rounded up."""


Packing = tuple[Packed, Packed]
"""How the sources of a batch are packed, and how its targets are."""


class Within(NamedTuple):
    """The mask of packed sequences: sequence r of the queries sees sequence r of the keys, and nothing else."""

    queries: Packed
    keys: Packed
    causal: bool = False
    """Whether a query sees no later position than its own."""

    def dense(self) -> Tensor:
        """The same as a boolean mask, (T, S) for T queries and S keys in all."""
        queries, keys = (
            torch.searchsorted(side.starts, torch.arange(side.positions.size(1), device=side.starts.device), right=True)
            for side in (self.queries, self.keys)
        )
        mask = queries[:, None] == keys[None, :]
        return mask & (self.keys.positions <= self.queries.positions.T) if self.causal else mask


Mask = Tensor | Within


def padding_mask(ids: Tensor) -> Tensor:
    """Lets every query see every key that is not padding: token ids of the key side (B, S) to (B, 1, 1, S)."""
    return (ids != PAD_ID)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Lets position i see positions 0..i: (T, T), True on and below the diagonal.

    The lower triangle of the paper's section 3.2.3, and of [Yang 2024a], decoder block.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def additive_mask(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The same mask as [Yang 2024a] and [Yang 2024b] write it, to be added to the scores: 0 where attending is allowed,
    -inf where not."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, float("-inf"))
