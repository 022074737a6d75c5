"""Memory that the ranks of one machine share, to add tensors up and to gather their parts.

Through the loopback interface every byte is copied several times: for the gradient of a model of 4.6 million
parameters two processes need 24 ms, in shared memory 6 ms (benchmarks/README.md).
"""

import mmap
import os
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Wait = Callable[[], object]
"""Returns when all ranks have called it."""


class SharedMemory:
    """Room for one tensor of each rank, and for their sum.

    The memory belongs to a file without a name, which only Linux has (memfd). The leader makes it and its children
    inherit it, so that nothing is left behind when a process is killed. Elsewhere, and where memory is short, there is
    no room, and ranks use sockets.

    Args:
        file: Number of the open file, for a child; the leader opens one.
    """

    def __init__(self, file: int | None = None) -> None:
        self.file = file
        self._rows: Tensor | None = None  # (ranks + 1, bytes): one row for each rank, the last one for the sum

    def open(self) -> int | None:
        """Makes the file, without room, if this system has such files; returns its number."""
        try:
            self.file = os.memfd_create("tfm-ranks")
        except (AttributeError, OSError):
            self.file = None
        return self.file

    def close(self) -> None:
        """Gives the file back; its memory goes when the last process has ended or closed it."""
        if self.file is not None:
            os.close(self.file)
        self.file = self._rows = None

    def reserve(self, ranks: int, size: int) -> bool:
        """Makes room for tensors of so many bytes, for all ranks at once; one of them does that.

        Returns:
            Whether there is room.
        """
        if self.file is None:
            return False
        try:
            os.posix_fallocate(self.file, 0, (ranks + 1) * _padded(size))
        except OSError:  # memory is short
            return False
        return True

    def attach(self, ranks: int, size: int) -> None:
        """Maps the room that one of the ranks has reserved."""
        assert self.file is not None
        room = mmap.mmap(self.file, (ranks + 1) * _padded(size))
        self._rows = torch.frombuffer(room, dtype=torch.uint8).view(ranks + 1, _padded(size))

    def fits(self, tensor: Tensor) -> bool:
        """Whether there is room for a tensor."""
        on_host = tensor.device.type == "cpu" and tensor.is_contiguous()
        return self._rows is not None and on_host and tensor.nbytes <= self._rows.size(1)

    def all_reduce(self, tensor: Tensor, rank: int, wait: Wait) -> None:
        """Replaces a tensor by its sum over all ranks, the same to the last bit in each.

        Each rank lays its tensor down, adds one part up over all ranks, in their order, and picks up the whole sum.
        Nobody writes what another may still read: rows are read between the two waits only, and the next sum is
        written after the next wait.

        Args:
            tensor: One that `fits`, of the same shape and type in each rank.
        """
        flat = tensor.view(-1)
        *rows, total = (row[: tensor.nbytes].view(tensor.dtype) for row in self._all_rows())
        rows[rank].copy_(flat)
        wait()
        part = slice(len(flat) * rank // len(rows), len(flat) * (rank + 1) // len(rows))
        total[part] = rows[0][part]
        for row in rows[1:]:
            total[part] += row[part]
        wait()
        flat.copy_(total)

    def all_gather(self, tensor: Tensor, ends: Sequence[int], rank: int, wait: Wait) -> None:
        """Fills in the parts of a tensor that other ranks have computed.

        Args:
            tensor: A flat one that `fits`.
            ends: Where the part of each rank ends; it begins where that of the rank before ends.
        """
        parts = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        rows = [row[: tensor.nbytes].view(tensor.dtype) for row in self._all_rows()]
        rows[rank][parts[rank]] = tensor[parts[rank]]
        wait()
        for other, part in enumerate(parts):
            if other != rank:
                tensor[part] = rows[other][part]
        wait()

    def _all_rows(self) -> Tensor:
        assert self._rows is not None
        return self._rows


def _padded(size: int) -> int:
    """Rows begin at multiples of what a cache line holds."""
    return -(-size // 64) * 64
