"""Tables in TSV, CSV and JSON Lines: one column is translated into another, where that is empty or missing.

`formats.columns` chooses the two columns, as for a table that is read; that of the target may be new. Rows that are not
filled are written as they were read, to the byte. The formats have no mark for a translation that nobody has reviewed.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...data.config import DataConfig
from ...data.formats.columns import Layout, Row, inside_translation, is_blank, new_name, pick_columns
from ...data.formats.tables import csv_layout, csv_rows, json_record, tsv_layout, tsv_rows
from ...system.errors import DataError
from .document import BYTE_ORDER_MARK, Fields, RawDocument


class _RowsDocument(RawDocument):
    """Rows of fields.

    Args:
        numbered: The rows, which may span lines.
        layout: The places of the two columns. That of the target may be behind the last, and is then named by `config`.
        written: Makes a line, without its end, of a row.

    Raises:
        DataError: The file cannot be read, or no row has the source.
    """

    def __init__(
        self,
        path: Path,
        numbered: Iterable[Row],
        layout: Layout,
        config: DataConfig,
        written: Callable[[list[str]], str],
    ) -> None:
        super().__init__(path)
        self._tgt, self._written = layout.tgt, written
        begins, rows = [], []
        for line, row in numbered:
            begins.append(line - 1)
            rows.append(row)
        begins[:1] = [0] if begins else []
        self._pieces = ["".join(self._pieces[begin:end]) for begin, end in pairwise([*begins, len(self._pieces)])]
        filled = [place for place, row in enumerate(rows) if row]
        if layout.has_header:
            header = filled.pop(0)
            if layout.tgt == len(layout.names):
                self._put(header, rows[header], new_name(layout.names[layout.src], config))
        with_source = [place for place in filled if not is_blank(_cell(rows[place], layout.src))]
        if not with_source:
            raise DataError(
                f"{path}: no row has a text in column {layout.src + 1}; name the columns: --src-column, --tgt-column"
            )
        for place in with_source:
            row = rows[place]
            if is_blank(_cell(row, layout.tgt)):
                self.fields.add(row[layout.src], lambda text, place=place, row=row: self._put(place, row, text))
        self.remark = f"{layout.describe(path)}\n{_counted(path, self.fields, len(filled))}"

    def _put(self, place: int, row: list[str], text: str) -> bool:
        row.extend([""] * (self._tgt + 1 - len(row)))
        row[self._tgt] = text
        self._replace(place, self._written(row))
        return True


class TsvDocument(_RowsDocument):
    """Lines of fields between tabs."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        layout = tsv_layout(path, config, fills=True)
        super().__init__(path, tsv_rows(path, config), layout, config, "\t".join)


class CsvDocument(_RowsDocument):
    """Rows of a `.csv`."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        layout = csv_layout(path, config, fills=True)
        rows = csv_rows(path, config, layout.delimiter)
        self._delimiter = layout.delimiter
        super().__init__(path, rows, layout, config, self._line)

    def _line(self, row: list[str]) -> str:
        line = io.StringIO()
        csv.writer(line, delimiter=self._delimiter, lineterminator="\r\n").writerow(row)
        return line.getvalue().removesuffix("\r\n")


class JsonlDocument(RawDocument):
    """Objects, one on each line."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        super().__init__(path)
        places = [f"{path}:{number}" for number in range(1, len(self._pieces) + 1)]
        texts = [piece.removeprefix(BYTE_ORDER_MARK) for piece in self._pieces]
        rows = [json_record(place, text) for place, text in zip(places, texts, strict=True)]
        names: tuple[str, str] | None = None
        for number, row in enumerate(rows):
            if row is None:
                continue
            inner = inside_translation(row)
            names = names or _names(places[number], list(inner), config)
            src, tgt = names
            if src not in inner:
                raise DataError(f"{places[number]}: no {src}, which the rows before have")
            if isinstance(inner[src], str) and not is_blank(inner[src]) and is_blank(str(inner.get(tgt) or "")):
                put = (number, row, inner, tgt)
                self.fields.add(inner[src], lambda text, put=put: self._put(*put, text))
        taken = "" if names is None else f"{path}: source in {names[0]!r}, target in {names[1]!r}\n"
        self.remark = taken + _counted(path, self.fields, sum(row is not None for row in rows))

    def _put(self, place: int, row: dict[str, Any], inner: dict[str, Any], tgt: str, text: str) -> bool:
        inner[tgt] = text
        written = json.dumps(row, ensure_ascii=False)
        if any("\ud800" <= character <= "\udfff" for character in written):  # half a character, which UTF-8 has not
            written = json.dumps(row)
        self._replace(place, written)
        return True


def _names(place: str, names: list[str], config: DataConfig) -> tuple[str, str]:
    """The fields of the two sides; that of the target may be new."""
    src, tgt = pick_columns(place, names, config, fills=True)
    return names[src], names[tgt] if tgt < len(names) else new_name(names[src], config)


def _cell(row: list[str], place: int) -> str:
    return row[place] if place < len(row) else ""


def _counted(path: Path, fields: Fields, rows: int) -> str:
    return f"{path}: {len(fields):,} of {rows:,} rows have no translation"
