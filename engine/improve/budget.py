"""Time: how much is left, what was decided because of it, and what it was spent on.

A decision that depends on the clock is written down before it is used. So a start that goes on decides as the first
start did.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from ...seq2seq.training.config import parse_duration
from ...system.errors import UsageError
from ...system.files import LineLog, make_directory, read_sealed, replace_sealed


def seconds_until(clock: str, now: datetime) -> float:
    """Seconds from now until the clock next says so, such as `07:00`; UsageError for what is no time of day."""
    try:
        moment = datetime.strptime(clock, "%H:%M")
    except ValueError as error:
        raise UsageError(f"--until takes a time of day, such as 07:00, but this is {clock!r}") from error
    end = now.replace(hour=moment.hour, minute=moment.minute, second=0, microsecond=0)
    return (end if end > now else end + timedelta(days=1)).timestamp() - now.timestamp()


def time_limit(max_time: str | None, until: str | None) -> float | None:
    """Seconds that `--max-time` or `--until` allows; None where neither is given.

    Raises:
        UsageError: Both are given, or one cannot be read.
    """
    if max_time is not None and until is not None:
        raise UsageError("give --max-time or --until, not both")
    if until is not None:
        return seconds_until(until, datetime.now().astimezone())
    try:
        return None if max_time is None else parse_duration(max_time)
    except ValueError as error:
        raise UsageError(f"--max-time: {error}") from error


class Budget:
    """The time that an improvement may take.

    Args:
        folder: Where its decisions and clocks are kept.
        limit: Seconds; None for no limit.
        started: Monotonic time of this start.
        over_all_starts: Whether what earlier starts took counts.
    """

    def __init__(self, folder: Path, limit: float | None, started: float, *, over_all_starts: bool) -> None:
        make_directory(folder)
        self._decided, self._clocks = folder / "decided.json", LineLog(folder / "timing.jsonl")
        before = sum(self.spent().values()) if over_all_starts else 0.0
        self._end = None if limit is None else started + limit - before  # monotonic

    @property
    def seconds_left(self) -> float | None:
        """Until the end; None where there is no limit."""
        return None if self._end is None else self._end - time.monotonic()

    def spent(self) -> Counter[str]:
        """Seconds that each stage took, over all starts; those of a start that was killed are not known."""
        found = Counter[str]()
        for record in self._clocks.records():
            found[record["stage"]] += record["seconds"]
        return found

    @contextmanager
    def timing(self, stage: str) -> Iterator[None]:
        """Inside the block a stage is at work."""
        before = time.monotonic()
        try:
            yield
        finally:
            self._clocks.append({"stage": stage, "seconds": round(time.monotonic() - before, 3)})
            self._clocks.sync()

    def once(self, name: str, decide: Callable[[], Any]) -> Any:
        """The decision of this name. The first call decides and writes it down; later calls read it."""
        decided = read_sealed(self._decided) if self._decided.exists() else {}
        if name not in decided:
            decided[name] = decide()
            replace_sealed(self._decided, decided)
        return decided[name]

    def share(self, name: str, share: float) -> str | None:
        """The part of the time left that a training gets, as `--max-time` has it; None where there is no limit."""
        left = self.seconds_left
        return self.once(f"{name}: max_time", lambda: None if left is None else f"{max(round(left * share), 1)}s")

    def is_enough(self, name: str, seconds: float) -> bool:
        """Whether there is time for what is likely to take this long."""
        left = self.seconds_left
        return self.once(f"{name}: is begun", lambda: left is None or left >= seconds)
