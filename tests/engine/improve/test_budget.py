"""Time: what is left, and what it decides, is the same for a start that goes on."""

import time
from datetime import datetime
from pathlib import Path

import pytest

from tfm.engine.improve.budget import Budget, seconds_until, time_limit
from tfm.system.errors import ModelError, UsageError


def budget(folder: Path, limit: float | None = None, *, over_all_starts: bool = True) -> Budget:
    return Budget(folder, limit, time.monotonic(), over_all_starts=over_all_starts)


def test_a_time_of_day_is_the_next_one() -> None:
    evening = datetime(2026, 3, 1, 22, 30).astimezone()
    assert seconds_until("23:00", evening) == 30 * 60
    assert seconds_until("07:00", evening) == 8.5 * 3600
    assert seconds_until("22:30", evening) == 24 * 3600
    for wrong in ("25:00", "seven", "7", ""):
        with pytest.raises(UsageError, match="--until takes a time of day"):
            seconds_until(wrong, evening)


def test_a_limit_is_one_of_two_or_none() -> None:
    assert time_limit(None, None) is None
    assert time_limit("1h30m", None) == 5400
    assert 0 < (time_limit(None, "07:00") or 0) <= 24 * 3600
    with pytest.raises(UsageError, match="not both"):
        time_limit("1h", "07:00")
    with pytest.raises(UsageError, match="--max-time: a duration"):
        time_limit("1", None)


def test_what_was_decided_stays_decided(tmp_path: Path) -> None:
    first = budget(tmp_path, 1000.0)
    assert first.share("one", 0.5) == "500s"
    assert first.is_enough("two", 900) and not first.is_enough("three", 1100)
    later = budget(tmp_path, 10.0)
    assert later.share("one", 0.5) == "500s"
    assert later.is_enough("two", 900) and not later.is_enough("three", 5)
    assert later.share("four", 0.5) == "5s"
    assert budget(tmp_path / "other").share("one", 0.5) is None


def test_what_was_decided_is_sealed(tmp_path: Path) -> None:
    budget(tmp_path, 1000.0).share("one", 0.5)
    decided = tmp_path / "decided.json"
    decided.write_bytes(decided.read_bytes().replace(b"500s", b"900s"))
    with pytest.raises(ModelError, match="is damaged"):
        budget(tmp_path).share("one", 0.5)


def test_time_is_counted_over_all_starts_but_for_a_time_of_day(tmp_path: Path) -> None:
    first = budget(tmp_path, 100.0)
    for _ in range(2):
        with first.timing("work"):
            time.sleep(0.05)
    spent = first.spent()["work"]
    assert 0.1 <= spent < 5
    left = budget(tmp_path, 100.0).seconds_left
    assert left is not None and 99.5 - spent < left <= 100 - spent
    whole = budget(tmp_path, 100.0, over_all_starts=False).seconds_left
    assert whole is not None and whole > 99.5
    assert budget(tmp_path).seconds_left is None
