"""A batch of token sequences; which batches an update trains on, and which parts of them a process computes."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..model.masks import PAD_ID, Packed, Packing, pad
from .progress import Progress

Row = tuple[Sequence[int], Sequence[int]]
"""A pair as ids: the source, ending in eos, or in bos if it was turned round; the target from bos to eos. A text alone
has an empty source."""


@dataclass(frozen=True)
class Batch:
    """Pairs of token sequences on their device: B pairs, S longest source, T longest target, filled up with padding.

    Or packed: all sources in one row, all targets in another; see `Packer`.

    Attributes:
        src: (B, S) source ids with their end; S is 0 where there are texts alone.
        tgt_in: (B, T) what the decoder reads: bos, then the target.
        tgt_out: (B, T) what it must predict: the target, then eos.
        num_tokens: Target positions that are to be predicted, eos included.
        packing: How sources and targets are packed; None if they are not.
    """

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    num_tokens: int
    packing: Packing | None = None

    @classmethod
    def of(cls, rows: Sequence[Row], *, device: torch.device | None = None) -> "Batch":
        """A batch of these rows, filled up with padding; to a GPU it is on its way when this returns."""
        src, tgt_in, tgt_out = _moved(map(pad, _sides(rows)), device)
        return cls(src, tgt_in, tgt_out, sum(len(tgt) - 1 for _, tgt in rows))

    def __len__(self) -> int:
        """Pairs; in a packed batch with those that fill it up."""
        return len(self.tgt_out) if self.packing is None else len(self.packing[1].starts) - 1

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """`src`, `tgt_in`, `tgt_out`, and those of the packing."""
        packing = [tensor for side in self.packing or () for tensor in (side.starts, side.positions)]
        return self.src, self.tgt_in, self.tgt_out, *packing

    @property
    def shape(self) -> tuple[int, ...]:
        """What a graph of kernels depends on."""
        sizes = [size for tensor in self.tensors for size in tensor.shape]
        return *sizes, *(side.longest for side in self.packing or ())

    @property
    def positions(self) -> int:
        """The number of positions of both sides, padding included. The memory that a batch needs grows with it."""
        return self.src.numel() + self.tgt_out.numel()

    def clone(self) -> "Batch":
        """The same with tensors of its own."""
        src, tgt_in, tgt_out, *packing = (tensor.clone() for tensor in self.tensors)
        sides = [
            Packed(starts, positions, side.longest)
            for starts, positions, side in zip(packing[::2], packing[1::2], self.packing or (), strict=True)
        ]
        return Batch(src, tgt_in, tgt_out, self.num_tokens, (sides[0], sides[1]) if sides else None)

    def rows(self, chosen: slice) -> "Batch":
        """Some of its pairs; ValueError for a packed batch, which has to be unpacked first."""
        if self.packing is not None:
            raise ValueError("a packed batch has one row; unpack it")
        src, tgt_in, tgt_out = (tensor[chosen] for tensor in (self.src, self.tgt_in, self.tgt_out))
        return Batch(src, tgt_in, tgt_out, int((tgt_out != PAD_ID).sum()))

    def unpacked(self) -> "Batch":
        """The same pairs, filled up with padding."""
        if self.packing is None:
            return self
        sides = [
            ids[0].split(side.starts.diff().tolist())
            for ids, side in zip((self.src, self.tgt_in, self.tgt_out), (*self.packing, self.packing[1]), strict=True)
        ]
        # The others fill up. They stand last: no label is theirs.
        last = int(self.tgt_out[0].nonzero()[-1])
        real = int((self.packing[1].starts <= last).sum())
        src, tgt_in, tgt_out = (
            pad_sequence(list(side[:real]), batch_first=True, padding_value=PAD_ID) for side in sides
        )
        return Batch(src, tgt_in, tgt_out, self.num_tokens)


_Sides = tuple[list[Sequence[int]], list[Sequence[int]], list[Sequence[int]]]
"""Three lists with an entry for each pair: the source, what the decoder reads, and what it must predict."""


def _sides(rows: Sequence[Row]) -> _Sides:
    return [src for src, _ in rows], [tgt[:-1] for _, tgt in rows], [tgt[1:] for _, tgt in rows]


def _joined(rows: Sequence[Row]) -> _Sides:
    """Source and target as one sequence, that of the target; nothing of the source is to be predicted."""
    targets: list[Sequence[int]] = [[*src, *tgt[:-1]] for src, tgt in rows]
    return [[] for _ in rows], targets, [[*[PAD_ID] * len(src), *tgt[1:]] for src, tgt in rows]


def _moved(tensors: Iterable[Tensor], device: torch.device | None) -> list[Tensor]:
    """To the device; a copy from pinned memory to a GPU does not make the host wait for what was queued before."""
    pinned = device is not None and device.type == "cuda"
    return [(tensor.pin_memory() if pinned else tensor).to(device, non_blocking=pinned) for tensor in tensors]


_SIZES, _LARGEST_STEP = 8, 1024
"""A side's size is a multiple of a step: of an eighth of a full side, or of 1,024 where that is less."""
_FILLING = 64
"""The longest sequence that fills a side up has about so many positions."""
_SHORTEST = 128
"""`longest` is at least this: attention is no faster below it."""


