"""Rows of fields between commas, semicolons or tabs, with a header that names the columns or without one."""

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ...system.errors import DataError
from ..config import DataConfig
from ..reading import read_lines
from .columns import DELIMITERS, ROWS_LOOKED_AT, Layout, Row, table_pairs
from .columns import layout_of as layout_of_rows
from .format import FileFormat, Pair

_CHOICE = re.compile(r"sep=(.)")
"""A first line with which Excel says what stands between fields."""


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two columns of each row; a blank row is an empty pair."""
    layout = layout_of(path, config)
    width = len(layout.names)

    def check(line: int, row: list[str]) -> None:
        if len(row) < width or any(row[width:]):
            raise DataError(
                f"{path}:{line}: {len(row)} fields, but the first row has {width}; a field that holds a"
                f" {layout.delimiter!r} must stand in double quotes"
            )

    return table_pairs(table_rows(path, config, layout.delimiter), layout, check)


def describe(path: Path, config: DataConfig) -> str:
    """What was recognised, and what to do if it is wrong."""
    return layout_of(path, config).describe(path)


def layout_of(path: Path, config: DataConfig, *, fills: bool = False) -> Layout:
    """Looks at the first rows: the delimiter is the one with which most of them have the same number of fields."""
    chosen = _chosen_delimiter(path, config)
    firsts = {delimiter: _first_rows(path, config, delimiter) for delimiter in ([chosen] if chosen else DELIMITERS)}
    if not any(firsts.values()):
        raise DataError(f"{path} has no row")

    def regular(delimiter: str) -> tuple[int, bool]:
        (width, count), *_ = Counter(len(row) for row in firsts[delimiter]).most_common(1) or [(0, 0)]
        return (count if width > 1 else 0), width == 2

    delimiter = max(firsts, key=regular)
    if not regular(delimiter)[0]:
        raise DataError(f"{path}: one field in a row; a .csv has commas, semicolons or tabs between fields")
    return layout_of_rows(path, firsts[delimiter], delimiter, config, fills=fills)


def _chosen_delimiter(path: Path, config: DataConfig) -> str | None:
    match = _CHOICE.fullmatch(next(_lines(path, config), ""))
    return match[1] if match else None


def _first_rows(path: Path, config: DataConfig, delimiter: str) -> list[list[str]]:
    found: list[Row] = []
    with contextlib.suppress(DataError):  # a quote that is never closed: said when all of it is read
        found.extend(islice(table_rows(path, config, delimiter), ROWS_LOOKED_AT))
    return [row for _, row in found if row]


def table_rows(path: Path, config: DataConfig, delimiter: str) -> Iterator[Row]:
    """All rows, a header included."""
    lines = (
        "\n" if number == 0 and _CHOICE.fullmatch(line) else f"{line}\n"
        for number, line in enumerate(_lines(path, config))
    )
    rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    while True:
        begun = rows.line_num + 1
        try:
            yield begun, next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            problem = "a double quote that opens a field is not closed, or one inside it is not doubled"
            raise DataError(f"{path}:{begun}: {problem} ({error})") from error


def _lines(path: Path, config: DataConfig) -> Iterator[str]:
    return ((line or "").replace("\r", " ") for line in read_lines(path, skip_bad=config.bad_lines == "skip"))


# A quoted field may span lines, so nothing counts rows but reading them.
CSV = FileFormat((".csv",), read, describe=describe)
