"""Tables in TSV, CSV and JSON Lines: one column is translated into another, where that is empty or missing.

Rows that are not filled are written as they were read, to the byte. The formats have no mark for what nobody has
reviewed.
"""

import csv
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..config import DataConfig
from ..errors import DataError, UsageError
from ..formats.columns import USUAL_COLUMNS, inside_translation
from ..formats.csv import describe_layout, layout_of, table_rows
from .document import Fields
from .raw import BYTE_ORDER_MARK, RawDocument


class TsvDocument(RawDocument):
    """Lines of fields between tabs, without a header; columns are numbered from 1, source and target are 1 and 2.

    Args:
        path: The file.
        config: `src_column` and `tgt_column` may be other numbers.

    Raises:
        DataError: It cannot be read, or no row has the source.
        UsageError: A column is no number.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        src, tgt = _numbers(path, config)
        super().__init__(path)
        rows = [line.removeprefix(BYTE_ORDER_MARK).rstrip("\r\n").split("\t") for line in self._pieces]
        for place, row in enumerate(rows):
            if _is_open(row, src, tgt):
                self.fields.add(row[src], lambda text, place=place, row=row: self._put(place, row, tgt, text))
        self.remark = _remark(path, self.fields, rows, src)

    def _put(self, place: int, row: list[str], tgt: int, text: str) -> bool:
        _set(row, tgt, text)
        self._replace(place, "\t".join(row))
        return True


class CsvDocument(RawDocument):
    """Rows of a `.csv`; a target column that its header does not name is added to it.

    Args:
        path: The file.
        config: Names the columns, else `src` and `tgt`, or `source` and `target`, or the only two.

    Raises:
        DataError: It cannot be read, or has no column for the source.
        UsageError: A column of a file without a header is no number.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        layout = layout_of(path, config)
        self._delimiter = layout.delimiter
        super().__init__(path)
        numbered = list(table_rows(path, config, layout.delimiter))
        begins = [0, *(line - 1 for line, _ in numbered[1:]), len(self._pieces)]
        self._pieces = ["".join(self._pieces[begin:end]) for begin, end in pairwise(begins)]  # a row may span lines
        rows = [row for _, row in numbered]
        first = 0
        if layout.has_header:
            names, (src_name, tgt_name) = list(layout.columns), _names(path, layout.columns, config)
            first = next(place for place, row in enumerate(rows) if row) + 1
            if tgt_name not in names:
                names.append(tgt_name)
                self._put(first - 1, rows[first - 1], len(names) - 1, tgt_name)
            src, tgt = names.index(src_name), names.index(tgt_name)
        else:
            src, tgt = _numbers(path, config)
        for place, row in enumerate(rows[first:], start=first):
            if _is_open(row, src, tgt):
                self.fields.add(row[src], lambda text, place=place, row=row: self._put(place, row, tgt, text))
        self.remark = f"{describe_layout(path, layout)}\n{_remark(path, self.fields, rows[first:], src)}"

    def _put(self, place: int, row: list[str], tgt: int, text: str) -> bool:
        _set(row, tgt, text)
        line = io.StringIO()
        csv.writer(line, delimiter=self._delimiter, lineterminator="\r\n").writerow(row)
        self._replace(place, line.getvalue().removesuffix("\r\n"))
        return True


class JsonlDocument(RawDocument):
    """Objects, one on each line.

    Args:
        path: The file.
        config: Names the fields, else `src` and `tgt`, or `source` and `target`.

    Raises:
        DataError: It cannot be read, or a line is no object with the source.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        super().__init__(path)
        rows = [_object(path, number, line) for number, line in enumerate(self._pieces, start=1)]
        for place, row in enumerate(rows):
            if row is None:
                continue
            inner = inside_translation(row)
            src, tgt = _names(f"{path}:{place + 1}", list(inner), config)
            if isinstance(inner[src], str) and inner[src].strip() and not str(inner.get(tgt) or "").strip():
                put = (place, row, inner, tgt)
                self.fields.add(inner[src], lambda text, put=put: self._put(*put, text))
        self.remark = _counted(path, self.fields, sum(row is not None for row in rows))

    def _put(self, place: int, row: dict[str, Any], inner: dict[str, Any], tgt: str, text: str) -> bool:
        inner[tgt] = text
        written = json.dumps(row, ensure_ascii=False)
        if any("\ud800" <= character <= "\udfff" for character in written):  # half a character, which UTF-8 has not
            written = json.dumps(row)
        self._replace(place, written)
        return True


def _object(path: Path, number: int, line: str) -> dict[str, Any] | None:
    if not line.strip():
        return None
    try:
        row = json.loads(line.removeprefix(BYTE_ORDER_MARK))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:{number}: not a JSON object: {error}") from error
    if not isinstance(row, dict):
        raise DataError(f"{path}:{number}: not a JSON object")
    return row


def _is_open(row: list[str], src: int, tgt: int) -> bool:
    """Whether a row has a source and no target."""
    return len(row) > src and bool(row[src].strip()) and not (len(row) > tgt and row[tgt].strip())


def _set(row: list[str], place: int, text: str) -> None:
    row.extend([""] * (place + 1 - len(row)))
    row[place] = text


def _numbers(path: Path, config: DataConfig) -> tuple[int, int]:
    """Where two columns without names are."""
    wanted = config.src_column, config.tgt_column
    if wanted == ("src", "tgt"):
        return 0, 1
    if not all(one.isdecimal() and int(one) > 0 for one in wanted) or wanted[0] == wanted[1]:
        raise UsageError(f"{path} has no header: number its columns from 1, such as --src-column 1 --tgt-column 2")
    return int(wanted[0]) - 1, int(wanted[1]) - 1


def _names(place: object, names: list[str], config: DataConfig) -> tuple[str, str]:
    """The names of the two columns; that of the target may be new."""
    wanted = config.src_column, config.tgt_column
    if wanted == ("src", "tgt") and "src" not in names:
        if USUAL_COLUMNS[2] in names:
            wanted = USUAL_COLUMNS[2], USUAL_COLUMNS[3]
        elif len(names) == 2:
            wanted = names[0], names[1]
    if wanted[0] not in names:
        raise DataError(
            f"{place}: no column {wanted[0]!r} among {', '.join(map(repr, names)) or 'none'}; name it: --src-column .."
        )
    if wanted[0] == wanted[1]:
        raise UsageError(f"{place}: source and target are the same column, {wanted[0]!r}")
    return wanted


def _remark(path: Path, fields: Fields, rows: list[list[str]], src: int) -> str:
    if not any(len(row) > src and row[src].strip() for row in rows):
        raise DataError(f"{path}: no row has a text in column {src + 1}; name the columns: --src-column, --tgt-column")
    return _counted(path, fields, sum(any(row) for row in rows))


def _counted(path: Path, fields: Fields, rows: int) -> str:
    return f"{path}: {len(fields):,} of {rows:,} rows have no translation"