@dataclass(frozen=True)
class Packer:
    """Packs batches, for a GPU: there is no padding between sentences, and the sizes of batches are few.

    For each combination of sizes there is a graph of kernels, which takes 0.1 s to record. Pairs that have nothing to
    predict fill a batch up, and count for nothing. With the preset `multi30k` and batches of 4,096 tokens there are
    37 combinations, and 9 % of the positions fill up.

    Attributes:
        max_tokens: Most positions that a batch has on either side, as the epoch was planned, without what fills up.
        parts: Into which each batch is cut.
        joined: Whether a source and its target are read as one sequence.
    """

    max_tokens: int
    parts: int = 1
    joined: bool = False

    def pack(self, rows: Sequence[Row], device: torch.device | None = None) -> Batch:
        """A packed batch of these rows; to a GPU it is on its way when this returns."""
        sources, targets, wanted = _joined(rows) if self.joined else _sides(rows)
        two = self.joined and any(src for src, _ in rows)  # sequences of a pair in one
        step = min(-(-self.max_tokens * (1 + two) // (_SIZES * self.parts * _FILLING)) * _FILLING, _LARGEST_STEP)
        more = _rounded_up(len(rows) + step // _FILLING) - len(rows)
        lengths = [_filled_up([len(sequence) for sequence in side], step, more) for side in (sources, targets)]
        sizes = [sum(side) for side in lengths]
        ids = map(_row, (sources, targets, wanted), (*sizes, sizes[1]))
        starts = [torch.tensor([0, *side], dtype=torch.int32).cumsum(0, dtype=torch.int32) for side in lengths]
        real = [[range(length) for length in side[: len(rows)]] for side in lengths]
        positions = map(_row, real, sizes)
        src, tgt_in, tgt_out, *tensors = _moved([*ids, *starts, *positions], device)
        longest = [
            min(1 << (max(_SHORTEST, *side) - 1).bit_length(), size) for side, size in zip(lengths, sizes, strict=True)
        ]
        packed = Packed(tensors[0], tensors[2], longest[0]), Packed(tensors[1], tensors[3], longest[1])
        return Batch(src, tgt_in, tgt_out, sum(len(tgt) - 1 for _, tgt in rows), packed)


def _filled_up(lengths: list[int], step: int, more: int) -> list[int]:
    """The lengths of a side's sequences, and of some that fill it up to a multiple of `step`, none of them empty.

    Where one was empty, a gradient was seen to differ in its last bit from one time to the next. Sources of texts
    alone stay empty: nothing reads them.
    """
    real = sum(lengths)
    filling = -(-(real + more) // step) * step - real if real else 0
    return lengths + [(filling + number) // more for number in range(more)]


def _row(sequences: Sequence[Sequence[int]], size: int) -> Tensor:
    """Sequences one after the other, then zeros: (1, size). Zero is the id of padding, and any sequence's position."""
    numbers = array("q")
    for sequence in sequences:
        numbers.extend(sequence)
    numbers.extend([PAD_ID] * (size - len(numbers)))
    return torch.frombuffer(numbers, dtype=torch.long)[None] if numbers else torch.empty((1, 0), dtype=torch.long)


def _rounded_up(number: int) -> int:
    """To a multiple of a quarter of the power of two that is not smaller: few numbers, and at most a half more."""
    step = 1 << max((number - 1).bit_length() - 2, 0)
    return -(-number // step) * step


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
