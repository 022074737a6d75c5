"""Child processes that run a module of ours, and what to say when one dies. Standard library only.

A child is a plain Python process on pipes, and nothing of this program is imported in it but what its module imports.
It never outlives its block: at the end it is killed. If this process itself is killed, the child's stdin ends, and a
child that reads its stdin ends with it.
"""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .errors import EnvironmentFault
from .files import fault


@dataclass(frozen=True)
class Ending:
    """How a child ended."""

    status: int
    """Its exit code, or the negative number of the signal that killed it."""
    complaints: str
    """What it wrote to stderr."""

    @property
    def last_line(self) -> str:
        """The last line of its complaints; empty if it said nothing."""
        return (self.complaints.strip().splitlines() or [""])[-1]

    def __str__(self) -> str:
        if self.status < 0:
            return f"was killed by signal {-self.status} (out of memory?)"
        return f"ended with exit code {self.status}{': ' + self.last_line if self.last_line else ''}"


class Child:
    """A Python process that runs a module of ours, and is killed when the block ends.

    What it writes to stderr is kept in a file, because a pipe that nobody reads could fill up and stop the child.

    A child that reads a pipe has a session of its own: Ctrl-C is for this process to answer. A child that reads a file
    does not notice when this process dies; so it stays in our session, where the terminal's signals reach it, too.

    Args:
        module: Its full name; what another interpreter runs.
        purpose: What it is started for, for the message: `to tokenize in`.
        stdin: A file that it reads; without one, a pipe.
        inherits: Numbers of open files that are open in it, too.
        interpreter: What runs it; this Python unless given. With -P the files of the current directory are no modules,
            as they are none for `tfm`.
    """

    def __init__(
        self,
        module: str,
        *arguments: object,
        purpose: str,
        stdin: IO[bytes] | None = None,
        inherits: Sequence[int] = (),
        interpreter: Sequence[str] = (),
    ) -> None:
        command = [*(interpreter or (sys.executable, "-P", "-m")), module, *map(str, arguments)]
        with contextlib.ExitStack() as undo:
            try:
                self._stderr = undo.enter_context(tempfile.TemporaryFile())
            except OSError as error:
                raise fault("write", Path(tempfile.gettempdir()), error) from error
            try:
                self._process: subprocess.Popen[bytes] = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE if stdin is None else stdin,
                    stdout=subprocess.PIPE,
                    stderr=self._stderr,
                    start_new_session=stdin is None,  # on Windows a group does what a session does elsewhere
                    creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) if stdin is None else 0,
                    pass_fds=inherits,
                )
            except OSError as error:
                raise EnvironmentFault(f"cannot start a process {purpose}: {error.strerror}") from error
            undo.pop_all()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._stderr):
            with contextlib.suppress(OSError):  # what could not be flushed any more
                if stream is not None:
                    stream.close()

    @property
    def stdin(self) -> IO[bytes]:
        """The pipe that the child reads. It closes when this process dies, however it dies."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """The pipe that the child writes."""
        assert self._process.stdout is not None
        return self._process.stdout

    def kill(self) -> None:
        """Kills it, if it has not ended by itself."""
        self._process.kill()

    def output(self) -> bytes:
        """Waits until it ends by itself, and returns all that it has written to stdout."""
        return self._process.communicate()[0]

    def wait(self) -> Ending:
        """Waits until it ends, and says how it did."""
        status = self._process.wait()
        self._stderr.seek(0)
        return Ending(status, self._stderr.read().decode(errors="replace"))

    def ended_within(self, seconds: float) -> Ending | None:
        """Waits no longer than this for it to end; None if it is still alive."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return self.wait()
