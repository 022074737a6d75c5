"""Rows of fields between commas, semicolons or tabs, with a header that names the columns or without one."""

import contextlib
import csv
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ..config import DataConfig
from ..errors import DataError
from ..reading import read_lines
from .columns import USUAL_COLUMNS, pick_columns
from .format import FileFormat, Pair

DELIMITERS = {"\t": "tabs", ";": "semicolons", ",": "commas"}
"""Those that are looked for, and what they are called. Text has commas more often than semicolons, and hardly tabs."""
ROWS_LOOKED_AT = 50
Row = tuple[int, list[str]]
"""The number of the line in which a row begins, and its fields."""
_CHOICE = re.compile(r"sep=(.)")
"""A first line with which Excel says what stands between fields."""
_LONGER_NAME = re.compile(r"(source|target)[ _-](text|segment|sentence|string)", re.IGNORECASE)
_WORD = re.compile(r"\S{1,20}")


@dataclass(frozen=True)
class Layout:
    """How a table is written.

    Attributes:
        delimiter: Between fields.
        columns: Their names; without a header, their numbers from 1.
        has_header: Whether the first row has the names.
    """

    delimiter: str
    columns: list[str]
    has_header: bool


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two columns of each row; a blank row is an empty pair."""
    layout = layout_of(path, config)
    src, tgt = _places(path, layout, config)
    header_is_next = layout.has_header
    for line, row in table_rows(path, config, layout.delimiter):
        if not row:
            yield "", ""
        elif header_is_next:
            header_is_next = False
        else:
            _check_width(path, line, row, layout)
            yield row[src], row[tgt]


def _check_width(path: Path, line: int, row: list[str], layout: Layout) -> None:
    width = len(layout.columns)
    if len(row) < width or any(row[width:]):
        raise DataError(
            f"{path}:{line}: {len(row)} fields, but the first row has {width}; a field that holds a"
            f" {layout.delimiter!r} must stand in double quotes"
        )


def _places(path: Path, layout: Layout, config: DataConfig) -> tuple[int, int]:
    """Where the two columns are; a number counts them from 1, whatever the header calls them."""
    wanted = config.src_column, config.tgt_column
    if all(one.isdecimal() for one in wanted) and not set(wanted) <= set(layout.columns):
        names = [str(number + 1) for number in range(len(layout.columns))]
    else:
        names = layout.columns
    src, tgt = pick_columns(path.name, names, config)
    return names.index(src), names.index(tgt)


def describe(path: Path, config: DataConfig) -> str:
    """What was recognised, and what to do if it is wrong."""
    return describe_layout(path, layout_of(path, config))


def describe_layout(path: Path, layout: Layout) -> str:
    """The same, of a layout that is known."""
    fields = f"{path}: fields between {DELIMITERS.get(layout.delimiter, repr(layout.delimiter))}"
    if layout.has_header:
        return f"{fields}, the first row taken for a header: {', '.join(map(repr, layout.columns))}"
    return f"{fields}, no header: the first row taken for a pair (if it is none, name two of its columns: --src-column)"


def layout_of(path: Path, config: DataConfig) -> Layout:
    """Looks at the first rows.

    The delimiter is the one with which most rows have the same number of fields. The first row is a header if it holds
    a name that is wanted, or if it has one word in each field and most fields below it have more.

    Raises:
        DataError: There is no row, or nothing that separates fields.
    """
    chosen = _chosen_delimiter(path, config)
    firsts = {delimiter: _first_rows(path, config, delimiter) for delimiter in ([chosen] if chosen else DELIMITERS)}
    if not any(firsts.values()):
        raise DataError(f"{path} has no row")

    def regular(delimiter: str) -> tuple[int, bool]:
        (width, count), *_ = Counter(len(row) for row in firsts[delimiter]).most_common(1) or [(0, 0)]
        return (count if width > 1 else 0), width == 2

    delimiter = max(firsts, key=regular)
    rows = firsts[delimiter]
    if not regular(delimiter)[0]:
        raise DataError(f"{path}: one field in a row; a .csv has commas, semicolons or tabs between fields")
    first = [field.strip() for field in rows[0]]
    known = {name.casefold(): name for name in (config.src_column, config.tgt_column, *USUAL_COLUMNS)}
    plain = [_LONGER_NAME.sub(r"\1", name).casefold() for name in first]
    if any(name in known for name in plain) or (_is_words(first) and not _has_words(rows[1:])):
        names = [known.get(short, name) for short, name in zip(plain, first, strict=True)]
        return Layout(delimiter, names, has_header=True)
    return Layout(delimiter, [str(number + 1) for number in range(len(first))], has_header=False)


def _is_words(row: list[str]) -> bool:
    return all(_WORD.fullmatch(field) for field in row)


def _has_words(rows: list[list[str]]) -> bool:
    """Whether most fields of some column are words, as in a dictionary, or sentences in a script without spaces."""
    columns = list(zip(*rows, strict=False))
    return not columns or any(2 * sum(map(bool, map(_WORD.fullmatch, column))) >= len(column) for column in columns)


def _chosen_delimiter(path: Path, config: DataConfig) -> str | None:
    match = _CHOICE.fullmatch(next(_lines(path, config), ""))
    return match[1] if match else None


def _first_rows(path: Path, config: DataConfig, delimiter: str) -> list[list[str]]:
    found: list[Row] = []
    with contextlib.suppress(DataError):  # a quote that is never closed: said when all of it is read
        found.extend(islice(table_rows(path, config, delimiter), ROWS_LOOKED_AT))
    return [row for _, row in found if row]


def table_rows(path: Path, config: DataConfig, delimiter: str) -> Iterator[Row]:
    """All rows, a header included.

    Raises:
        DataError: The file cannot be read, or a quote is not closed.
    """
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
