"""What the columns of a table are: whether its first row names them, and which two hold source and target.

The rules are the same for every kind of table, and for a table that is read as for one that is filled in:

* A column is asked for by its name or by its number, counted from 1. Without being asked for, `src` and `tgt` are
  taken, then `source` and `target`, then the only two. Where that is not clear, nothing is taken, and the names are
  said.
* Names are compared as text is: cleaned, and in capitals or not.
* In a file of rows, the first one is a header if it has a name that is asked for, or `src`, `tgt`, `source` or
  `target`, or two languages; or if each of its fields is one word, and in no column below it most are.
* A cell without text is blank, whatever invisible characters are in it, and so is a field that an object leaves out.
"""

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

import regex

from ...system.errors import DataError, UsageError
from ...system.reporter import shortened
from ..cleaning import clean
from ..config import DataConfig
from ..scripts import SIGN
from .format import Pair

Columns = tuple[int, int]
"""Where the source's column is and where the target's, counted from 0."""
Row = tuple[int, list[str]]
"""The number of the line in which a row begins, and its fields: none in a blank row."""
ROWS_LOOKED_AT = 50
"""The first rows show what the columns are: at most this many are looked at."""
DELIMITERS = {"\t": "tabs", ";": "semicolons", ",": "commas"}
"""What stands between fields, and what it is called. Text has commas more often than semicolons, and hardly tabs."""
_USUAL_COLUMNS = (("src", "tgt"), ("source", "target"), ("src", "trg"))
_USUAL_NAMES = {name for pair in _USUAL_COLUMNS for name in pair}
_NO_TEXT = {"id", "key", "index", "line", "nr"}
"""Where a file has two columns and one has such a name, they are no pair."""
_LONGER_NAME = re.compile(r"(source|target)[ _-](text|segment|sentence|string)")
_WORD = regex.compile(rf"(?=.*\p{{L}})[^\s…{SIGN}]{{1,20}}")
_LANGUAGE = re.compile(r"([A-Za-z]{2,3})([-_][A-Za-z0-9]{2,8})*")
_LANGUAGES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee "
    "el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is "
    "it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms "
    "mt my na nb nd ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk "
    "sl sm sn so sq sr ss st su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi "
    "yo za zh zu"
)
"""ISO 639-1. Some are words, too, but a word of two letters rarely has another of them beside it."""
_SHOWN = 40
"""A message shows this many characters of a name."""


@dataclass(frozen=True)
class Layout:
    """How a file of rows is written.

    Attributes:
        delimiter: What stands between fields; empty if they are cells.
        has_header: Whether these are the names of the columns, and no pair.
        src, tgt: Where the columns of the two sides are, from 0. That of a target may be behind the last.
    """

    delimiter: str
    names: list[str]
    has_header: bool
    src: int
    tgt: int

    def describe(self, path: Path) -> str:
        """What was recognised, and what to do if it is wrong."""
        between = f"fields between {DELIMITERS.get(self.delimiter, repr(self.delimiter))}, " if self.delimiter else ""
        fields = f"{path}: {between}"
        taken = f"source in column {self.src + 1}, target in column {self.tgt + 1}"
        if self.has_header:
            return f"{fields}the first row taken for a header: {_listed(self.names)}; {taken}"
        wrong = "if it is none, name two of its columns: --src-column"
        return f"{fields}no header: the first row taken for a pair ({wrong}); {taken}"


def layout_of(
    path: Path,
    rows: list[list[str]],
    delimiter: str,
    config: DataConfig,
    *,
    fills: bool = False,
    first_two: bool = False,
) -> Layout:
    """Looks at the first rows of a file.

    Args:
        fills: The target is to be filled in: its column need not be there yet.
        first_two: Without a header, two columns are taken even if others follow, unless the first row may be one.
    """
    names = [clean(cell) for cell in rows[0]] if rows else []
    if _is_header(rows, config):
        return Layout(delimiter, names, True, *pick_columns(path, names, config, fills=fills, rows=rows[1:]))
    if not _named_by_user(config) and (len(names) == 2 or (first_two and _first_two_are_texts(rows, config))):
        src, tgt = 0, 1
    else:
        width = max(map(len, rows), default=0)
        src = _number(config.src_column, width)
        tgt = _number(config.tgt_column, sys.maxsize if fills else width)
    return Layout(delimiter, names, False, *_checked(path, src, tgt, names, config, rows))


