"""From rows with named columns to pairs: which columns hold the two sides, and what is in them."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..config import DataConfig
from ..errors import DataError
from .format import Pair

Columns = tuple[str, str]
"""The names of the source's column and of the target's."""
USUAL_COLUMNS = ("src", "tgt", "source", "target")
"""Names that are found without being asked for: two pairs of them."""
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


def pick_columns(place: str, columns: list[str], config: DataConfig) -> Columns:
    """The columns that are named; where none are, or languages, `src`/`tgt`, `source`/`target`, or the only two.

    Languages are named for a memory in TMX. A table beside it need not call its columns so: the source comes first.

    Args:
        place: Where they stand, for the message.
        columns: Those that are there.
        config: Names those that are wanted.

    Raises:
        DataError: They are not there.
    """
    wanted = (config.src_column, config.tgt_column)
    default = wanted == ("src", "tgt")
    if set(wanted) <= set(columns):
        return wanted
    if default or all(map(_LANGUAGE.fullmatch, wanted)):
        for usual in (USUAL_COLUMNS[:2], USUAL_COLUMNS[2:]):
            if set(usual) <= set(columns):
                return usual[0], usual[1]
        if columns == ["1", "2"] or (default and len(columns) == 2):
            return columns[0], columns[1]
    raise DataError(
        f"{place}: no columns {wanted[0]!r} and {wanted[1]!r} among {', '.join(map(repr, columns)) or 'none'};"
        " name both: --src-column .. --tgt-column .."
    )


def inside_translation(row: dict[str, Any]) -> dict[str, Any]:
    """Hugging Face's translation data sets have the two sides inside a `translation` field."""
    inner = row.get("translation")
    return inner if isinstance(inner, dict) else row


def row_pair(place: str, row: dict[str, Any], columns: Columns) -> Pair:
    """Takes the two sides out of a row; the columns were picked at the first one.

    Raises:
        DataError: A column is missing, or holds no text.
    """
    if not set(columns) <= set(row):
        raise DataError(f"{place}: no {' and '.join(columns)}, which the rows before have")
    src, tgt = (row[column] for column in columns)
    if src is None or tgt is None:
        return "", ""
    if not isinstance(src, str) or not isinstance(tgt, str):
        raise DataError(f"{place}: source and target must be strings")
    return src, tgt


def row_pairs(place: str, rows: Iterable[dict[str, Any]], config: DataConfig) -> Iterator[Pair]:
    """The pairs of a whole table.

    Raises:
        DataError: The columns are not there, or hold no text.
    """
    columns: Columns | None = None
    for row in rows:
        inner = inside_translation(row)
        columns = columns or pick_columns(place, list(inner), config)
        yield row_pair(place, inner, columns)
