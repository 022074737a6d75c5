"""Keeping Python from looking for garbage where there is none: among the objects that importing torch makes."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Around large imports: what they make stays, and searching it for garbage costs a seventh of their time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def leave_garbage() -> None:
    """Before the end: spares Python its last search of all objects, a quarter of the time of importing torch."""
    gc.freeze()
