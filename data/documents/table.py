"""Tables in TSV, CSV and JSON Lines: one column is translated into another, where that is empty or missing.

Rows that are not filled are written as they were read, to the byte. The formats have no mark for what nobody has
reviewed.
"""

import csv
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from ..config import DataConfig
from ..errors import DataError, UsageError
from ..formats.columns import USUAL_COLUMNS, inside_translation
from ..formats.csv import describe, layout_of, table_rows
from .document import Fields
from .raw import BYTE_ORDER_MARK, line_end, raw_lines


class TsvDocument:
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
        self._lines = raw_lines(path)
        rows = [line.removeprefix(BYTE_ORDER_MARK).rstrip("\r\n").split("\t") for line in self._lines]
        self.fields = Fields()
        for place, row in enumerate(rows):
            if _is_open(row, src, tgt):
                self.fields.add(row[src], lambda text, place=place, row=row: self._put(place, row, tgt, text))
        self.remark = _remark(path, self.fields, rows, src)

    def _put(self, place: int, row: list[str], tgt: int, text: str) -> bool:
        _set(row, tgt, text)
        mark = BYTE_ORDER_MARK if self._lines[place].startswith(BYTE_ORDER_MARK) else ""
        self._lines[place] = mark + "\t".join(row) + line_end(self._lines[place])
        return True

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file in UTF-8."""
        stream.writelines(line.encode() for line in self._lines)


class CsvDocument:
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
        lines, numbered = raw_lines(path), list(table_rows(path, config, layout.delimiter))
        begins = [0, *(line - 1 for line, _ in numbered[1:]), len(lines)]
        self._raw = ["".join(lines[begin:end]) for begin, end in pairwise(begins)]
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
        self.fields = Fields()
        for place, row in enumerate(rows[first:], start=first):
            if _is_open(row, src, tgt):
                self.fields.add(row[src], lambda text, place=place, row=row: self._put(place, row, tgt, text))
        self.remark = f"{describe(path, config)}\n{_remark(path, self.fields, rows[first:], src)}"

    def _put(self, place: int, row: list[str], tgt: int, text: str) -> bool:
        _set(row, tgt, text)
        raw, line = self._raw[place], io.StringIO()
        csv.writer(line, delimiter=self._delimiter, lineterminator="\r\n").writerow(row)
        mark = BYTE_ORDER_MARK if raw.startswith(BYTE_ORDER_MARK) else ""
        self._raw[place] = mark + line.getvalue().removesuffix("\r\n") + line_end(raw)
        return True

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file in UTF-8."""
        stream.writelines(row.encode() for row in self._raw)


class JsonlDocument:
    """Objects, one on each line.

    Args:
        path: The file.
        config: Names the fields, else `src` and `tgt`, or `source` and `target`.

    Raises:
        DataError: It cannot be read, or a line is no object with the source.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        self._lines = raw_lines(path)
        self.fields = Fields()
        rows = [_object(path, number, line) for number, line in enumerate(self._lines, start=1)]
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
        self._lines[place] = written + line_end(self._lines[place])
        return True

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file in UTF-8."""
        stream.writelines(line.encode() for line in self._lines)


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
