"""Translation memories in TMX: units that lack a variant of the target language get one."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

from ...data.config import DataConfig
from ...data.formats.format import Languages, same_language
from ...data.formats.states import BY_MACHINE_TMX, OURS
from ...data.formats.tmx import CODES, KIND, TmxLanguages, Variant, in_language, variants_of
from ...data.formats.xml import XML_LANG, Element
from .document import Review
from .inline import Inline
from .xml import XmlDocument, start_tag

_NOTE = f"{OURS}: "
"""What our notes begin with."""
_BY_MACHINE = {"creationid": BY_MACHINE_TMX, "creationtool": OURS}


class TmxDocument(XmlDocument):
    """Adds variants to units, and replaces those that a machine made. Its languages are those that `read` takes."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        super().__init__(path)
        self._filled: dict[int, tuple[Callable[[Review | None], None], Review | None]] = {}
        """What writes the variant of each unit that is filled in, by its place, and what a reviewer is told of it."""
        parts = self.file.elements(KIND)
        units = [(one, variants_of(one)) for one in parts if one.local_name == "tu"]
        languages = TmxLanguages(path, config)
        for header in parts:
            if header.local_name == "header":
                languages.read_header(header)
        if not units:
            self.remark = f"{path}: no units"
            return
        src, tgt = _languages(languages, [variants for _, variants in units])
        self.fields.language = tgt
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
        self.fields.add(inline.text, put, partial(self._note, unit), inline.shorter)
        return "by machine" if targets else "without a translation"

    def _put(
        self, inline: Inline, unit: Element, source: Variant, target: Variant | None, language: str, text: str
    ) -> bool:
        xml = inline.xml(text)
        if xml is None:
            return False
        if target is not None:
            self._filled[unit.start] = partial(self._replace, target, xml), None
        else:
            self._filled[unit.start] = partial(self._insert, unit, source, language, xml), None
        return True

    def _note(self, unit: Element, review: Review) -> None:
        write, _ = self._filled[unit.start]
        self._filled[unit.start] = write, review

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file."""
        for write, review in self._filled.values():
            write(review)
        self._filled.clear()
        super().save(stream)

    def _replace(self, target: Variant, xml: bytes, review: Review | None) -> None:
        """Fills a variant that is there. An earlier note of ours goes: it was of another text."""
        self.set_inner(target.segment, xml)
        self.set_attributes(target.element, {**_BY_MACHINE, "changeid": None})
        for note in target.element.children("note"):
            if note.whole_text.startswith(_NOTE):
                self.remove(note)
        if review is not None:
            self.insert_before(target.segment, _note_of(target.segment, review))

    def _insert(self, unit: Element, source: Variant, language: str, xml: bytes, review: Review | None) -> None:
        self.insert_behind(unit.children("tuv")[-1], self._variant(source, language, xml, review))

    def _variant(self, source: Variant, language: str, xml: bytes, review: Review | None) -> bytes:
        """A new variant, laid out as that of the source."""
        file, element, segment = self.file, source.element, source.segment
        named = XML_LANG if XML_LANG in element.attributes else "lang"
        first, last = element.elements[0], element.elements[-1]
        content = file.content
        space = content[file.inner_start(element) : first.start]
        before = b"" if space.strip() else space
        after = content[file.end(last) : element.stop]
        return b"".join(
            [
                start_tag(element.name, {named: language, **_BY_MACHINE}),
                *([before, _note_of(segment, review)] if review is not None else []),
                before,
                f"<{segment.name}>".encode(),
                xml,
                f"</{segment.name}>".encode(),
                after if not after.strip() else b"",
                f"</{element.name}>".encode(),
            ]
        )


def _note_of(segment: Element, review: Review) -> bytes:
    """A note for the reviewer, which stands before a segment."""
    name = f"{segment.name.removesuffix(segment.local_name)}note"
    return f"<{name}>{_NOTE}{review}</{name}>".encode()


def _languages(languages: TmxLanguages, units: list[list[Variant]]) -> Languages:
    """The two languages; that of the target as the file writes it, if it does."""
    pairs = [languages.meet(variants) for variants in units]
    pair = (pairs or [None])[-1] or languages.of_one_language()
    written = [code for code, _ in languages.met.most_common() if same_language(code, pair[1])]
    return pair[0], (written or [pair[1]])[0]
