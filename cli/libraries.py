"""How the libraries that tfm stands on are loaded and left: their settings, and Python's searches for garbage."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from ..system.cores import allowed_cores, available_cores
from ..system.interrupts import ending_at_once


def set_up_libraries() -> None:
    """Settings that torch's libraries read from the environment when they are loaded; the user's own stand."""
    # Threads wait for each other by spinning. With every core busy elsewhere that wait lasts until the other program
    # has had its turn, and a step takes 30 times as long; to sleep after a while costs nothing otherwise.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # oneDNN keeps the code that it made for the last 1,024 shapes of matrix products, half a gigabyte in each process
    # that trains. Batches of sentences have so many shapes that it is used again only from layer to layer.
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
    # They count the cores that a process may run on. A container that is given the time of fewer stops all threads
    # together each time it has been used up.
    if (cores := available_cores()) < allowed_cores():
        os.environ.setdefault("OMP_NUM_THREADS", str(cores))


@contextmanager
def importing() -> Iterator[None]:
    """Around large imports: what they make stays, and searching it for garbage costs a seventh of their time.

    A signal ends the process there and then, so it is for a time when nothing is at stake.
    """
    gc.disable()
    try:
        with ending_at_once():
            yield
    finally:
        gc.freeze()
        gc.enable()


def leave_garbage() -> None:
    """Before the end: spares Python its last search of all objects, a quarter of the time of importing torch."""
    gc.freeze()


def leave_at_once(code: int) -> NoReturn:
    """Ends the process where it stands: what libraries do at the end takes memory, and they complain of its lack."""
    sys.stderr.flush()
    os._exit(code)
