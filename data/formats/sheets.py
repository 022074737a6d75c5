"""Spreadsheets, `.xlsx` and `.ods`: the first sheet that has anything in it is a table."""

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ...system.errors import DataError, EnvironmentFault
from ..config import DataConfig
from ..reading import open_bytes
from .columns import ROWS_LOOKED_AT, Layout, Row, layout_of, table_pairs
from .format import Pair, file_format, first_line


def _sheet(path: Path) -> tuple[str, list[Row]]:
    """The name of a sheet, and its rows; a blank row has no fields."""
    try:
        from python_calamine import CalamineWorkbook
    except ImportError as error:
        extra = "needs an extra of tfm: pip install 'tfm[tables]'; or save the sheet as .csv"
        raise EnvironmentFault(f"to read {path} {extra}") from error
    with open_bytes(path, text=False) as file:
        try:
            book: Any = CalamineWorkbook.from_filelike(io.BytesIO(file.read()))
            sheets = map(book.get_sheet_by_name, book.sheet_names)
            rows_of = ((sheet.name, sheet.to_python(skip_empty_area=False)) for sheet in sheets)
            name, cells = next((found for found in rows_of if found[1]), ("", []))
        except Exception as error:  # calamine has a type of its own for each part of a file that may be damaged
            raise DataError(f"cannot read {path}: {first_line(error)}") from error
    rows = [[_text(cell) for cell in row] for row in cells]
    return name, [(number, row if any(row) else []) for number, row in enumerate(rows, start=1)]


def _text(cell: Any) -> str:
    """A cell as a text: a whole number has no decimal point."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _layout(path: Path, rows: list[Row], config: DataConfig) -> Layout:
    if not rows:
        raise DataError(f"{path} has no row")
    return layout_of(path, [row for _, row in islice((one for one in rows if one[1]), ROWS_LOOKED_AT)], "", config)


def _read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two columns of each row; a blank row is an empty pair."""
    rows = _sheet(path)[1]
    return table_pairs(rows, _layout(path, rows, config), lambda line, row: None)


def _describe(path: Path, config: DataConfig) -> str:
    name, rows = _sheet(path)
    return f"{path}: sheet {name!r}\n{_layout(path, rows, config).describe(path)}"


SHEET = file_format(_read, describe=_describe)
