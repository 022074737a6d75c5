"""Sharing independent computations among the cores of a CPU."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_THREADS = 8
"""Python itself runs on one thread at a time; more threads than these would mostly wait for it."""


class Stopped(Exception):
    """Another thread has failed, or the user has interrupted: the result is not needed any more."""


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
