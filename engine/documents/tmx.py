"""Translation memories in TMX: units that lack a variant of the target language get one."""

from collections import Counter
from functools import partial
from pathlib import Path

from ...data.config import DataConfig
from ...data.formats.format import Languages, same_language
from ...data.formats.states import BY_MACHINE_TMX, OURS
from ...data.formats.tmx import CODES, KIND, LanguagePair, Variant, in_language, variants_of
from ...data.formats.xml import XML_LANG, Element
from .inline import Inline
from .xml import XmlDocument, start_tag

_BY_MACHINE = {"creationid": BY_MACHINE_TMX, "creationtool": OURS}


class TmxDocument(XmlDocument):
    """Adds variants to units, and replaces those that a machine made. Its languages are those that `read` takes."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        super().__init__(path)
        parts = self.file.elements(KIND)
        units = [(one, variants_of(one)) for one in parts if one.local_name == "tu"]
        languages = LanguagePair(path, config)
        for header in parts:
            if header.local_name == "header":
                languages.read_header(header)
        if not units:
            self.remark = f"{path}: no units"
            return
        src, tgt = _languages(languages, [variants for _, variants in units])
        states = Counter[str]()
        for unit, variants in units:
            states[self._look_at(unit, variants, src, tgt)] += 1
        if states[""] == len(units):
            raise languages.refusal()
        there = ", ".join(f"{count:,} {state}" for state, count in states.most_common() if state)
        self.remark = f"{path}: {src} to {tgt}; {len(self.fields):,} of {len(units):,} units to fill in ({there})"

    def _look_at(self, unit: Element, variants: list[Variant], src: str, tgt: str) -> str:
        """Adds a unit if it is to be filled in.

        Returns:
            What is said of it; empty if it is not in the language of the source.
        """
        sources, targets = in_language(variants, src), in_language(variants, tgt)
        if not sources:
            return ""
        if not all(one.is_by_machine for one in targets):
            return "with both languages"
        empty = [one for one in variants if same_language(one.language, tgt)]
        inline = Inline(self, sources[0].segment, CODES)
        put = partial(self._put, inline, unit, sources[0], (targets or empty or [None])[0], tgt)
        self.fields.add(inline.text, put)
        return "by machine" if targets else "without a translation"

    def _put(
        self, inline: Inline, unit: Element, source: Variant, target: Variant | None, language: str, text: str
    ) -> bool:
        xml = inline.xml(text)
        if xml is None:
            return False
        if target is not None:
            self.set_inner(target.segment, xml)
            self.set_attributes(target.element, {**_BY_MACHINE, "changeid": None})
        else:
            self.insert_behind(unit.children("tuv")[-1], self._variant(source, language, xml))
        return True

    def _variant(self, source: Variant, language: str, xml: bytes) -> bytes:
        """A new variant, laid out as that of the source."""
        file, element, segment = self.file, source.element, source.segment
        named = XML_LANG if XML_LANG in element.attributes else "lang"
        first, last = element.elements[0], element.elements[-1]
        content = file.content
        before = content[file.inner_start(element) : first.start]
        after = content[file.end(last) : element.stop]
        return b"".join(
            [
                start_tag(element.name, {named: language, **_BY_MACHINE}),
                before if not before.strip() else b"",
                f"<{segment.name}>".encode(),
                xml,
                f"</{segment.name}>".encode(),
                after if not after.strip() else b"",
                f"</{element.name}>".encode(),
            ]
        )


def _languages(languages: LanguagePair, units: list[list[Variant]]) -> Languages:
    """The two languages; that of the target as the file writes it, if it does."""
    pairs = [languages.meet(variants) for variants in units]
    pair = (pairs or [None])[-1] or languages.of_one_language()
    written = [code for code, _ in languages.met.most_common() if same_language(code, pair[1])]
    return pair[0], (written or [pair[1]])[0]