def pick_columns(
    place: object,
    names: list[str],
    config: DataConfig,
    *,
    fills: bool = False,
    rows: Sequence[Sequence[str]] = (),
) -> Columns:
    """The two columns among those with names.

    Languages are named for a memory in TMX. A table beside it need not call its columns so.

    Args:
        fills: The target is to be filled in: a column that is not there yet is the one behind the last.
        rows: The first ones, for a message if it is not clear.

    Raises:
        UnclearColumns: They are not there, or it is not clear which they are.
    """
    src, tgt = (_position(place, name, names) for name in _wanted(config))
    if (src is None or tgt is None) if _is_default(config) else (src is tgt is None and not _named_by_user(config)):
        usual = [tuple(_position(place, name, names) for name in pair) for pair in _USUAL_COLUMNS]
        whole = [pair for pair in usual if None not in pair]
        half = [(one, None) for one, _ in usual if one is not None and fills]
        only = [(0, 1)] if _is_default(config) and _are_both_sides(names) else []
        src, tgt = next(iter([*whole, *only, *half]), (None, None))
    if fills and tgt is None and not config.tgt_column.isdecimal():
        tgt = len(names)
    return _checked(place, src, tgt, names, config, rows)


def new_name(src: str, config: DataConfig) -> str:
    """The name of a new column for the target beside a column of the source."""
    if not _is_default(config):
        return config.tgt_column
    return next((tgt for usual, tgt in _USUAL_COLUMNS if usual == _plain(src)), config.tgt_column)


class UnclearColumns(DataError):
    """A table of which it is not clear which two columns are meant.

    Attributes:
        flags: What may be meant, to be added to the command; empty if it has no two columns with text.
    """

    def __init__(self, message: str, flags: Sequence[str]) -> None:
        super().__init__(message)
        self.flags = list(flags)


def _checked(
    place: object,
    src: int | None,
    tgt: int | None,
    names: list[str],
    config: DataConfig,
    rows: Sequence[Sequence[str]],
) -> Columns:
    if src is None or tgt is None:
        below = next((row for row in rows if [*row] != names), None)
        first = f" (below: {_listed(below)})" if below else ""
        raise UnclearColumns(
            f"{place}: no columns {config.src_column!r} and {config.tgt_column!r} among"
            f" {_listed(names) or 'none'}{first}; name both, or number them from 1: --src-column .. --tgt-column ..",
            _guessed_flags(names, rows),
        )
    if src == tgt:
        raise UsageError(f"{place}: source and target are the same column, {config.src_column!r}")
    return src, tgt


