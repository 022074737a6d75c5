"""What to do when memory is not enough: tell it from other failures, free what can be freed, work in halves.

Libraries say it in many ways, and few of them by a MemoryError. Nothing here imports torch, so that the command line
can ask about an import that failed.
"""

import errno
import gc
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORDS = (
    "out of memory",  # CUDA, MPS
    "can't allocate memory",  # torch on a CPU
    "cannot allocate memory",  # the system's own words, in messages of torch and of the loader
    "not enough memory",
    "bad_alloc",  # C++
    "failed to map segment",  # a library that cannot be loaded
    "unable to mmap",
    "could not create a primitive",  # oneDNN, which gives no reason; shapes are never new to it in our models
    "could not create a memory object",
    "can't start new thread",  # each needs room for its stack
)
_MUCH = 100_000_000
"""Bytes. Where this many cannot be had, there is not enough memory for anything of ours."""


def is_out_of_memory(error: BaseException | None) -> bool:
    """Whether an error, or what it was raised from, means that there was not enough memory."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if isinstance(error, RuntimeError | ImportError | OSError):
            said = str(error).lower()
            if any(words in said for words in _WORDS):
                return True
        if isinstance(error, SystemError) and not _is_memory_left():  # a library failed, and could not say how
            return True
        error = error.__cause__ or error.__context__
    return False


def _is_memory_left() -> bool:
    try:
        return bool(bytearray(_MUCH))
    except MemoryError:
        return False


def free_memory() -> None:
    """Gives back what nobody needs any more. Call it when the error has been left: it holds on to what it met."""
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def in_halves(work: Callable[[Sequence[Item]], Iterable[Result]], items: Sequence[Item]) -> list[Result]:
    """Does work on items, together if that fits into memory, else on one half after the other, and so on.

    Results must not depend on what else is worked on. Raises what `work` raises if it is about something else, or if a
    single item does not fit.
    """
    try:
        return list(work(items))
    except Exception as error:
        if len(items) == 1 or not is_out_of_memory(error):
            raise
    free_memory()
    half = len(items) // 2
    return in_halves(work, items[:half]) + in_halves(work, items[half:])
