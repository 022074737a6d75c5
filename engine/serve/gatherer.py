"""Texts of many requests, translated together: a batch of sentences takes little longer than one of them."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..translation import Translation

Translate = Callable[[list[str], Hashable], "list[Translation]"]
"""From texts, and what they ask of the search, to a translation of each."""
MOST_TEXTS = 64
"""The most texts that are translated at once. If a request has more, its rest goes to the end of the queue."""


class Busy(Exception):
    """There is no room for further texts."""


@dataclass(eq=False)
class _Request:
    """The texts of one request.

    Attributes:
        search: What it asks of the search; only texts that ask for the same are translated together.
        found: The translations so far.
        loop, done: Where it is waited for the result.
    """

    texts: Sequence[str]
    search: Hashable
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[list[Translation]]"
    found: "list[Translation]" = field(default_factory=list)
    is_given_up: bool = False

    @property
    def left(self) -> Sequence[str]:
        """The texts that are not translated yet."""
        return self.texts[len(self.found) :]

    def settle(self, error: BaseException | None = None) -> None:
        """Hands the result over, or what prevented it."""

        def hand_over() -> None:
            if self.done.done():
                return
            if error is None:
                self.done.set_result(self.found)
            else:
                self.done.set_exception(error)

        self.loop.call_soon_threadsafe(hand_over)


class Gatherer:
    """Translates the texts of requests in a thread of its own, those that come within a moment together.

    Args:
        translate: Called by one thread at a time.
        wait: Seconds that a first text waits for others.
        room: Texts that may wait or be under way at most.
    """

    def __init__(self, translate: Translate, *, wait: float = 0.02, room: int = 4096) -> None:
        self._translate, self._wait, self._room = translate, wait, room
        self._waiting: deque[_Request] = deque()
        self._taken: list[_Request] = []
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="translating", daemon=True)
        self._thread.start()

    async def translate(self, texts: Sequence[str], search: Hashable, seconds: float) -> "list[Translation]":
        """One translation for each text.

        Raises:
            Busy: There is no room.
            TimeoutError: It took longer than `seconds`. What is not begun then is never done.
        """
        loop = asyncio.get_running_loop()
        request = _Request(texts, search, loop, loop.create_future())
        with self._changed:
            before = sum(len(one.left) for one in (*self._waiting, *self._taken))
            if self._is_closed or before + len(texts) > self._room:
                raise Busy
            self._waiting.append(request)
            self._changed.notify()
        try:
            async with asyncio.timeout(seconds):
                return await request.done
        finally:
            request.is_given_up = True

    def close(self) -> None:
        """Ends the thread when all that waits is done."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while requests := self._next():
            shares = _shares(requests)
            texts = [text for request, count in shares for text in request.left[:count]]
            try:
                found = iter(self._translate(texts, requests[0].search))
            except Exception as error:
                self._taken = []
                for request in requests:
                    request.settle(error)
                continue
            for request, count in shares:
                request.found += [next(found) for _ in range(count)]
            self._put_back(requests)

    def _next(self) -> list[_Request]:
        """Waits for texts. Returns the first request and those that ask for the same search; none once it is closed."""
        with self._changed:
            while True:
                while not self._waiting and not self._is_closed:
                    self._changed.wait()
                if not self._waiting:
                    return []
                self._wait_for_more()
                self._waiting = deque(one for one in self._waiting if not one.is_given_up)
                if self._waiting:
                    return self._take()

    def _wait_for_more(self) -> None:
        until = time.monotonic() + self._wait
        while not self._is_closed and sum(len(one.left) for one in self._waiting) < MOST_TEXTS:
            if (left := until - time.monotonic()) <= 0:
                break
            self._changed.wait(left)

    def _take(self) -> list[_Request]:
        first, texts, self._taken = self._waiting[0], 0, []
        for request in self._waiting:
            if request.search == first.search and texts < MOST_TEXTS:
                self._taken.append(request)
                texts += len(request.left)
        self._waiting = deque(one for one in self._waiting if one not in self._taken)
        return self._taken

    def _put_back(self, requests: Sequence[_Request]) -> None:
        """Hands over what is whole; the rest waits again, behind what has come since."""
        with self._changed:
            self._taken = []
            for request in requests:
                if request.left and not request.is_given_up:
                    self._waiting.append(request)
                else:
                    request.settle()


def _shares(requests: Sequence[_Request]) -> list[tuple[_Request, int]]:
    """How many texts of each request are translated now: at most `MOST_TEXTS` together."""
    room, shares = MOST_TEXTS, list[tuple[_Request, int]]()
    for request in requests:
        shares.append((request, min(len(request.left), room)))
        room -= shares[-1][1]
    return shares
