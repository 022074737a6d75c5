"""Rows of fields between commas, semicolons or tabs, with a header that names the columns or without one."""

import contextlib
import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..config import DataConfig
from ..errors import DataError
from ..reading import read_lines
from .columns import USUAL_COLUMNS, pick_columns
from .format import FileFormat, Pair

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
"""Those that are looked for, the usual one first, and what they are called."""
ROWS_LOOKED_AT = 50
_NAME = re.compile(r"[^\W\d_][\w-]{0,19}")
"""What a column may be called where nobody said what to look for: one short word."""


@dataclass(frozen=True)
class Layout:
    """How a table is written.

    Attributes:
        delimiter: Between fields.
        header: The names of the columns; without a header, their numbers from 1.
        has_header: Whether the first row has them.
    """

    delimiter: str
    header: list[str]
    has_header: bool


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two columns of each row; a blank row is an empty pair."""
    layout = layout_of(path, config)
    rows = _rows(path, config, layout.delimiter)
    try:
        if layout.has_header:
            next(rows)
        src, tgt = (layout.header.index(column) for column in pick_columns(path.name, layout.header, config))
        for row in rows:
            if row and len(row) <= max(src, tgt):
                expected = f"the header names {len(layout.header)}" if layout.has_header else "the first row has more"
                raise DataError(f"{path}:{rows.line_num}: {len(row)} fields, but {expected}")
            yield (row[src], row[tgt]) if row else ("", "")
    except csv.Error as error:
        raise DataError(f"{path}:{rows.line_num}: {error}") from error


def describe(path: Path, config: DataConfig) -> str:
    """What was recognised, for people."""
    layout = layout_of(path, config)
    if not layout.has_header:
        return f"{path}: fields between {DELIMITERS[layout.delimiter]}, no header: the first row is a pair"
    return f"{path}: fields between {DELIMITERS[layout.delimiter]}, header {', '.join(layout.header)}"


def layout_of(path: Path, config: DataConfig) -> Layout:
    """Looks at the first rows.

    The delimiter is the one with which most rows have as many fields as the first has. The first row is a header if it
    holds a name that is wanted, or has one short word in each field.
    """
    firsts = {delimiter: _first_rows(path, config, delimiter) for delimiter in DELIMITERS}

    def regular(delimiter: str) -> int:
        fields = [len(row) for row in firsts[delimiter]]
        return sum(count == fields[0] for count in fields) if fields and fields[0] > 1 else 0

    delimiter = max(DELIMITERS, key=regular)
    first = firsts[delimiter][0] if firsts[delimiter] else []
    named = {config.src_column, config.tgt_column, *USUAL_COLUMNS} & set(first)
    numbered = config.src_column.isdecimal() and config.tgt_column.isdecimal()
    if named or (not numbered and all(_NAME.fullmatch(field.strip()) for field in first)):
        return Layout(delimiter, first, has_header=bool(first))
    return Layout(delimiter, [str(number + 1) for number in range(len(first))], has_header=False)


def _first_rows(path: Path, config: DataConfig, delimiter: str) -> list[list[str]]:
    found: list[list[str]] = []
    with contextlib.suppress(csv.Error):  # a quote that is never closed: said when all of it is read
        found.extend(islice(_rows(path, config, delimiter), ROWS_LOOKED_AT))
    return [row for row in found if row]


def _rows(path: Path, config: DataConfig, delimiter: str) -> Any:
    """What csv.reader returns, whose type has no public name: rows, and in `line_num` the line read last."""
    lines = read_lines(path, skip_bad=config.bad_lines == "skip")
    return csv.reader(((line or "").replace("\r", " ") + "\n" for line in lines), delimiter=delimiter)


# A quoted field may span lines, so nothing counts rows but reading them.
CSV = FileFormat((".csv",), read, describe=describe)
