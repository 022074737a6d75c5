"""Ctrl-C, SIGTERM, a closed terminal: at once while nothing is at stake, at the end of the step while training."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from ..data.errors import Interrupted, InterruptedAtOnce

_SIGNALS = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))


class Interrupts:
    """Handles SIGINT, SIGTERM and SIGHUP while it is entered. Outside the main thread it does nothing.

    Attributes:
        received: The signal that arrived while it was being held back, if any.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._held = False
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
        """Inside the block the first signal only sets `received`; a second one interrupts at once."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        if not self._held:
            raise Interrupted("interrupted", number)
        if self.received is not None:
            raise InterruptedAtOnce("interrupted; what came after the last checkpoint is lost", number)
        self.received = number
