"""Keeping Python from looking for garbage where there is none: among the objects that importing torch makes."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Around imports of much: their objects stay, and to look for dead ones takes a seventh of their time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def leave_garbage() -> None:
    """Before Python exits, when it would look through everything again: a quarter of the time of importing torch."""
    gc.freeze()
