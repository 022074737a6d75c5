"""A batch of token sequences; which batches an update trains on, and which parts of them a process computes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from ..model.masks import PAD_ID, pad
from .progress import Progress

Row = tuple[Sequence[int], Sequence[int]]
"""A pair as ids: the source, ending in eos; the target from bos to eos. A text alone has an empty source."""


@dataclass(frozen=True)
class Batch:
    """Pairs of token sequences, padded, on their device: B pairs, S longest source, T longest target.

    Attributes:
        src: (B, S) source ids, ending in eos; S is 0 where there are texts alone.
        tgt_in: (B, T) what the decoder reads: bos, then the target.
        tgt_out: (B, T) what it must predict: the target, then eos.
        num_tokens: Target positions that are not padding, eos included.
        recurs: Its shape is one of few; see `FewShapes`.
    """

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    num_tokens: int
    recurs: bool = False

    @classmethod
    def of(
        cls,
        rows: Sequence[Row],
        *,
        device: torch.device | None = None,
        shapes: "FewShapes | None" = None,
    ) -> "Batch":
        """A batch of these rows; to a GPU it is on its way when this returns.

        Args:
            shapes: Says how far it is filled up. A further row has a source and a target to read, so that attention
                has something to look at, and nothing to predict: it counts for nothing.
        """
        sides = [src for src, _ in rows], [tgt[:-1] for _, tgt in rows], [tgt[1:] for _, tgt in rows]
        widths = [max(map(len, side)) for side in sides]
        if shapes is not None:
            more, *widths = shapes.fill_up(len(rows), *widths)
            for side, filler in zip(sides, (sides[0][0], sides[1][0], []), strict=True):
                side += [filler] * more
        tensors = [pad(ids, width) for ids, width in zip(sides, widths, strict=True)]
        pinned = device is not None and device.type == "cuda"
        if pinned:  # a copy from pinned memory does not make the host wait for what was queued before
            tensors = [tensor.pin_memory() for tensor in tensors]
        src, tgt_in, tgt_out = (tensor.to(device, non_blocking=pinned) for tensor in tensors)
        return cls(src, tgt_in, tgt_out, sum(len(tgt) - 1 for _, tgt in rows), recurs=shapes is not None)

    def __len__(self) -> int:
        return len(self.tgt_out)

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """Of ids: `src`, `tgt_in`, `tgt_out`."""
        return self.src, self.tgt_in, self.tgt_out

    @property
    def shape(self) -> tuple[int, int, int]:
        """B, S and T."""
        return len(self.src), self.src.size(1), self.tgt_out.size(1)

    @property
    def positions(self) -> int:
        """Of both sides, padding included: what it takes of memory goes by them."""
        return self.src.numel() + self.tgt_out.numel()

    def rows(self, chosen: slice) -> "Batch":
        """Some of its pairs."""
        src, tgt_in, tgt_out = (tensor[chosen] for tensor in self.tensors)
        return Batch(src, tgt_in, tgt_out, int((tgt_out != PAD_ID).sum()))


_FINEST = 4
"""Widths of batches are multiples of it."""
_SHARE = 8
"""A wide batch grows by at most one part in this many."""


@dataclass(frozen=True)
class FewShapes:
    """Rounds the shapes of batches up to few: on a GPU each has a graph of kernels, which takes 0.1 s to record.

    Measured on an H100 with batches of 4,096 tokens: 30 shapes, and 23 % of the positions are padding.

    Attributes:
        max_tokens: Most positions that a batch has on either side, as the epoch was planned.
        parts: Into which each batch is cut.
    """

    max_tokens: int
    parts: int = 1

    def fill_up(self, rows: int, src: int, tgt_in: int, tgt_out: int) -> list[int]:
        """How many rows to add to those of a batch, and how wide each side becomes."""
        widths = [_round_up(width) for width in (src, tgt_in, tgt_out)]
        widest = max(widths)
        narrowest = next(width for width in range(widest, 0, -1) if width == 1 or _round_up(width - 1) < widest)
        most = -(-max(self.max_tokens // narrowest, 1) // self.parts)  # rows of a batch that has become so wide
        return [max(most, -(-rows // _SHARE) * _SHARE if rows > most else rows) - rows, *widths]


def _round_up(width: int) -> int:
    """To a multiple of 4, of 8 from 64 on, of 16 from 128 on, and so forth."""
    step = _FINEST
    while 2 * _SHARE * step <= width:
        step *= 2
    return -(-width // step) * step


class BatchProvider(Protocol):
    """The batches of each epoch, in the order to train on them."""

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        ...

    def load_part(self, epoch: int, index: int, part: int, parts: int) -> Batch | None:
        """Part number `part` of `parts` of a batch, on the training device; None if the batch is too small for that."""
        ...


class Group:
    """The processes that train one model together: one, unless a subclass has more."""

    rank: int = 0
    count: int = 1

    def share(self, micro_batches: range) -> range:
        """The micro-batches that are this process's."""
        return micro_batches[self.rank :: self.count]

    def all_reduce(self, tensor: Tensor) -> None:
        """Replaces the tensor by its sum over all processes."""

    def all_gather(self, tensor: Tensor, ends: Sequence[int]) -> None:
        """Fills in the parts of a flat tensor that other processes have computed: process i's ends at `ends[i]`."""


@dataclass
class _Update:
    """What an update trains on: some batches of an epoch, cut into micro-batches, which the processes share.

    Attributes:
        epoch: Of the batches.
        batches: Their indices.
        micro_batches: Their parts, numbered from 0: those of the first batch, then those of the second, and so on.
        loaded: Micro-batches that are loaded already, by their number.
    """

    epoch: int
    batches: range
    micro_batches: range
    loaded: dict[int, Batch | None] = field(default_factory=dict)


class MicroBatches:
    """Takes the batches of one update after the other, each cut into micro-batches.

    Args:
        provider: The training data.
        batches_per_update: Batches whose gradients are added; the last update of an epoch may have fewer.
        parts: Micro-batches into which each batch is cut.
        group: Who shares them.
    """

    def __init__(self, provider: BatchProvider, batches_per_update: int, parts: int, group: Group) -> None:
        self._provider, self._batches_per_update = provider, batches_per_update
        self._parts, self._group = parts, group
        self._ahead: _Update | None = None

    def take(self, progress: Progress) -> Iterator[tuple[int, Batch]]:
        """This process's micro-batches of the next update, each with its number; moves `progress` on to them."""
        update = self._ahead or self._after(progress)
        self._ahead = None
        progress.epoch, progress.next_batch = update.epoch, update.batches.stop
        for number in self._group.share(update.micro_batches):
            batch = update.loaded.pop(number) if number in update.loaded else self._load(update, number)
            if batch is not None:
                yield number, batch

    def load_ahead(self, progress: Progress) -> None:
        """Loads this process's first micro-batch of the update after this one, while the device computes."""
        self._ahead = self._after(progress)
        for number in self._group.share(self._ahead.micro_batches)[:1]:
            self._ahead.loaded[number] = self._load(self._ahead, number)

    def _after(self, progress: Progress) -> _Update:
        epoch, start = progress.epoch, progress.next_batch
        if start >= self._provider.num_batches(epoch):
            epoch, start = epoch + 1, 0
        stop = min(start + self._batches_per_update, self._provider.num_batches(epoch))
        return _Update(epoch, range(start, stop), range((stop - start) * self._parts))

    def _load(self, update: _Update, number: int) -> Batch | None:
        batch, part = divmod(number, self._parts)
        return self._provider.load_part(update.epoch, update.batches[batch], part, self._parts)
