"""JSON Lines: one object on each line."""

import json
from collections.abc import Iterator
from pathlib import Path

from ..config import DataConfig
from ..errors import DataError
from ..reading import count_lines, read_lines
from .columns import Columns, inside_translation, pick_columns, row_pair
from .format import FileFormat, Pair


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two fields of each object; a blank line is an empty pair."""
    columns: Columns | None = None
    for number, line in enumerate(read_lines(path, skip_bad=config.bad_lines == "skip"), start=1):
        if line is None or not line.strip():
            yield "", ""
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}:{number}: not a JSON object: {error}") from error
        if not isinstance(row, dict):
            raise DataError(f"{path}:{number}: not a JSON object")
        row = inside_translation(row)
        columns = columns or pick_columns(f"{path}:{number}", list(row), config)
        yield row_pair(f"{path}:{number}", row, columns)


JSONL = FileFormat((".jsonl",), read, count_lines)
