"""JSON Lines: one object on each line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...system.errors import DataError
from ..config import DataConfig
from ..reading import count_lines, read_lines
from .columns import record_pairs
from .format import FileFormat, Pair


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two fields of each object; a blank line is an empty pair."""
    lines = enumerate(read_lines(path, skip_bad=config.bad_lines == "skip"), start=1)
    places = ((f"{path}:{number}", line or "") for number, line in lines)
    return record_pairs(((place, record(place, line)) for place, line in places), config)


def record(place: str, line: str) -> dict[str, Any] | None:
    """The object in a line; None in a blank one."""
    if not line.strip():
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not a JSON object: {error}") from error
    if not isinstance(found, dict):
        raise DataError(f"{place}: not a JSON object")
    return found


JSONL = FileFormat((".jsonl",), read, lambda path, _: count_lines(path))
