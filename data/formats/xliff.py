"""XLIFF 1.2 and 2, which translation tools exchange: units with a source and, once translated, a target."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...system.errors import DataError
from ..config import DataConfig
from .format import Pair, file_format
from .xml import children, elements, local_name, same_language, text_of

CODES = frozenset({"bpt", "ept", "ph", "it", "x", "bx", "ex", "sc", "ec", "cp", "sm", "em"})
"""Inline elements that hold markup, or nothing; `g`, `pc` and `mrk` hold text."""
UNTRANSLATED = frozenset({"new", "initial"})
"""States of a target that nobody has translated yet, beside those that begin with `needs-`."""
Languages = tuple[str, str]


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Source and target of each unit, or of each segment of it; an empty pair where there is no reviewed translation.

    The settings may name the two languages of the file, in either order.
    """
    languages: Languages | None = None
    for unit in elements(path, {"trans-unit", "unit"}):
        now = _languages(unit)
        if languages not in (None, now):
            raise DataError(f"{path}: from {_named(languages)}, and further on from {_named(now)}; split the file")
        languages = now
        swapped = _swapped(path, now, config)
        for src, tgt in _pairs(unit):
            yield (tgt, src) if swapped else (src, tgt)
    if languages is None:
        raise DataError(f"{path}: no <trans-unit> (XLIFF 1.2) and no <unit> (XLIFF 2) in it")


def refuse_other_languages(path: Path, units: list[Any], config: DataConfig) -> None:
    """Refuses a file that is in the languages that the settings name."""
    for unit in units:
        now = _languages(unit)
        if _swapped(path, now, config):
            raise DataError(f"{path}: from {_named(now)}, not from {_named(config.languages)}")


def _swapped(path: Path, languages: Languages, config: DataConfig) -> bool:
    """Whether the file's target language is the source wanted. A language that the file does not name fits."""
    wanted = config.languages
    if all(map(_fits, languages, wanted)):
        return False
    if all(map(_fits, languages, reversed(wanted))):
        return True
    raise DataError(
        f"{path}: from {_named(languages)}, not from {_named(wanted)}; name the languages of the file:"
        f" --src-language {languages[0]} --tgt-language {languages[1]}"
    )


def _fits(code: str, wanted: str) -> bool:
    return not code or not wanted or same_language(code, wanted)


def _named(languages: Languages) -> str:
    return f"{languages[0] or 'no language'} to {languages[1] or 'no language'}"


def _languages(unit: Any) -> Languages:
    """The languages that the file names for a unit."""
    return _language(unit, "source-language", "srcLang"), _language(unit, "target-language", "trgLang")


def _language(unit: Any, *names: str) -> str:
    """An attribute of the closest element around a unit that has it."""
    return next((above.get(name) for above in unit.iterancestors() for name in names if above.get(name)), "")


def _pairs(unit: Any) -> list[Pair]:
    parts = children(unit, "segment") or [unit]  # XLIFF 2 has its texts in segments
    return [pair for part in parts for pair in _pairs_of_part(part)]


def _pairs_of_part(part: Any) -> list[Pair]:
    sources, targets = children(part, "source"), children(part, "target")
    if not sources or not targets or part.get("approved") == "no":
        return [("", "")]
    states = part.get("state", ""), targets[0].get("state", "")
    if any(state in UNTRANSLATED or state.startswith("needs-") for state in states):
        return [("", "")]
    segmented = _by_mark(children(part, "seg-source")[0]) if children(part, "seg-source") else {}
    translated = _by_mark(targets[0])
    if segmented and translated:
        return [_if_both(text, translated.get(mark, "")) for mark, text in segmented.items()]
    return [_if_both(text_of(sources[0], CODES), text_of(targets[0], CODES))]


def _if_both(src: str, tgt: str) -> Pair:
    return (src, tgt) if src.strip() and tgt.strip() else ("", "")


def _by_mark(element: Any) -> dict[str, str]:
    """The sentences that a tool has marked in a text of XLIFF 1.2, by their numbers."""
    marks = [one for one in element.iter() if local_name(one) == "mrk" and one.get("mtype") == "seg"]
    return {mark.get("mid", ""): text_of(mark, CODES) for mark in marks}


XLIFF = file_format((".xlf", ".xliff", ".sdlxliff", ".mqxliff"), read, incomplete=True)
FORMATS = dict.fromkeys((".xlf", ".xliff", ".sdlxliff", ".mqxliff"), XLIFF)
