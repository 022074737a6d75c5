"""Ctrl-C, SIGTERM, a closed terminal: at once while nothing is at stake, at the end of the step while training.

The command line enters it around every command. A training enters it once more, to hold signals back.
"""

import contextlib
import math
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from .errors import Interrupted, InterruptedAtOnce

_HANG_UP = getattr(signal, "SIGHUP", None)
_SIGNALS = [signal.SIGINT, signal.SIGTERM, *([_HANG_UP] if _HANG_UP else [])]
_AS_ONE = 1.0
"""Signals within this many seconds count as one, because a terminal that closes sends several."""
_AGAIN = 0.03
"""Seconds until a signal is sent again, if it could not be raised or its exception was lost."""


class Interrupts:
    """Handles SIGINT, SIGTERM and SIGHUP while it is entered. Outside the main thread it does nothing.

    A signal can arrive where an exception does harm or gets lost: libraries abort the process if one comes up while
    they are imported, or say that they are not installed; Python drops it in a destructor. So nothing is raised during
    an import, and an exception that is gone before the block has ended is raised again. `received` is the signal that
    arrived while it was being held back, if any.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._held = False
        self._raised_at = -math.inf
        self._raised: weakref.ref[Interrupted] | None = None
        self._previous: dict[int, Any] = {}
        self._previous_hook = sys.unraisablehook

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._previous = _answered_by(self._on_signal)
            self._previous_hook, sys.unraisablehook = sys.unraisablehook, self._on_unraisable
        return self

    def __exit__(self, *_: object) -> None:
        self._raised = None
        if self._previous:
            _restore(self._previous)
            self._previous = {}
            sys.unraisablehook = self._previous_hook

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
        if self._held and self.received is None:
            self.received = number
        elif _is_importing(frame):
            self._send_again(number)
        elif not self._held:
            now = time.monotonic()
            if now >= self._raised_at + _AS_ONE:
                self._raised_at = now
                raise self._watched(Interrupted("interrupted", number))
        elif number != _HANG_UP:
            raise InterruptedAtOnce("interrupted; what came after the last checkpoint is lost", number)

    def _watched(self, error: Interrupted) -> Interrupted:
        """The error; the signal comes again if it is dropped."""
        number = error.signal_number

        def again(_: object) -> None:
            self._raised_at = -math.inf
            self._send_again(number)

        self._raised = weakref.ref(error, again)
        return error

    def _send_again(self, number: int) -> None:
        timer = threading.Timer(_AGAIN, self._send, [number])
        timer.daemon = True
        timer.start()

    def _send(self, number: int) -> None:
        """Sends a signal to the main thread, which may be waiting for something; Windows knows of no threads here."""
        main = threading.main_thread().ident
        if not self._previous:  # nobody is there any more to answer it
            return
        if hasattr(signal, "pthread_kill") and main is not None:
            signal.pthread_kill(main, number)
        else:
            signal.raise_signal(number)

    def _on_unraisable(self, unraisable: "sys.UnraisableHookArgs") -> None:
        if not isinstance(unraisable.exc_value, Interrupted):  # nobody needs to be told: it comes again
            self._previous_hook(unraisable)


@contextlib.contextmanager
def ending_at_once() -> Iterator[None]:
    """Inside the block a signal ends the process at once. It is for large imports, while nothing is at stake.

    It does so only where the command line answers signals: a program that imports us has its own way.
    """
    handler: Any = signal.getsignal(signal.SIGTERM)
    entered = isinstance(getattr(handler, "__self__", None), Interrupts)
    previous = _answered_by(_end) if entered else {}
    try:
        yield
    finally:
        _restore(previous)


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    with contextlib.suppress(OSError):
        os.write(2, b"tfm: interrupted\n")
    os._exit(128 + number)


def _answered_by(handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Sets the handler of all signals but those that nohup or a job in the background ignores; returns the old ones."""
    answered = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in answered}


def _restore(handlers: dict[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported there."""
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None
