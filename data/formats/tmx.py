"""Translation memories in TMX 1.4: each unit has one variant for each language."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from ...system.errors import DataError
from ..config import DataConfig
from .format import Pair, file_format
from .xml import XML_LANG, children, elements, local_name, same_language, text_of

CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})
"""Elements of a segment that hold markup of the document translated."""
Languages = tuple[str, str]


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """The variants of the two languages of each unit; an empty pair where one is missing.

    The languages are those that the settings name. Where they do not name both, they are those of the first unit with
    two: the source is the one that the header calls so, else the first.
    """
    named = config.languages
    languages: Languages | None = named if all(named) else None
    header, met, found = "", set[str](), False
    for element in elements(path, {"header", "tu"}):
        if local_name(element) == "header":
            header = element.get("srclang", "")
            continue
        variants = _variants(element)
        met.update(code for code, _ in variants)
        if languages is None and len({code for code, _ in variants}) > 1:
            languages = languages_of(path, [code for code, _ in variants], header)
        src, tgt = (_in_language(variants, one) for one in languages) if languages else ([], [])
        found = found or bool(src and tgt)
        if src and tgt:
            yield from product(src, tgt)
        else:
            yield "", ""
    if not found:
        raise DataError(
            f"{path}: no unit in {' and '.join(languages) if languages else 'two languages'}; it has"
            f" {', '.join(sorted(met)) or 'none'}; name two: --src-language en --tgt-language de"
        )


def _in_language(variants: list[tuple[str, str]], language: str) -> list[str]:
    return [text for code, text in variants if same_language(code, language) and text.strip()]


def _variants(unit: Any) -> list[tuple[str, str]]:
    """Language and text of each variant of a unit."""
    return [
        (variant.get(XML_LANG) or variant.get("lang") or "", text_of(segment, CODES))
        for variant in children(unit, "tuv")
        for segment in children(variant, "seg")
    ]


def languages_of(path: Path, codes: list[str], header: str) -> Languages:
    """The two languages of a unit, regions of the same language as one where that leaves two."""
    different = list(dict.fromkeys(re.split("[-_]", code)[0].lower() for code in codes))
    if len(different) == 1:  # from one region to another
        different = list(dict.fromkeys(codes))
    if len(different) != 2:
        raise DataError(
            f"{path}: units in {', '.join(dict.fromkeys(codes))}; name two of them: --src-language en --tgt-language de"
        )
    src, tgt = different
    return (tgt, src) if same_language(header, tgt) and not same_language(header, src) else (src, tgt)


TMX = file_format((".tmx",), read, incomplete=True)
FORMATS = {".tmx": TMX}
