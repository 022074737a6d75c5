"""Tables in TSV, CSV and JSON Lines: one column is translated into another, where that is empty or missing.

`formats.columns` chooses the two columns, as for a table that is read; that of the target may be new. Of a row that is
filled the target's field alone is written anew, all else as it was read, to the byte. The formats have no mark for a
translation that nobody has reviewed.
"""

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from ...data.config import DataConfig
from ...data.formats.columns import (
    ROWS_LOOKED_AT,
    FieldLayout,
    Layout,
    Row,
    field_layout,
    inside_translation,
    is_blank,
    new_name,
)
from ...data.formats.tables import csv_layout, csv_rows, json_record, tsv_layout, tsv_rows
from ...system.errors import DataError
from .document import BYTE_ORDER_MARK, Fields, RawDocument, line_end


class _RowsDocument(RawDocument):
    """Rows of fields.

    Args:
        numbered: The rows, which may span lines.
        layout: The places of the two columns. That of the target may be behind the last, and is then named by `config`.

    Raises:
        DataError: The file cannot be read, or no row has the source.
    """

    def __init__(self, path: Path, numbered: Iterable[Row], layout: Layout, config: DataConfig) -> None:
        super().__init__(path, config)
        self._tgt, self._delimiter = layout.tgt, layout.delimiter
        begins, rows = [], []
        for line, row in numbered:
            begins.append(line - 1)
            rows.append(row)
        begins[:1] = [0] if begins else []
        self._pieces = ["".join(self._pieces[begin:end]) for begin, end in pairwise([*begins, len(self._pieces)])]
        filled = [place for place, row in enumerate(rows) if row]
        header = filled.pop(0) if layout.has_header else None
        with_source = [place for place in filled if not is_blank(_cell(rows[place], layout.src))]
        if filled and not with_source:
            raise DataError(
                f"{path}: no row has a text in column {layout.src + 1}; name the columns: --src-column, --tgt-column"
            )
        for place in with_source:
            row = rows[place]
            if is_blank(_cell(row, layout.tgt)):
                self.fields.add(row[layout.src], lambda text, place=place: self._put(place, text))
        if header is not None and layout.tgt == len(layout.names) and len(self.fields):
            self._put(header, new_name(layout.names[layout.src], config))
        self.remark = f"{layout.describe(path)}\n{_counted(path, self.fields, len(filled))}"

    def _put(self, place: int, text: str) -> bool:
        piece = self._pieces[place].removeprefix(BYTE_ORDER_MARK)
        fields = self._split(piece.removesuffix(line_end(piece)))
        fields += [""] * (self._tgt + 1 - len(fields))
        fields[self._tgt] = self._written(text.replace("\n", line_end(piece) or "\n"), fields)
        return self._replace(place, place + 1, self._delimiter.join(fields))

    def _split(self, line: str) -> list[str]:
        """The fields of a row as they are written."""
        return line.split(self._delimiter)

    def _written(self, text: str, fields: list[str]) -> str:
        """A text as a field beside others that are written so."""
        del fields
        return text


class TsvDocument(_RowsDocument):
    """Lines of fields between tabs."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        super().__init__(path, tsv_rows(path, config), tsv_layout(path, config, fills=True), config)


class CsvDocument(_RowsDocument):
    """Rows of a `.csv`."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        layout = csv_layout(path, config, fills=True)
        other = f"[^{re.escape(layout.delimiter)}]*"
        self._field = re.compile(rf'\s*"(?:[^"]|"")*"{other}|{other}')
        super().__init__(path, csv_rows(path, config, layout.delimiter), layout, config)

    def _split(self, line: str) -> list[str]:
        fields, place = list[str](), 0
        while place <= len(line):
            found = self._field.match(line, place)
            assert found is not None  # a field may be empty
            fields.append(found[0])
            place = found.end() + len(self._delimiter)
        return fields

    def _written(self, text: str, fields: list[str]) -> str:
        """Between quotes where it must be, where the empty field was, and where all others are."""
        others = [field.strip() for place, field in enumerate(fields) if place != self._tgt and field.strip()]
        old = fields[self._tgt].strip()
        quoted = old.startswith('"') if old else bool(others) and all(field.startswith('"') for field in others)
        if quoted or any(sign in text for sign in (self._delimiter, '"', "\r", "\n")) or text != text.strip():
            return '"' + text.replace('"', '""') + '"'
        return text


class JsonlDocument(RawDocument):
    """Objects, one on each line."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        super().__init__(path, config)
        places = [f"{path}:{number}" for number in range(1, len(self._pieces) + 1)]
        texts = [piece.removeprefix(BYTE_ORDER_MARK) for piece in self._pieces]
        rows = [json_record(place, text) for place, text in zip(places, texts, strict=True)]
        inners = [row and inside_translation(row) for row in rows]
        layout: FieldLayout | None = None
        for number, (row, inner) in enumerate(zip(rows, inners, strict=True)):
            if inner is None:
                continue
            layout = layout or field_layout(places[number], [*inners[:ROWS_LOOKED_AT], inner], config, fills=True)
            src, tgt = layout.src, layout.tgt
            layout.check(places[number], inner, src)
            text = inner.get(src)
            if isinstance(text, str) and not is_blank(text) and is_blank(str(inner.get(tgt) or "")):
                path_to = [tgt] if inner is row else ["translation", tgt]
                self.fields.add(text, lambda text, put=(number, path_to): self._put(*put, text))
        taken = "" if layout is None else f"{path}: source in {layout.src!r}, target in {layout.tgt!r}\n"
        self.remark = taken + _counted(path, self.fields, sum(row is not None for row in rows))

    def _put(self, place: int, keys: list[str], text: str) -> bool:
        piece = self._pieces[place].removeprefix(BYTE_ORDER_MARK)
        line = piece.removesuffix(line_end(piece))
        ascii_only = "\\u" in line and line.isascii()
        return self._replace(place, place + 1, with_value(line, keys, json.dumps(text, ensure_ascii=ascii_only)))


def with_value(line: str, keys: list[str], value: str) -> str:
    """An object as it is written, with a value, written so too, below keys one inside the other; the last may be new.

    Where a key comes twice, the last one counts, as it does when JSON is read.
    """
    decode, white = json.JSONDecoder(strict=False).raw_decode, re.compile(r"\s*")

    def skip(place: int) -> int:
        found = white.match(line, place)
        assert found is not None
        return found.end()

    begin, end = skip(0), len(line)
    for depth, key in enumerate(keys):
        members: dict[str, tuple[int, int]] = {}
        colon, comma, place = ": ", ", ", begin + 1
        while line[place := skip(place)] != "}":
            start = place
            if members:  # behind a comma
                start = place = skip(place + 1)
            name, after = decode(line, place)
            value_begin = skip(skip(after) + 1)
            place = decode(line, value_begin)[1]
            if members:
                last = max(end for _, end in members.values())
                comma = line[last:start]
            colon = line[after:value_begin]
            members[name] = value_begin, place
        if key in members:
            begin, end = members[key]
            continue
        assert depth == len(keys) - 1  # it was found when the object was read
        last = max((end for _, end in members.values()), default=begin + 1)
        added = f"{json.dumps(key, ensure_ascii=line.isascii())}{colon}{value}"
        return line[:last] + (comma if members else "") + added + line[last:]
    return line[:begin] + value + line[end:]


def _cell(row: list[str], place: int) -> str:
    return row[place] if place < len(row) else ""


def _counted(path: Path, fields: Fields, rows: int) -> str:
    return f"{path}: {len(fields):,} of {rows:,} rows have no translation"
