"""A batch of token sequences; which batches an update trains on, and which parts of them a process computes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from ..model.masks import pad
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
    """

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    num_tokens: int
    pad_id: int = 0

    @classmethod
    def of(cls, rows: Sequence[Row], *, device: torch.device | None = None, pad_id: int = 0) -> "Batch":
        """A batch of these rows; to a GPU it is on its way when this returns."""
        sources = [src for src, _ in rows]
        tensors = [pad(ids, pad_id) for ids in (sources, [tgt[:-1] for _, tgt in rows], [tgt[1:] for _, tgt in rows])]
        pinned = device is not None and device.type == "cuda"
        if pinned:  # a copy from pinned memory does not make the host wait for what was queued before
            tensors = [tensor.pin_memory() for tensor in tensors]
        src, tgt_in, tgt_out = (tensor.to(device, non_blocking=pinned) for tensor in tensors)
        return cls(src, tgt_in, tgt_out, sum(len(tgt) - 1 for _, tgt in rows), pad_id)

    def __len__(self) -> int:
        return len(self.tgt_out)

    @property
    def positions(self) -> int:
        """Of both sides, padding included: what it takes of memory goes by them."""
        return self.src.numel() + self.tgt_out.numel()

    def rows(self, chosen: slice) -> "Batch":
        """Some of its pairs."""
        src, tgt_in, tgt_out = (tensor[chosen] for tensor in (self.src, self.tgt_in, self.tgt_out))
        return Batch(src, tgt_in, tgt_out, int((tgt_out != self.pad_id).sum()), self.pad_id)


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
