"""The installed command at a terminal of its own: what is typed, and what is seen."""

import os
import pty
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from helpers.command import TFM


def typed(
    arguments: Sequence[Any], cwd: Path, keys: bytes, env: dict[str, str] | None = None, *, after: str = ""
) -> str:
    """What a terminal shows of a command. `keys` are typed once it shows `after`."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80", "LINES": "24", **(env or {})}
    command = [str(TFM), *map(str, arguments)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, env=environment)
    os.close(theirs)
    shown, waiting, limit = b"", bool(keys), time.monotonic() + 120
    while time.monotonic() < limit:
        try:
            new = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not new:
            break
        shown += new
        if waiting and after.encode() in shown:
            waiting = False
            os.write(ours, keys)
    process.wait(timeout=30)
    os.close(ours)
    return shown.decode(errors="replace").replace("\r\n", "\n")
