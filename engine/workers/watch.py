"""Who of the processes that torchrun started is still there, and how the others ended.

When one of them dies, the others see a broken connection, or a signal of torchrun, or nothing at all where a whole
machine has gone. So each of them counts up a number in torchrun's store as long as it lives, and says there how it
ended, if it still can.
"""

import contextlib
import os
import platform
import sys
import threading
import time
from collections.abc import Iterator

from torch import distributed

from ...system.errors import EnvironmentFault, Interrupted, InterruptedAtOnce
from ...system.interrupts import Interrupts

_BEAT = 0.5
"""Seconds between two signs of life."""
_PATIENCE = 3.0
"""A process that has been silent for these seconds is dead if something else has gone wrong."""
_SILENCE = 120.0
"""A process that has been silent for these seconds is dead in any case."""
_AGAIN = "run the same command to continue"
_STORE_HAS_GONE = f"torchrun has ended on the machine of rank 0, or was killed; {_AGAIN}"
_ROUTINE = "-"
"""What a process leaves that ended without an error of its own."""


class _Watch:
    """Signs of life."""

    def __init__(self, rank: int, count: int) -> None:
        self._rank, self._count = rank, count
        self._store, _, _ = next(distributed.rendezvous("env://"))  # pyright: ignore[reportPrivateImportUsage]
        self._store.set(self._key("host", rank), platform.node() or "its machine")
        self._store.add(self._key("beats", rank), 1)  # whoever dies from here on is missed
        self._left = threading.Event()
        self._reached_store = time.monotonic()
        self._beats = threading.Thread(target=self._beat, daemon=True)
        self._beats.start()
        threading.Thread(target=self._look_at_the_wire, daemon=True).start()

    @staticmethod
    def _key(kind: str, rank: int) -> str:
        return f"tfm/{kind}/{rank}"

    def _beat(self) -> None:
        """Gives signs of life, and looks for those of the leader; the leader for those of all."""
        others = range(1, self._count) if self._rank == 0 else (0,)
        silent = dict.fromkeys(others, 0.0)
        counts: dict[int, int] = {}
        try:
            while not self._left.wait(_BEAT):
                self._store.add(self._key("beats", self._rank), 1)
                for rank in others:
                    alive = self._count_of(rank) != counts.get(rank) or self._farewell(rank)
                    counts[rank] = self._count_of(rank)
                    silent[rank] = 0.0 if alive or not counts[rank] else silent[rank] + _BEAT
                    if silent[rank] > _SILENCE:  # this process waits for it where nothing can wake it up
                        self._end(self._died(rank))
                self._reached_store = time.monotonic()
        except RuntimeError:  # the store has gone, and torchrun with it
            if self._rank > 0 and not self._left.wait(_PATIENCE):
                self._end(_STORE_HAS_GONE)  # the leader sees that, and says the same

    def _look_at_the_wire(self) -> None:
        """Ends this process where the store, on the first machine, is out of reach: a call of it would never return."""
        while not self._left.wait(_BEAT):
            if time.monotonic() - self._reached_store > _SILENCE + _PATIENCE and self._beats.is_alive():
                self._end(f"rank {self._rank} does not reach the machine of rank 0: it has gone, or the wire; {_AGAIN}")

    @staticmethod
    def _end(said: str) -> None:
        """Ends this process from a thread: the main one may wait where nothing wakes it up."""
        print(f"tfm: error: {said}", file=sys.stderr, flush=True)
        os._exit(EnvironmentFault.exit_code)

    def _count_of(self, rank: int) -> int:
        """Signs of life that it has given; 0 before it has begun."""
        return self._store.add(self._key("beats", rank), 0)

    def _farewell(self, rank: int) -> str:
        key = self._key("farewell", rank)
        return self._store.get(key).decode() if self._store.check([key]) else ""

    def leave(self, farewell: str = _ROUTINE) -> None:
        """Says how this process ends."""
        self._left.set()
        with contextlib.suppress(RuntimeError):
            self._store.set(self._key("farewell", self._rank), farewell or _ROUTINE)
        self._beats.join(_PATIENCE)  # a thread that is inside the store when Python ends would abort the process

    def obituary(self, error: BaseException) -> str | None:
        """What to say of the process whose end was the cause of an error here; None if it was not that.

        Only the leader talks, unless it has died itself. A broken connection is felt before the other process has said
        how it ended; a signal comes later.
        """
        others = [rank for rank in range(self._count) if rank != self._rank]
        try:
            before = {rank: self._count_of(rank) for rank in others}
            until = time.monotonic() + _PATIENCE
            while True:
                farewells = {rank: self._farewell(rank) for rank in others}
                silent = [rank for rank in others if not farewells[rank] and before[rank] == self._count_of(rank) > 0]
                ended = [rank for rank in others if farewells[rank] not in ("", _ROUTINE)]
                if ended or time.monotonic() > until or (not silent and isinstance(error, Interrupted)):
                    break
                time.sleep(_BEAT / 2)
            talks = self._rank == 0
            if ended:
                return f"rank {ended[0]} (on {self._host(ended[0])}) has ended: {farewells[ended[0]]}" if talks else ""
            if silent:
                return self._died(silent[0]) if talks or 0 in silent else ""
        except RuntimeError:  # of the store
            return None if isinstance(error, Interrupted) else _STORE_HAS_GONE
        return None

    def _died(self, rank: int) -> str:
        return (
            f"rank {rank} (on {self._host(rank)}) has died: it was killed (out of memory?), or its machine has gone;"
            f" {_AGAIN}"
        )

    def _host(self, rank: int) -> str:
        return self._store.get(self._key("host", rank)).decode()


@contextlib.contextmanager
def watched(rank: int, count: int, interrupts: Interrupts) -> Iterator[None]:
    """Inside the block the processes that torchrun started watch each other.

    EnvironmentFault takes the place of an error, or of a signal of torchrun, that came of the end of another process;
    it has no words where the leader says it.
    """
    watch = _Watch(rank, count)
    try:
        yield
    except InterruptedAtOnce:
        watch.leave()
        raise
    except (RuntimeError, Interrupted) as error:
        with interrupts.held():  # torchrun sends a signal when it notices
            obituary = watch.obituary(error)
        own = "" if isinstance(error, Interrupted) else f"{type(error).__name__}: {error}"
        watch.leave(own if obituary is None else _ROUTINE)
        if obituary is None:
            raise
        raise EnvironmentFault(obituary) from error
    except Exception as error:
        watch.leave(str(error))
        raise
    except BaseException:
        watch.leave()
        raise
    watch.leave()
