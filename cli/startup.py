"""How the process of a command begins and ends: its standard streams, and the libraries that it loads.

The streams are open, in UTF-8, and each has its own answer to what cannot be written.
"""

import contextlib
import errno
import gc
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn, TextIO

from ..system.cores import allowed_cores, available_cores
from ..system.errors import ClosedPipe, EnvironmentFault
from ..system.interrupts import ending_at_once


class _Stream(io.RawIOBase):
    """A standard stream, written through what Python opened for it.

    On Windows that is what shows every letter in a console; bytes written past it come out in another encoding.
    """

    def __init__(self, opened: TextIO | None, number: int) -> None:
        buffer: Any = getattr(opened, "buffer", None)  # with `python -u`, it is the raw stream itself
        self._raw: io.RawIOBase = getattr(buffer, "raw", buffer) or io.FileIO(number, "w", closefd=False)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def isatty(self) -> bool:
        return self._raw.isatty()

    def write(self, content: Any) -> int | None:
        return self._raw.write(content)


class _Results(_Stream):
    """Standard output. What cannot be written there is an error, which names it."""

    def write(self, content: Any) -> int | None:
        try:
            return super().write(content)
        except BrokenPipeError as error:
            raise ClosedPipe from error
        except OSError as error:
            closed = error.errno == errno.EBADF
            what = "standard output is closed" if closed else f"cannot write standard output: {error.strerror}"
            raise EnvironmentFault(what) from error


class _Messages(_Stream):
    """Standard error. A command does not fail because nobody can read it."""

    def write(self, content: Any) -> int | None:
        with contextlib.suppress(OSError):
            return super().write(content)
        return len(content)


def set_up_streams() -> None:
    """Opens the streams as the command needs them; one that somebody has replaced stays as it is.

    Pipes and files are UTF-8 with `\\n` on every system, whatever PYTHONIOENCODING or Windows say: most of the world's
    letters may not be in what they choose. A terminal keeps its encoding, with `?` for the rest.
    """
    _open_what_is_closed()
    stdout, stderr = sys.stdout, sys.stderr
    if stdout is sys.__stdout__:
        terminal = stdout is not None and stdout.isatty()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(_Results(stdout, 1)),
            encoding=stdout.encoding if stdout is not None and terminal else "utf-8",
            errors="replace" if terminal else "surrogateescape",
            newline=None if terminal else "\n",
            line_buffering=terminal or getattr(stdout, "write_through", False),
        )
    if stderr is sys.__stderr__:
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Messages(stderr, 2)),
            encoding="utf-8" if stderr is None else stderr.encoding,
            errors="backslashreplace",
            line_buffering=True,
        )


def _open_what_is_closed() -> None:
    """Gives the numbers of streams that were closed (`tfm .. >&-`) to the null device, before other files take them.

    In place of standard output it can only be read: what is written there is not to be lost without a word.
    """
    for number, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest number that is free


def discard_stdout() -> None:
    """Drops what is left to be written: Python would try once more when it exits, and wait for a full pipe."""
    with contextlib.suppress(OSError):  # it is no file, in a test
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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


@contextlib.contextmanager
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
