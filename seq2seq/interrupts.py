"""Ctrl-C, SIGTERM, a closed terminal: at once while nothing is at stake, at the end of the step while training.

The command line enters it around every command. A training enters it once more, to hold signals back.
"""

import contextlib
import math
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from ..data.errors import Interrupted, InterruptedAtOnce

_HANG_UP = getattr(signal, "SIGHUP", None)
_SIGNALS = [signal.SIGINT, signal.SIGTERM, *([_HANG_UP] if _HANG_UP else [])]
_AS_ONE = 1.0
"""Seconds within which signals are one: a terminal that closes sends several, and the first one tidies up."""


class Interrupts:
    """Handles SIGINT, SIGTERM and SIGHUP while it is entered. Outside the main thread it does nothing.

    Attributes:
        received: The signal that arrived while it was being held back, if any.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._held = False
        self._raised_at = -math.inf
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a job in the background
                    self._previous[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Inside the block the first signal only sets `received`; a second one interrupts at once.

        A second SIGHUP does not: nobody asks for it.
        """
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        if not self._held:
            now = time.monotonic()
            if now >= self._raised_at + _AS_ONE:
                self._raised_at = now
                raise Interrupted("interrupted", number)
        elif self.received is None:
            self.received = number
        elif number != _HANG_UP:
            raise InterruptedAtOnce("interrupted; what came after the last checkpoint is lost", number)
