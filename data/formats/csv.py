"""Comma-separated rows with a header, which names the columns."""

import csv
from collections.abc import Iterator
from pathlib import Path

from ..config import DataConfig
from ..errors import DataError
from ..reading import read_lines
from .columns import pick_columns
from .format import FileFormat, Pair


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two columns of each row; a blank row is an empty pair."""
    lines = read_lines(path, skip_bad=config.bad_lines == "skip")
    rows = csv.reader((line or "").replace("\r", " ") + "\n" for line in lines)
    try:
        header = next(rows, [])
        src, tgt = (header.index(column) for column in pick_columns(path.name, header, config))
        for row in rows:
            if row and len(row) <= max(src, tgt):
                raise DataError(f"{path}:{rows.line_num}: {len(row)} fields, but the header names {len(header)}")
            yield (row[src], row[tgt]) if row else ("", "")
    except csv.Error as error:
        raise DataError(f"{path}:{rows.line_num}: {error}") from error


CSV = FileFormat(".csv", read)  # a quoted field may span lines, so nothing counts rows but reading them
