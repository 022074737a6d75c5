"""Tables in text: TSV and CSV, with a header that names the columns or without one, and JSON Lines.

TSV has lines of fields between tabs, in which quotes are text like any other. CSV has rows of fields between commas,
semicolons or tabs; a field in double quotes may span lines. JSON Lines has one object on each line; a `.json` may have
an array of objects instead.
"""

import contextlib
import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ...system.errors import DataError
from ..config import DataConfig
from ..reading import bad_quotes, count_lines, read_lines
from .columns import DELIMITERS, ROWS_LOOKED_AT, Layout, Row, is_blank, layout_of, record_pairs, table_pairs
from .format import Pair, file_format

_CHOICE = re.compile(r"sep=(.)")
"""A first line with which Excel says what stands between fields."""


def _read_tsv(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two fields of each line; a blank line is an empty pair."""
    layout = tsv_layout(path, config)
    needed, width = max(layout.src, layout.tgt) + 1, len(layout.names)

    def check(line: int, row: list[str]) -> None:
        if len(row) == 1:
            raise DataError(f"{path}:{line}: no tab; a .tsv line is source<TAB>target")
        if len(row) < needed:
            raise DataError(f"{path}:{line}: {len(row)} fields, but the text is in column {needed}")
        if layout.has_header and any(row[width:]):
            raise DataError(f"{path}:{line}: {len(row)} fields, but the first row has {width}; is a tab inside a text?")

    return table_pairs(tsv_rows(path, config), layout, check)


def tsv_layout(path: Path, config: DataConfig, *, fills: bool = False) -> Layout:
    """Looks at the first rows; see `columns.layout_of`."""
    rows = [row for _, row in islice(tsv_rows(path, config), ROWS_LOOKED_AT) if row]
    return layout_of(path, rows, "\t", config, fills=fills, first_two=True)


def tsv_rows(path: Path, config: DataConfig) -> Iterator[Row]:
    """All rows, a header included."""
    for number, line in enumerate(_read(path, config), start=1):
        yield number, [] if is_blank(line) else (line or "").split("\t")


def _count_tsv(path: Path, config: DataConfig) -> int:
    """The number of lines but the header."""
    return count_lines(path, config.encoding) - tsv_layout(path, config).has_header


TSV = file_format(_read_tsv, _count_tsv, describe=lambda path, config: tsv_layout(path, config).describe(path))


def _read_csv(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two columns of each row; a blank row is an empty pair."""
    layout = csv_layout(path, config)
    width = len(layout.names)

    def check(line: int, row: list[str]) -> None:
        if len(row) < width or any(row[width:]):
            raise DataError(
                f"{path}:{line}: {len(row)} fields, but the first row has {width}; a field that holds a"
                f" {layout.delimiter!r} must stand in double quotes"
            )

    return table_pairs(csv_rows(path, config, layout.delimiter), layout, check)


def csv_layout(path: Path, config: DataConfig, *, fills: bool = False) -> Layout:
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
    return layout_of(path, firsts[delimiter], delimiter, config, fills=fills)


def _chosen_delimiter(path: Path, config: DataConfig) -> str | None:
    return delimiter_said(next(_lines(path, config), ""))


def delimiter_said(first_line: str) -> str | None:
    """What a first line `sep=;` says; None if it is another line."""
    match = _CHOICE.fullmatch(first_line)
    return match[1] if match else None


def _first_rows(path: Path, config: DataConfig, delimiter: str) -> list[list[str]]:
    found: list[Row] = []
    with contextlib.suppress(DataError):  # a quote that is never closed: said when all of it is read
        found.extend(islice(csv_rows(path, config, delimiter), ROWS_LOOKED_AT))
    return [row for _, row in found if row]


def csv_rows(path: Path, config: DataConfig, delimiter: str) -> Iterator[Row]:
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
            raise bad_quotes(path, begun, error) from error


def _read(path: Path, config: DataConfig) -> Iterator[str | None]:
    return read_lines(path, skip_bad=config.bad_lines == "skip", encoding=config.encoding)


def _lines(path: Path, config: DataConfig) -> Iterator[str]:
    return ((line or "").replace("\r", " ") for line in _read(path, config))


# A quoted field may span lines, so nothing counts rows but reading them.
CSV = file_format(_read_csv, describe=lambda path, config: csv_layout(path, config).describe(path))


def _read_jsonl(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two fields of each object; a blank line is an empty pair."""
    lines = enumerate(_read(path, config), start=1)
    places = ((f"{path}:{number}", line or "") for number, line in lines)
    return record_pairs(((place, json_record(place, line)) for place, line in places), config)


def _read_json(path: Path, config: DataConfig) -> Iterator[Pair]:
    """The pairs of an array of objects, which is held in memory, or of objects, one on each line."""
    start = next((line for line in _read(path, config) if line and line.strip()), "")
    if not start.lstrip().startswith("["):
        yield from _read_jsonl(path, config)
        return
    try:
        found = json.loads("\n".join(line or "" for line in _read(path, config)))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON: {error}") from error
    records = ((f"{path}: element {number}", one) for number, one in enumerate(found, start=1))
    yield from record_pairs(((place, _checked_record(place, one)) for place, one in records), config)


def json_record(place: str, line: str) -> dict[str, Any] | None:
    """The object in a line; None in a blank one."""
    if not line.strip():
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not a JSON object: {error}; {_JSON_KINDS}") from error
    return _checked_record(place, found)


_JSON_KINDS = "pairs in JSON are objects, one on each line, or in a .json an array of them"


def _checked_record(place: str, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise DataError(f"{place}: not a JSON object; {_JSON_KINDS}")
    return found


JSONL = file_format(_read_jsonl, lambda path, config: count_lines(path, config.encoding))
JSON = file_format(_read_json)
