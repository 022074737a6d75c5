"""Tables in TSV, CSV and JSON Lines: one column is translated into another, where that is empty or missing.

The formats have no mark for what nobody has reviewed.
"""

import csv
import io
import json
from pathlib import Path
from typing import IO, Any

from ..config import DataConfig
from ..errors import DataError, UsageError
from ..formats.columns import USUAL_COLUMNS, inside_translation
from ..formats.csv import layout_of, table_rows
from ..reading import read_lines
from .document import Fields


class TsvDocument:
    """Lines of fields between tabs, without a header; columns are numbered from 1, source and target are 1 and 2.

    Args:
        path: The file.
        config: `src_column` and `tgt_column` may be other numbers.

    Raises:
        DataError: It cannot be read.
        UsageError: A column is no number.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        src, tgt = _numbers(path, config)
        self._rows = [(line or "").split("\t") for line in read_lines(path)]
        self.fields = _fields(path, self._rows, src, tgt)
        self.remark = _remark(path, self.fields, self._rows)

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file in UTF-8."""
        stream.writelines(f"{chr(9).join(row)}\n".encode() for row in self._rows)


class CsvDocument:
    """Rows of a `.csv`; a target column that its header does not name is added to it.

    Args:
        path: The file.
        config: Names the columns, else `src` and `tgt`, or `source` and `target`, or the first two.

    Raises:
        DataError: It cannot be read, or has no column for the source.
        UsageError: A column of a file without a header is no number.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        layout = layout_of(path, config)
        self._delimiter = layout.delimiter
        self._rows = [row for _, row in table_rows(path, config, layout.delimiter)]
        if layout.has_header:
            names = [*layout.columns]
            src, tgt = _names(path, names, config)
            if tgt not in names:
                names.append(tgt)
                header = next(row for row in self._rows if row)
                header.append(tgt)
            places = names.index(src), names.index(tgt)
            first = next(i for i, row in enumerate(self._rows) if row) + 1
        else:
            places, first = _numbers(path, config), 0
        self.fields = _fields(path, self._rows[first:], *places)
        self.remark = _remark(path, self.fields, self._rows[first:])

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file in UTF-8."""
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        csv.writer(text, delimiter=self._delimiter, lineterminator="\n").writerows(self._rows)
        text.detach()


class JsonlDocument:
    """Objects, one on each line.

    Args:
        path: The file.
        config: Names the fields, else `src` and `tgt`, or `source` and `target`.

    Raises:
        DataError: It cannot be read, or a line is no object with the source.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        self._rows: list[Any] = []
        self.fields = Fields()
        for number, line in enumerate(read_lines(path), start=1):
            self._rows.append(_object(path, number, line))
            if self._rows[-1] is None:
                continue
            row = inside_translation(self._rows[-1])
            src, tgt = _names(f"{path}:{number}", list(row), config)
            if isinstance(row[src], str) and row[src].strip() and not str(row.get(tgt) or "").strip():
                self.fields.add(row[src], lambda text, row=row, tgt=tgt: _put(row, tgt, text))
        self.remark = _remark(path, self.fields, self._rows)

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file in UTF-8."""
        lines = ("" if row is None else json.dumps(row, ensure_ascii=False) for row in self._rows)
        stream.writelines(f"{line}\n".encode() for line in lines)


def _object(path: Path, number: int, line: str | None) -> dict[str, Any] | None:
    if not line or not line.strip():
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}:{number}: not a JSON object: {error}") from error
    if not isinstance(row, dict):
        raise DataError(f"{path}:{number}: not a JSON object")
    return row


def _fields(path: Path, rows: list[list[str]], src: int, tgt: int) -> Fields:
    fields = Fields()
    for row in rows:
        if len(row) <= src or not row[src].strip() or (len(row) > tgt and row[tgt].strip()):
            continue
        fields.add(row[src], lambda text, row=row: _put(row, tgt, text))
    return fields


def _put(row: Any, place: Any, text: str) -> bool:
    if isinstance(row, list):
        row.extend([""] * (place + 1 - len(row)))
    row[place] = text
    return True


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
    if wanted == ("src", "tgt") and "src" not in names and USUAL_COLUMNS[2] in names:
        wanted = USUAL_COLUMNS[2], USUAL_COLUMNS[3]
    if wanted[0] not in names:
        raise DataError(
            f"{place}: no column {wanted[0]!r} among {', '.join(map(repr, names)) or 'none'}; name it: --src-column .."
        )
    return wanted


def _remark(path: Path, fields: Fields, rows: list[Any]) -> str:
    return f"{path}: {len(fields):,} of {sum(map(bool, rows)):,} rows have no translation"
