"""What decoding step by step keeps. Its centre is one tensor, the keys and values of all layers and past positions.

A plane is the keys of one layer at one position for all rows and heads, (R, H, d), or the values. The tensor is a row
of planes, position after position. Here is one position of a decoder of 3 layers:

    plane      0       1       2       3       4       5       6
           +-------+-------+-------+-------+-------+-------+-------
    kept   |  k1   |  v1   |  k2   |  v2   |  k3   |  v3   |  k1 of the next position ..
           +-------+-------+-------+-------+-------+-------+-------

    written by
    layer 1|  k1      v1      q1   |
    layer 2                |  k2      v2      q2   |
    layer 3                                |  k3      v3      q3   |

A layer computes its keys, values and queries as one product, so they must be neighbours. The queries are needed only
until the layer has attended, so they lie where the next layer, which runs later, will write its keys. (The queries of
the last layer lie where the next position begins. That is why the tensor ends in one plane more than it keeps.)

In torch's words, what the layers write is a view of shape (L, 3, ..) over 2 L + 1 planes: it is a stride of 2 planes
from layer to layer, and of 1 plane from keys to values to queries. Its parts overlap, and only `as_strided` makes such
a view. What a layer reads of all positions is a usual view, (T, 2 L, R, H, d): of it layer i, counted from 0, takes
the planes 2 i and 2 i + 1.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

_FIRST_CAPACITY = 32
"""Target positions to make room for at first; doubled when they are full."""


class Position(NamedTuple):
    """Where a step writes and reads; an element for each layer."""

    newest: Sequence[Tensor]
    """Where its keys, values and queries are to be written, (3, R, H * d)."""
    queries: Sequence[Tensor]
    """Where these queries are to be read, (R, H, d)."""
    keys: Sequence[Tensor]
    values: Sequence[Tensor]
    """Both of all positions, the newest included, (T, R, H, d)."""


class Past:
    """Keys and values of the positions so far, see the picture above; R is at first one for each sentence."""

    def __init__(self, rows: int, layers: int, heads: int, width: int, like: Tensor) -> None:
        self._planes_per_position = 2 * layers
        self._planes = like.new_empty(self._planes_per_position * _FIRST_CAPACITY + 1, rows, heads, width)
        self._length = 0
        # Large tensors that come and go cost as much time as what is written to them.
        self._former_planes = like.new_empty(0)

    def next_position(self) -> Position:
        """Makes room for one more position."""
        start = self._length * self._planes_per_position
        end = start + self._planes_per_position
        if start + 1 == self._planes.size(0):
            self._planes = torch.cat([self._planes, torch.empty_like(self._planes[1:])])
        self._length += 1
        newest = self._planes[start : end + 1]
        kept = self._planes[:end].view(self._length, self._planes_per_position, *self._planes.shape[1:]).unbind(1)
        _, rows, heads, width = newest.shape
        plane = rows * heads * width
        overlapping = ((self._planes_per_position // 2, 3, rows, heads * width), (2 * plane, plane, heads * width, 1))
        return Position(newest.as_strided(*overlapping).unbind(), newest[2::2].unbind(), kept[0::2], kept[1::2])

    def reorder(self, rows: Tensor) -> None:
        """Row i continues what row `rows[i]` has generated."""
        shape = (self._planes.size(0), rows.size(0), *self._planes.shape[2:])
        size, written = math.prod(shape), self._length * self._planes_per_position
        if self._former_planes.numel() < size:
            self._former_planes = self._planes.new_empty(size)
        moved = self._former_planes[:size].view(shape)
        torch.index_select(self._planes[:written], 1, rows, out=moved[:written])
        self._planes, self._former_planes = moved, self._planes.view(-1)


class FastState:
    """All that is kept of one batch: the memory of its sources, the past of its outputs. A `SearchState`.

    The memory is a `memory.Memory`, or a `decoder_only.Prompt`; None for texts that begin with nothing.
    """

    def __init__(self, memory: Any, past: Past) -> None:
        self.memory, self.past = memory, past

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Row i continues what row `rows[i]` has generated, sentence j what sentence `sentences[j]` was."""
        if sentences is not None and self.memory is not None:
            self.memory.select(sentences)
        self.past.reorder(rows)
