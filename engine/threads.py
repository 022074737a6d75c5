"""Computing in batches, which share the cores of a CPU and are halved where memory is not enough."""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from ..seq2seq.out_of_memory import in_halves

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_THREADS = 8
"""Python itself runs on one thread at a time; more threads than these would mostly wait for it."""


class Stopped(Exception):
    """Another thread has failed, or the user has interrupted: the result is not needed any more."""


def by_length(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Batches of items of similar length, as their positions.

    The longest come first, so that the largest batch meets the memory limit at once.

    Args:
        lengths: Of each item, without eos.
        max_tokens: Most positions of a batch, eos and padding included; one item may have more.
    """
    batches: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if batches and (len(batches[-1]) + 1) * (lengths[batches[-1][0]] + 1) <= max_tokens:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def in_batches(
    device: torch.device,
    function: Callable[[Sequence[Item], Callable[[], None]], Iterable[Result]],
    items: Sequence[Item],
    batches: Sequence[Sequence[int]],
) -> list[Result]:
    """Applies a function to items, batch by batch, see `on_device`; a batch that memory is too small for, in halves.

    Args:
        function: Takes items and a check, see `on_all_cores`; gives a result for each item.
        batches: Positions of the items; each is in one batch.

    Returns:
        The results, in the order of the items.
    """

    def work(batch: Sequence[int], check: Callable[[], None]) -> list[Result]:
        return in_halves(lambda rows: function([items[row] for row in rows], check), batch)

    found: dict[int, Result] = {}
    for batch, results in zip(batches, on_device(device, work, batches), strict=True):
        found.update(zip(batch, results, strict=True))
    return [found[row] for row in range(len(items))]


def on_device(
    device: torch.device, function: Callable[[Item, Callable[[], None]], Result], items: Sequence[Item]
) -> list[Result]:
    """Applies a function to each item: on a CPU on all cores, see `on_all_cores`, elsewhere one after the other.

    A GPU computes one batch after the other; several threads would only get in each other's way, on MPS fatally.
    """
    if device.type == "cpu":
        return on_all_cores(function, items)
    return [function(item, lambda: None) for item in items]


def on_all_cores(function: Callable[[Item, Callable[[], None]], Result], items: Sequence[Item]) -> list[Result]:
    """Applies a function to each item, on as many threads as torch is allowed, each of which computes on one core.

    Small tensors gain little from being cut up among cores that then wait for each other; whole batches gain all. While
    torch computes it lets other threads run Python.

    Args:
        function: Takes an item and a check, which is to be called now and then and raises `Stopped` when the result is
            not needed any more.
        items: In the order in which to begin with them.

    Returns:
        The results, in the order of the items.

    Raises:
        BaseException: What a call has raised (of several, the first item's), or an interrupt; the other calls end at
            their next check.
    """
    allowed = torch.get_num_threads()
    count = min(allowed, len(items), MAX_THREADS)
    if count < 2:
        return [function(item, lambda: None) for item in items]
    stopping = threading.Event()

    def check() -> None:
        if stopping.is_set():
            raise Stopped

    # The number of threads is a setting of each thread of its own, and the default of those to come.
    pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))
    try:
        return list(pool.map(lambda item: function(item, check), items))
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(allowed)
