"""Translation memories in TMX 1.4: each unit has one variant for each language."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from ...system.errors import DataError
from ..config import DataConfig
from .codes import pairs_of
from .format import FileSummary, Languages, OtherLanguages, Pair, file_format, same_language
from .states import is_by_machine, unfinished
from .xml import XML_LANG, Element, Kind, elements

CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
"""Elements of a segment that hold markup of the document translated."""
KIND = Kind("tmx", frozenset({"header", "tu"}))


@dataclass(frozen=True)
class Variant:
    """The text of a unit in one language.

    Attributes:
        is_by_machine: Nobody has changed it since.
    """

    language: str
    element: Element
    segment: Element
    is_by_machine: bool


def variants_of(unit: Element) -> list[Variant]:
    """The variants of a unit."""
    return [
        Variant(language_of(variant), variant, segment, is_by_machine(unit, variant))
        for variant in unit.children("tuv")
        for segment in variant.children("seg")
    ]


def language_of(variant: Element) -> str:
    """The language that a variant says it is in."""
    return variant.get(XML_LANG) or variant.get("lang")


class TmxLanguages:
    """The languages that are taken from a memory: those that the settings name, else those of the first unit with two.

    Of these, the source is the one that the header calls so, else the first.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        self._path, self._wanted = path, config.languages
        self._header = ""
        self.met = Counter[str]()
        """All languages of the units, as the file writes them, and how many variants they have."""
        self.pair: Languages | None = self._wanted if all(self._wanted) else None

    def read_header(self, header: Element) -> None:
        """Takes the source language from the header of the file."""
        self._header = header.get("srclang")

    def meet(self, variants: list[Variant]) -> Languages | None:
        """The two languages, as soon as they are known.

        Raises:
            DataError: The settings do not name them, and a unit has more than two.
        """
        codes = [one.language for one in variants]
        self.met.update(codes)
        if self.pair is None and len(set(codes)) > 1:
            self.pair = self._of_unit(codes)
        return self.pair

    def _of_unit(self, codes: list[str]) -> Languages:
        """The two languages of a unit, regions of the same language as one where that leaves two."""
        src, tgt = self._wanted
        if src or tgt:
            others = [code for code in _different(codes) if not same_language(code, src or tgt)]
            if len(others) == 1:
                return (src, others[0]) if src else (others[0], tgt)
        elif len(different := _different(codes)) == 2:
            src, tgt = different
            is_turned = same_language(self._header, tgt) and not same_language(self._header, src)
            return (tgt, src) if is_turned else (src, tgt)
        raise DataError(
            f"{self._path}: units in {', '.join(dict.fromkeys(codes))}; name two of them:"
            " --src-language en --tgt-language de"
        )

    def of_one_language(self) -> Languages:
        """The two languages of a memory in one, if the settings name the other.

        Raises:
            DataError: They do not.
        """
        tgt = self._wanted[1]
        if len(self.met) == 1 and tgt:
            return next(iter(self.met)), tgt
        raise self.refusal()

    def refusal(self) -> DataError:
        """The error for a memory without a unit in these languages."""
        two = " and ".join(self.pair) if self.pair else "two languages"
        named = f"{self._path}: no unit in {two}; it has {', '.join(sorted(self.met)) or 'none'}"
        return OtherLanguages(named, "; name two: --src-language en --tgt-language de")


def _different(codes: list[str]) -> list[str]:
    """The languages among codes; their regions where all are of one language."""
    different = list(dict.fromkeys(re.split("[-_]", code)[0].lower() for code in codes))
    return different if len(different) > 1 else list(dict.fromkeys(codes))


def in_language(variants: list[Variant], language: str) -> list[Variant]:
    """The variants that have a text in a language."""
    return [one for one in variants if same_language(one.language, language) and not one.segment.is_blank]


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """The variants of the two languages of each unit; an empty pair where one is missing, or made by a machine."""
    for pairs, _ in _read(path, TmxLanguages(path, config)):
        yield from pairs


def _read(path: Path, languages: TmxLanguages) -> Iterator[tuple[list[Pair], str]]:
    """The pairs of each unit, and why there are none."""
    found = False
    for element in elements(path, KIND):
        if element.local_name == "header":
            languages.read_header(element)
            continue
        variants = variants_of(element)
        pair = languages.meet(variants)
        src, tgt = (in_language(variants, language) for language in pair) if pair else ([], [])
        found = found or bool(src and tgt)
        final = [[one for one in side if not one.is_by_machine] for side in (src, tgt)]
        if not (src and tgt):
            yield [("", "")], "in one language alone"
        elif not all(final):
            yield [("", "")], "by machine"
        elif level := unfinished(element):
            yield [("", "")], level
        else:
            both = product(*final)
            yield [pair for one, other in both for pair in pairs_of(one.segment, other.segment, CODES)], ""
    if not found and len(_different(list(languages.met))) > 1:  # nobody has translated a memory in one language
        raise languages.refusal()


def look_through(path: Path, config: DataConfig) -> FileSummary:
    """Counts what `read` yields, and says what it is."""
    languages = TmxLanguages(path, config)
    pairs, left_out = 0, Counter[str]()
    for found, reason in _read(path, languages):
        pairs += len(found)
        left_out[reason] += 1
    learnt = left_out.pop("", 0)
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.most_common()) or "none"
    src, tgt = languages.pair or ("", "")
    return FileSummary(
        pairs, (src, tgt), f"{path}: {src} to {tgt}; units to learn from: {learnt:,}; left out: {reasons}"
    )


TMX = file_format(read, look_through=look_through, incomplete=True)