def _guessed_flags(names: list[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The flags that take the two columns called as languages are, else the two with the most letters."""
    columns = [place for place, name in enumerate(names) if _is_language(_plain(name))]
    if len(columns) != 2:
        letters = [sum(map(str.isalpha, "".join(column))) for column in zip_longest(*rows, fillvalue="")]
        columns = sorted(sorted(range(len(letters)), key=lambda place: -letters[place])[:2])
        if len(columns) < 2 or not all(letters[place] for place in columns):
            return []
    named = rows and [*rows[0]] != names and all(names[place] for place in columns) and len({*names}) == len(names)
    said = [names[place] if named else str(place + 1) for place in columns]
    return ["--src-column", said[0], "--tgt-column", said[1]]


def _position(place: object, wanted: str, names: list[str]) -> int | None:
    """Where the column of a name is, else of a number; None if there is none."""
    for form in (str, clean, _plain):
        places = [i for i, name in enumerate(names) if form(name) == form(wanted)]
        if len(places) > 1:
            raise DataError(
                f"{place}: two columns are called {wanted!r}; number those you mean from 1: --src-column .."
            )
        if places:
            return places[0]
    return _number(wanted, len(names))


def _number(wanted: str, width: int) -> int | None:
    return int(wanted) - 1 if wanted.isdecimal() and 1 <= int(wanted) <= width else None


def _plain(name: str) -> str:
    """A name as it is compared: `Source text` is `source`."""
    return _LONGER_NAME.sub(r"\1", clean(name).casefold())


def _wanted(config: DataConfig) -> tuple[str, str]:
    return config.src_column, config.tgt_column


def _is_default(config: DataConfig) -> bool:
    return _wanted(config) == ("src", "tgt")


def _named_by_user(config: DataConfig) -> bool:
    """Whether columns were asked for, and not languages, which may be meant for a file beside the table."""
    return not _is_default(config) and not all(map(_LANGUAGE.fullmatch, _wanted(config)))


def _are_both_sides(names: list[str]) -> bool:
    """Whether two names may be those of source and target, in this order."""
    plain = [_plain(name) for name in names]
    sources, targets = (set(side) for side in zip(*_USUAL_COLUMNS, strict=True))
    return len(plain) == 2 and not _NO_TEXT & set(plain) and plain[0] not in targets and plain[1] not in sources


def _is_header(rows: list[list[str]], config: DataConfig) -> bool:
    if not rows:
        return False
    asked = {_plain(name) for name in _wanted(config) if not name.isdecimal()}
    names = [_plain(cell) for cell in rows[0]]
    if (asked | _USUAL_NAMES) & set(names) or len({name for name in names if _is_language(name)}) > 1:
        return True
    numbers = [_number(name, len(names)) for name in _wanted(config)]
    if None not in numbers:
        rows = [[row[i] for i in numbers if i is not None and i < len(row)] for row in rows]
    return _is_words(rows[0]) and not _has_words(rows[1:])


def _first_two_are_texts(rows: list[list[str]], config: DataConfig) -> bool:
    """Whether the first two of many columns without names are taken: not numbers, nor below what may be a header."""
    if max(map(len, rows), default=0) <= 1:
        return True
    texts = [row[0] for row in rows if not is_blank(row[0])]
    numbers = sum(not _has_letters(text) for text in texts)
    return _is_default(config) and not _is_words(rows[0]) and 2 * numbers < len(texts)


def _is_language(name: str) -> bool:
    match = _LANGUAGE.fullmatch(name)
    return match is not None and (match[1] in _LANGUAGES if len(match[1]) == 2 else match[2] is not None)


def _is_words(row: list[str]) -> bool:
    return all(_WORD.fullmatch(cell.strip()) for cell in row)


def _has_words(rows: list[list[str]]) -> bool:
    """Whether most fields of some column are words, as in a dictionary, or sentences in a script without spaces."""
    columns = [[cell.strip() for cell in column if _has_letters(cell)] for column in zip_longest(*rows)]
    return not columns or any(2 * sum(map(bool, map(_WORD.fullmatch, cells))) >= len(cells) > 0 for cells in columns)


def _has_letters(cell: str | None) -> bool:
    return any(map(str.isalpha, cell or ""))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(shortened(name, _SHOWN)) for name in names)


def is_blank(cell: str | None) -> bool:
    """Whether a cell has no text."""
    return not clean(cell or "")


def table_pairs(rows: Iterable[Row], layout: Layout, check: Callable[[int, list[str]], None]) -> Iterator[Pair]:
    """The pairs of a file of rows; a blank row is an empty pair.

    Args:
        check: Refuses a row, numbered by its line, that has too few fields or too many.
    """
    header_is_next = layout.has_header
    for line, row in rows:
        if not row:
            yield "", ""
        elif header_is_next:
            header_is_next = False
        else:
            check(line, row)
            yield row[layout.src], row[layout.tgt]


def inside_translation(row: dict[str, Any]) -> dict[str, Any]:
    """Hugging Face's translation data sets have the two sides inside a `translation` field."""
    inner = row.get("translation")
    return inner if isinstance(inner, dict) else row


@dataclass(frozen=True)
class FieldLayout:
    """The fields of records that hold source and target, and those `known` beside them in the first records."""

    src: str
    tgt: str
    known: frozenset[str]

    def check(self, place: str, record: dict[str, Any], *needed: str) -> None:
        """A field that a record leaves out is blank, unless the record has fields that are not known."""
        missing = [name for name in needed if name not in record]
        if missing and not self.known.issuperset(record):
            raise DataError(f"{place}: no {' and '.join(missing)}, which other rows have")


def field_layout(
    place: str, firsts: Iterable[dict[str, Any] | None], config: DataConfig, *, fills: bool
) -> FieldLayout:
    """Picks the two fields among those of the first record, or, where that is not clear, of all the first records.

    Args:
        place: Of the first record.
        fills: The target is to be filled in, and may be new.
    """
    records = [one for one in firsts if one is not None]
    fullest = max(records, key=len)  # its fields are in the order that is meant
    every = list(dict.fromkeys(name for record in (fullest, *records) for name in record))
    src, tgt = _pick_fields(place, records[0], every, config, fills)
    known = (name for record in records if src in record or tgt in record for name in record)
    return FieldLayout(src, tgt, frozenset(known))


def _pick_fields(
    place: str, first: dict[str, Any], every: list[str], config: DataConfig, fills: bool
) -> tuple[str, str]:
    for names in (list(first), every):
        with contextlib.suppress(UnclearColumns):
            src, tgt = pick_columns(place, names, config)
            return names[src], names[tgt]
    values = [value if isinstance(value := first.get(name), str) else "" for name in every]
    src, tgt = pick_columns(place, every, config, fills=fills, rows=[values])
    return every[src], every[tgt] if tgt < len(every) else new_name(every[src], config)


def record_pairs(records: Iterable[tuple[str, dict[str, Any] | None]], config: DataConfig) -> Iterator[Pair]:
    """The pairs of records with named fields; see `field_layout`.

    Args:
        records: Each with its place, for messages. None is an empty pair.
    """
    inner = ((place, record and inside_translation(record)) for place, record in records)
    firsts = list(islice(inner, ROWS_LOOKED_AT))
    layout: FieldLayout | None = None
    for place, record in chain(firsts, inner):
        if record is None:
            yield "", ""
            continue
        layout = layout or field_layout(place, [one for _, one in firsts] + [record], config, fills=False)
        layout.check(place, record, layout.src, layout.tgt)
        yield _record_pair(place, record, layout)


def _record_pair(place: str, record: dict[str, Any], layout: FieldLayout) -> Pair:
    src, tgt = record.get(layout.src), record.get(layout.tgt)
    if src is None or tgt is None:
        return "", ""
    if not isinstance(src, str) or not isinstance(tgt, str):
        raise DataError(
            f"{place}: source and target must be strings: {layout.src!r} and {layout.tgt!r} are taken for them"
        )
    return src, tgt
