"""Lines of fields between tabs, with a header that names the columns or without one. Quotes are text like any other."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ...system.errors import DataError
from ..config import DataConfig
from ..reading import count_lines, read_lines
from .columns import ROWS_LOOKED_AT, Layout, Row, is_blank, table_pairs
from .columns import layout_of as layout_of_rows
from .format import FileFormat, Pair


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two fields of each line; a blank line is an empty pair."""
    layout = layout_of(path, config)
    needed, width = max(layout.src, layout.tgt) + 1, len(layout.names)

    def check(line: int, row: list[str]) -> None:
        if len(row) == 1:
            raise DataError(f"{path}:{line}: no tab; a .tsv line is source<TAB>target")
        if len(row) < needed:
            raise DataError(f"{path}:{line}: {len(row)} fields, but the text is in column {needed}")
        if layout.has_header and any(row[width:]):
            raise DataError(f"{path}:{line}: {len(row)} fields, but the first row has {width}; is a tab inside a text?")

    return table_pairs(table_rows(path, config), layout, check)


def layout_of(path: Path, config: DataConfig, *, fills: bool = False) -> Layout:
    """Looks at the first rows: see `columns.layout_of`, which raises, too."""
    rows = [row for _, row in islice(table_rows(path, config), ROWS_LOOKED_AT) if row]
    return layout_of_rows(path, rows, "\t", config, fills=fills, first_two=True)


def table_rows(path: Path, config: DataConfig) -> Iterator[Row]:
    """All rows, a header included."""
    for number, line in enumerate(read_lines(path, skip_bad=config.bad_lines == "skip"), start=1):
        yield number, [] if is_blank(line) else (line or "").split("\t")


def describe(path: Path, config: DataConfig) -> str:
    """What was recognised, and what to do if it is wrong."""
    return layout_of(path, config).describe(path)


def count(path: Path, config: DataConfig) -> int:
    """The number of lines but the header."""
    return count_lines(path) - layout_of(path, config).has_header


TSV = FileFormat((".tsv",), read, count, describe)
