"""`tfm runs`: the runs that there are."""

import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from ..engine.file_guard import READS_RUNS
from ..system.errors import UsageError
from . import options
from .table import print_table

_UNITS = ("B", "kB", "MB", "GB", "TB")


def runs(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="Where they lie. [default: runs]", show_default=False),
        READS_RUNS,
    ] = None,
    json_: options.Json = False,
) -> None:
    """List the runs: what each is, its pairs, its best score.

    The newest comes first. Size is that of all its files; without its folder cache it is smaller.
    """
    from ..engine.runs.find import list_runs
    from ..engine.runs.listing import listed

    if folder is not None and not folder.is_dir():
        raise UsageError(f"there is no folder {folder}; tfm runs takes the folder that holds the runs")
    found = sorted(map(listed, list_runs(folder)), key=lambda one: one.trained, reverse=True)
    if json_:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False))
        return
    if not found:
        print(f"there is no run in {folder or 'runs'}/ yet; train one with tfm train")
        return
    rows = [
        [
            one.name,
            one.problem or one.what,
            "" if one.examples is None else f"{one.examples:,}",
            one.score,
            f"{one.step:,}",
            f"{datetime.fromtimestamp(one.trained):%Y-%m-%d}",
            _size(one.bytes),
        ]
        for one in found
    ]
    print_table(rows, ["run", "what", "pairs", "best score", "step", "date", "size"], figures={2, 4, 6})


def _size(count: float) -> str:
    """A number of bytes as a person reads it."""
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.0f} {_UNITS[power]}"
