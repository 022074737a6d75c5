"""Translation memories in TMX: units that lack a variant of the target language get one."""

from collections import Counter
from pathlib import Path
from typing import IO, Any

from ...data.config import DataConfig
from ...data.formats.tmx import CODES, languages_of
from ...data.formats.xml import XML_LANG, children, parse_tree, same_language, write_tree
from ...system.errors import DataError, UsageError
from .document import Fields
from .inline import Inline

CREATOR = "MT!"
"""The name that translation tools write for a machine."""


class TmxDocument:
    """Adds variants to units. By default its languages are those of the first unit with two."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        self._tree = parse_tree(path)
        self.fields = Fields()
        root = self._tree.getroot()
        units = list(root.iter("{*}tu"))
        src, tgt = _languages(path, root, units, config)
        for unit in units:
            sources = _variants(unit, src)
            if sources and not any("".join(one.itertext()).strip() for one in _variants(unit, tgt)):
                self._add(unit, sources[0], tgt)
        if not any(_variants(unit, src) for unit in units):
            raise DataError(f"{path}: no unit has the language {src}; name two: --src-language en --tgt-language de")
        self.remark = f"{path}: {len(self.fields):,} of {len(units):,} units have {src} and lack {tgt}"

    def _add(self, unit: Any, segment: Any, language: str) -> None:
        inline = Inline(segment, CODES)

        def put(text: str) -> bool:
            new = segment.makeelement(segment.tag)
            if not inline.put(text, new):
                return False
            empty = _variants(unit, language)
            if empty:
                new.tail = empty[0].tail
                variant = empty[0].getparent()
                variant.replace(empty[0], new)
            else:
                variant = segment.getparent().makeelement(segment.getparent().tag, {XML_LANG: language})
                variant.append(new)
                variant.tail, unit[-1].tail = unit[-1].tail, segment.getparent().tail
                unit.append(variant)
            variant.attrib.update({"creationid": CREATOR, "creationtool": "tfm"})
            return True

        self.fields.add(inline.text, put)

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file."""
        write_tree(self._tree, stream)


def _variants(unit: Any, language: str) -> list[Any]:
    """The segments of a unit in a language."""
    return [
        segment
        for variant in children(unit, "tuv")
        if same_language(variant.get(XML_LANG) or variant.get("lang") or "", language)
        for segment in children(variant, "seg")
    ]


def _languages(path: Path, root: Any, units: list[Any], config: DataConfig) -> tuple[str, str]:
    """The two languages; that of the target as the file writes it, if it does."""
    named = config.languages
    if any(named):
        if not all(named):
            raise UsageError(f"{path}: name both languages: --src-language en --tgt-language de")
        written = Counter(code for unit in units for code in _codes(unit) if same_language(code, named[1]))
        return named[0], written.most_common(1)[0][0] if written else named[1]
    header = next((one.get("srclang", "") for one in root.iter("{*}header")), "")
    for unit in units:
        if len(set(_codes(unit))) > 1:
            src, tgt = languages_of(path, _codes(unit), header)
            return src, next(code for code in _codes(unit) if same_language(code, tgt))
    raise DataError(f"{path}: every unit has one language only; name two: --src-language en --tgt-language de")


def _codes(unit: Any) -> list[str]:
    return [variant.get(XML_LANG) or variant.get("lang") or "" for variant in children(unit, "tuv")]
