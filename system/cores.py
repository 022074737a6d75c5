"""How many cores this process may use. Standard library only."""

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path

GROUPS, OWN_GROUPS = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
"""Linux says here how much of the processors a container gets, and in which groups this process is."""


def available_cores() -> int:
    """Cores that this process may use: those that it may run on, but no more than a container is given time for.

    A part of a core counts as one.
    """
    return min([allowed_cores(), *map(math.ceil, _quotas())])


def allowed_cores() -> int:
    """Cores that this process may run on, however much of their time it gets."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _quotas() -> Iterator[float]:
    """How many cores' time the groups of this process are given, where there is a limit."""
    for folder in _groups():
        with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
            if (limit := folder / "cpu.max").exists():  # cgroup v2; without a limit the number is the word "max"
                quota, period = limit.read_text().split()
            else:
                quota, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            if int(quota) > 0:  # -1 is no limit
                yield int(quota) / int(period)


def _groups() -> Iterator[Path]:
    """Folders of the groups of this process, and of those around them; in a container they begin at the root."""
    lines: list[str] = []
    with contextlib.suppress(OSError):
        lines = OWN_GROUPS.read_text().splitlines()
    for line in ["0::/", ":cpu:/", *lines]:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for root in (GROUPS / controllers, GROUPS / "cpu") if controllers else (GROUPS,):
            folder = root / path.lstrip("/")
            yield from (one for one in (folder, *folder.parents) if one.is_relative_to(root))
