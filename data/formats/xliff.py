"""XLIFF 1.2 and 2, which translation tools exchange: units with a source and, once translated, a target."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..config import DataConfig
from ..errors import DataError
from .format import FileFormat, Pair
from .xml import children, elements, local_name, same_language, text_of

CODES = frozenset({"bpt", "ept", "ph", "it", "x", "bx", "ex", "sc", "ec", "cp", "sm", "em"})
"""Inline elements that hold markup, or nothing; `g`, `pc` and `mrk` hold text."""
UNTRANSLATED = frozenset({"new", "needs-translation", "initial"})
"""States of a target that nobody has translated yet."""


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Source and target of each unit, or of each segment of it; an empty pair where there is no translation.

    `src_column` and `tgt_column` may name the two languages of the file, in either order.

    Raises:
        DataError: The file is in other languages, or has no units at all.
    """
    swapped: bool | None = None
    for unit in elements(path, {"trans-unit", "unit"}):
        if swapped is None:
            swapped = _swapped(path, unit, config)
        for src, tgt in _pairs(unit):
            yield (tgt, src) if swapped else (src, tgt)
    if swapped is None:
        raise DataError(f"{path}: no <trans-unit> (XLIFF 1.2) and no <unit> (XLIFF 2) in it")


def _swapped(path: Path, unit: Any, config: DataConfig) -> bool:
    """Whether the file's target language is the source wanted."""
    wanted = config.src_column, config.tgt_column
    if wanted == ("src", "tgt"):
        return False
    src, tgt = _language(unit, "source-language", "srcLang"), _language(unit, "target-language", "trgLang")
    if same_language(src, wanted[0]) and same_language(tgt, wanted[1]):
        return False
    if same_language(src, wanted[1]) and same_language(tgt, wanted[0]):
        return True
    raise DataError(f"{path}: from {src or 'nothing'} to {tgt or 'nothing'}, not from {wanted[0]} to {wanted[1]}")


def _language(unit: Any, *names: str) -> str:
    """An attribute of the closest element around a unit that has it."""
    return next((above.get(name) for above in unit.iterancestors() for name in names if above.get(name)), "")


def _pairs(unit: Any) -> list[Pair]:
    parts = children(unit, "segment") or [unit]  # XLIFF 2 has its texts in segments
    return [pair for part in parts for pair in _pairs_of_part(part)]


def _pairs_of_part(part: Any) -> list[Pair]:
    sources, targets = children(part, "source"), children(part, "target")
    if not sources or not targets or {part.get("state"), targets[0].get("state")} & UNTRANSLATED:
        return [("", "")]
    segmented = _by_mark(children(part, "seg-source")[0]) if children(part, "seg-source") else {}
    translated = _by_mark(targets[0])
    if segmented and segmented.keys() == translated.keys():
        return [(segmented[mark], translated[mark]) for mark in segmented]
    src, tgt = text_of(sources[0], CODES), text_of(targets[0], CODES)
    return [(src, tgt) if src.strip() and tgt.strip() else ("", "")]


def _by_mark(element: Any) -> dict[str, str]:
    """The sentences that a tool has marked in a text of XLIFF 1.2, by their numbers."""
    marks = [one for one in element.iter() if local_name(one) == "mrk" and one.get("mtype") == "seg"]
    return {mark.get("mid", ""): text_of(mark, CODES) for mark in marks}


XLIFF = FileFormat((".xlf", ".xliff", ".sdlxliff", ".mqxliff"), read, incomplete=True)
