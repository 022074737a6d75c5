"""Memory that ranks share: here the ranks are threads, each with a map of its own of one file."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from helpers.marks import needs_memfd
from torch import Tensor

from tfm.engine.workers.ranks import SharedMemory, Wait

SIZE = 4096


def together(count: int, what: Callable[[int, SharedMemory, Wait], Tensor], size: int = SIZE) -> list[Tensor]:
    """What each of so many ranks finds when all do the same at once, in memory that the first of them has made."""
    leader = SharedMemory()
    leader.open()
    file = leader.file
    assert file is not None
    assert leader.reserve(count, size)
    memories = [leader, *(SharedMemory(os.dup(file)) for _ in range(count - 1))]
    barrier = threading.Barrier(count, timeout=60)

    def one(rank: int) -> Tensor:
        memories[rank].attach(count, size)
        return what(rank, memories[rank], barrier.wait)

    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(one, range(count)))
    for memory in memories:
        memory.close()
    return found


def random_tensor(seed: int, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@needs_memfd
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_sums_are_those_of_all_ranks_and_the_same_in_each(count: int) -> None:
    """Again and again, so that a rank that wrote too early would be noticed."""
    rounds = 50

    def sums(rank: int, memory: SharedMemory, wait: Wait) -> Tensor:
        found: list[Tensor] = []
        for turn in range(rounds):
            tensor = random_tensor(100 * rank + turn, 7, 11 + turn % 3)
            memory.all_reduce(tensor, rank, wait)
            found.append(tensor.flatten())
        return torch.cat(found)

    found = together(count, sums)
    expected: list[Tensor] = []
    for turn in range(rounds):
        total = random_tensor(turn, 7, 11 + turn % 3)
        for rank in range(1, count):
            total = total + random_tensor(100 * rank + turn, 7, 11 + turn % 3)
        expected.append(total.flatten())
    for one in found:
        assert one.equal(torch.cat(expected))


@needs_memfd
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_parts_are_handed_round(dtype: torch.dtype) -> None:
    """Parts of different sizes, one of them empty; and a sum between two rounds."""
    ends = [5, 5, 40]

    def round_(rank: int, memory: SharedMemory, wait: Wait) -> Tensor:
        found: list[Tensor] = []
        for turn in range(50):
            whole = random_tensor(turn, 40, dtype=dtype)
            tensor = torch.full((40,), torch.nan, dtype=dtype)
            part = slice([0, *ends][rank], ends[rank])
            tensor[part] = whole[part]
            memory.all_gather(tensor, ends, rank, wait)
            found.append(tensor)
            memory.all_reduce(torch.ones(100), rank, wait)
        return torch.stack(found)

    expected = torch.stack([random_tensor(turn, 40, dtype=dtype) for turn in range(50)])
    for found in together(3, round_):
        assert found.equal(expected)


@needs_memfd
def test_what_does_not_fit_is_for_sockets() -> None:
    def fitting(rank: int, memory: SharedMemory, wait: Wait) -> Tensor:
        assert memory.fits(torch.zeros(SIZE // 4))
        assert not memory.fits(torch.zeros(SIZE // 4 + 17))  # rows are padded to 64 bytes
        assert not memory.fits(torch.zeros(10, 10).T[:5])
        assert not memory.fits(torch.zeros(4, device="meta"))
        return torch.zeros(0)

    together(2, fitting)


def test_where_there_is_no_such_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise OSError(28, "No space left on device")

    memory = SharedMemory()
    assert not memory.reserve(2, SIZE)
    assert not memory.fits(torch.zeros(1))
    monkeypatch.setattr(os, "memfd_create", refused, raising=False)
    memory.open()
    assert memory.file is None
    monkeypatch.undo()
    memory.open()
    if memory.file is not None:
        monkeypatch.setattr(os, "posix_fallocate", refused)
        assert not memory.reserve(2, SIZE)
        assert not memory.fits(torch.zeros(1))
    memory.close()
    memory.close()  # twice does no harm
