"""Which batches an update trains on, and which parts of them this process computes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .progress import Progress


class BatchProvider(Protocol):
    """The batches of each epoch, in the order to train on them."""

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        ...

    def load_part(self, epoch: int, index: int, part: int, parts: int) -> Any | None:
        """One of so many equal parts of a batch, on the training device; None if the batch is too small for that."""
        ...


class Group(Protocol):
    """The processes that train one model together."""

    @property
    def rank(self) -> int:
        """Number of this process, from 0."""
        ...

    @property
    def count(self) -> int:
        """How many they are."""
        ...

    def share(self, micro_batches: range) -> range:
        """The micro-batches that are this process's."""
        ...

    def add_up(self, tensor: Any) -> None:
        """Replaces the tensor by its sum over all processes."""
        ...

    def hand_round(self, tensor: Any, ends: Sequence[int]) -> None:
        """Fills in the parts of a flat tensor that other processes have computed; that of each ends at its end."""
        ...


class Alone:
    """A group of one."""

    rank, count = 0, 1

    def share(self, micro_batches: range) -> range:
        """All of them."""
        return micro_batches

    def add_up(self, tensor: Any) -> None:
        """The tensor is the sum."""

    def hand_round(self, tensor: Any, ends: Sequence[int]) -> None:
        """Nothing is missing."""


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
    loaded: dict[int, Any | None] = field(default_factory=dict)


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

    def take(self, progress: Progress) -> Iterator[tuple[int, Any]]:
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
        """The next update, nothing of it loaded yet."""
        epoch, start = progress.epoch, progress.next_batch
        if start >= self._provider.num_batches(epoch):
            epoch, start = epoch + 1, 0
        stop = min(start + self._batches_per_update, self._provider.num_batches(epoch))
        return _Update(epoch, range(start, stop), range((stop - start) * self._parts))

    def _load(self, update: _Update, number: int) -> Any | None:
        """A micro-batch of an update, by its number."""
        batch, part = divmod(number, self._parts)
        return self._provider.load_part(update.epoch, update.batches[batch], part, self._parts)


class Divisible(Protocol):
    """What is asked of a batch that does not fit into memory."""

    def __len__(self) -> int: ...

    @property
    def positions(self) -> int:
        """What it takes of memory, padding included."""
        ...

    def rows(self, chosen: slice, pad_id: int) -> "Divisible":
        """Some of its sentences."""
        ...


def in_pieces(batch: Any, fitting: int, pad_id: int) -> list[Any]:
    """A batch in as few pieces as have so many positions, or one sentence; whole if `fitting` is 0.

    A piece is every so-many-th sentence: they stand in order of length, so that the pieces are about equally large.
    """
    count = min(-(-batch.positions // fitting), len(batch)) if fitting else 1
    return [batch.rows(slice(start, None, count), pad_id) for start in range(count)] if count > 1 else [batch]
