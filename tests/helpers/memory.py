"""How much memory a process holds, and how much it has held at most. Linux only."""

import atexit
import json
import os
import sys
import time
from pathlib import Path

MEGABYTE = 1 << 20


def resident(pid: int | None = None, what: str = "VmRSS") -> int:
    """Bytes in memory now; with `VmHWM`, at most so far. Of this process, if none is named."""
    for line in Path("/proc", str(pid or os.getpid()), "status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has ended")


def tell_peak(path: str) -> None:
    """Has this process write at its end how much it has held at most."""
    atexit.register(lambda: Path(path).write_text(str(resident(what="VmHWM"))))


def echo_lines(source: str | None, pause: float) -> None:
    """The line machinery of the commands around a model that says what it hears; tells how its memory grew.

    Args:
        source: A file; without one, standard input is read.
        pause: So many seconds it thinks about a chunk, while further lines may come.
    """
    from tfm.cli.lines import line_chunks, write_results
    from tfm.system.reporter import Console

    seen: dict[int, int] = {}

    def on_done(done: int) -> None:
        if done >= 1_000:
            seen[done] = resident()

    def echo(texts: list[str], first: int) -> list[str]:
        del first
        time.sleep(pause)
        return texts

    console = Console()
    chunks = line_chunks(None, Path(source) if source else None, console, encoding="")
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        write_results(echo, chunks, nowhere, console, encoding="", on_done=on_done)
    json.dump({"lines": max(seen), "growth": max(seen.values()) - seen[min(seen)]}, sys.stdout)
    sys.stdout.flush()
