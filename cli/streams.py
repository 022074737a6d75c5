"""The standard streams of the command: open, in UTF-8, and each with its own answer to what cannot be written."""

import contextlib
import errno
import io
import os
import sys
from typing import Any

from ..system.errors import ClosedPipe, EnvironmentFault


class _Results(io.FileIO):
    """Standard output. What cannot be written there is an error, which names it."""

    def write(self, content: Any) -> int:
        """See `io.RawIOBase`."""
        try:
            return super().write(content)
        except BrokenPipeError as error:
            raise ClosedPipe from error
        except OSError as error:
            closed = error.errno == errno.EBADF
            what = "standard output is closed" if closed else f"cannot write standard output: {error.strerror}"
            raise EnvironmentFault(what) from error


class _Messages(io.FileIO):
    """Standard error. That nobody can read it is no reason to fail."""

    def write(self, content: Any) -> int:
        """See `io.RawIOBase`."""
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
            io.BufferedWriter(_Results(1, "w", closefd=False)),
            encoding=stdout.encoding if stdout is not None and terminal else "utf-8",
            errors="replace" if terminal else "surrogateescape",
            newline=None if terminal else "\n",
            line_buffering=terminal or getattr(stdout, "write_through", False),
        )
    if stderr is sys.__stderr__:
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Messages(2, "w", closefd=False)),
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
    """What is left to be written goes nowhere: Python would try once more when it exits, and wait for a full pipe."""
    with contextlib.suppress(OSError):  # it is no file, in a test
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
