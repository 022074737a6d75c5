"""XLIFF 1.2 and 2, which translation tools exchange: units with a source and, once translated, a target."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...system.errors import DataError
from ..config import DataConfig
from .codes import pairs_of
from .format import FileSummary, Languages, OtherLanguages, Pair, file_format, fits
from .states import State, state_of
from .xml import Element, Kind, elements

CODES = frozenset({"bpt", "ept", "ph", "it", "x", "bx", "ex", "sc", "ec", "cp", "sm", "em"})
"""Inline elements that hold markup, or nothing; `g`, `pc` and `mrk` hold text."""
KIND = Kind("xliff", frozenset({"trans-unit", "unit"}))
ANY: Languages = ("", "")


@dataclass(frozen=True)
class Segment:
    """A text of a unit and its translation: those of a unit, of a segment, or of a sentence that a tool has marked.

    Attributes:
        part: The unit, or in XLIFF 2 its segment.
        mark: The number of the sentence, if it is a marked one.
        target: Its translation: an element, which may be empty; None if there is none.
    """

    unit: Element
    part: Element
    source: Element
    target: Element | None
    mark: str | None
    state: State

    @property
    def pairs(self) -> list[Pair]:
        """What there is to learn; an empty pair if there is nothing."""
        if not self.state.is_final or self.target is None:
            return [("", "")]
        return pairs_of(self.source, self.target, CODES)


def segments_of(unit: Element) -> Iterator[Segment]:
    """The segments of a unit that have a source."""
    for part in unit.children("segment") or [unit]:  # XLIFF 2 has its texts in segments
        source, target, marked = part.child("source"), part.child("target"), part.child("seg-source")
        translated = {} if target is None else marks_in(target)
        sources = {} if marked is None else marks_in(marked)
        if sources and (translated or target is None or target.is_blank):
            for mark, sentence in sources.items():
                there = translated.get(mark)
                is_empty = there is None or there.is_blank
                yield Segment(unit, part, sentence, there, mark, state_of(unit, part, target, mark, is_empty=is_empty))
        elif source is not None:
            is_empty = target is None or target.is_blank
            yield Segment(unit, part, source, target, None, state_of(unit, part, target, None, is_empty=is_empty))


def marks_in(element: Element) -> dict[str, Element]:
    """The sentences that a tool has marked in a text of XLIFF 1.2, by their numbers."""
    marks = [one for one in element.descendants() if one.local_name == "mrk" and one.get("mtype") == "seg"]
    return {one.get("mid"): one for one in marks}


class XliffLanguages:
    """The languages that are taken from a file: those that the settings name, else the first that it names itself."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        self._path, self._wanted = path, config.languages
        self._first = ANY
        self.others = Counter[Languages]()
        """Segments in other languages, which are left out."""
        self.taken = ANY
        """As the file writes them."""

    def takes(self, unit: Element, segments: int, *, turned: bool = False) -> bool | None:
        """Whether a unit is in these languages; None if it is the other way round, from target to source.

        Args:
            segments: How many the unit has.
            turned: Whether a unit that is the other way round is taken.

        Raises:
            DataError: The settings name no languages, and the file has several.
        """
        now = languages_of(unit)
        if all(map(fits, now, self._wanted)):
            if all(now) and not all(self._wanted):
                self._first = self._first if all(self._first) else now
                if not all(map(fits, self._first, now)):
                    raise DataError(
                        f"{self._path}: from {named(self._first)}, and further on from {named(now)}; name the languages"
                        f" to take: --src-language {now[0]} --tgt-language {now[1]}"
                    )
            self.taken = (self.taken[0] or now[0], self.taken[1] or now[1])
            return True
        if turned and all(self._wanted) and all(now) and all(map(fits, now, reversed(self._wanted))):
            self.taken = now[1], now[0]
            return None
        self.others[now] += segments
        return False

    def refuse_if_none(self, found: bool) -> None:
        """Refuses a file that has units, but none in these languages."""
        if found or not self.others:
            return
        src, tgt = next(iter(self.others))
        raise OtherLanguages(
            f"{self._path}: from {' and '.join(map(named, self.others))}",
            f", not from {named(self._wanted)}; name the languages of the file: --src-language {src or 'en'}"
            f" --tgt-language {tgt or 'de'}",
        )


def named(languages: Languages) -> str:
    """Two languages in words."""
    return f"{languages[0] or 'no language'} to {languages[1] or 'no language'}"


def languages_of(unit: Element) -> Languages:
    """The languages that the file names for a unit."""
    return _language(unit, "source-language", "srcLang"), _language(unit, "target-language", "trgLang")


def _language(unit: Element, *names: str) -> str:
    """An attribute of the closest element around a unit that has it."""
    return next((above.get(name) for above in unit.around() for name in names if above.get(name)), "")


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Source and target of each unit, or of each segment of it; an empty pair where there is no reviewed translation.

    The settings may name the two languages of the file, in either order.
    """
    for pairs, _ in _read(path, XliffLanguages(path, config)):
        yield from pairs


def _read(path: Path, languages: XliffLanguages) -> Iterator[tuple[list[Pair], Segment]]:
    found = False
    for unit in elements(path, KIND):
        segments = list(segments_of(unit))
        taken = languages.takes(unit, len(segments), turned=True)
        found = found or taken is not False
        if taken is False:
            continue
        for one in segments:
            yield one.pairs if taken else [(tgt, src) for src, tgt in one.pairs], one
    languages.refuse_if_none(found)


def look_through(path: Path, config: DataConfig) -> FileSummary:
    """Counts what `read` yields, and says what it is."""
    languages = XliffLanguages(path, config)
    pairs, final, rest = 0, Counter[str](), Counter[str]()
    for found, segment in _read(path, languages):
        pairs += len(found)
        (final if segment.state.is_final else rest)[segment.state.name] += 1
    remark = f"{path}: {named(languages.taken)}; segments to learn from: {counted(final)}; left out: {counted(rest)}"
    return FileSummary(pairs, languages.taken, remark + in_other_languages(languages.others))


def counted(states: Counter[str]) -> str:
    """States and how many segments have them, in words: the most frequent first."""
    return ", ".join(f"{count:,} {state}" for state, count in states.most_common()) or "none"


def in_other_languages(others: Counter[Languages]) -> str:
    """Segments that are left out for their languages, in words."""
    return "".join(f"; {count:,} from {named(languages)} are left out" for languages, count in others.items())


XLIFF = file_format(read, look_through=look_through, incomplete=True)
