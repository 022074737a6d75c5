"""XLIFF 1.2 and 2: units without a target, and those that are said to be new or translated by machine."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import IO

from ...data.config import DataConfig
from ...data.formats.states import OURS, trados_segment
from ...data.formats.xliff import (
    CODES,
    KIND,
    Segment,
    XliffLanguages,
    counted,
    in_other_languages,
    marks_in,
    named,
    segments_of,
)
from ...data.formats.xml import Element
from ...system.errors import DataError
from .document import Review
from .inline import Inline
from .xml import Attributes, XmlDocument, start_tag

_BY_MACHINE = {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"}
"""Attributes of a target of XLIFF 1.2 that nobody has looked at."""
_BY_MACHINE_2: Attributes = {"state": "translated", "subState": f"{OURS}:machine"}
"""Attributes of a segment of XLIFF 2; a person makes of it `reviewed` or `final`."""
_BY_MACHINE_TRADOS: Attributes = {"conf": "Draft", "origin": "mt", "origin-system": OURS}
_MATCH_TRADOS: Attributes = dict.fromkeys(("percent", "text-match", "struct-match"))
"""What was said of the match in a memory that the text came from."""
_BY_MACHINE_MEMOQ: Attributes = {"mq:status": "MachineTranslated"}
_BY_MACHINE_PHRASE: Attributes = {"m:confirmed": "0", "m:trans-origin": "mt"}


class XliffDocument(XmlDocument):
    """Fills units, or the segments of a unit. The settings name the target language if the file does not."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        super().__init__(path)
        self._rebuilt: dict[int, tuple[Segment, dict[str, bytes]]] = {}
        """Targets that lack marks of their sources, with the sentences filled in, by the place of their units."""
        self._filled: dict[int, tuple[Element, Review | None]] = {}
        """The units in which something is filled in, by their places, and what is said of the worst text of each."""
        languages, states, closed = XliffLanguages(path, config), Counter[str](), Counter[str]()
        units, found = self.file.elements(KIND), False
        for unit in units:
            segments = list(segments_of(unit))
            taken = languages.takes(unit, len(segments))
            found = found or bool(taken)
            for one in segments if taken else []:
                is_open = one.state.is_open and _is_translatable(unit) and not one.source.is_blank
                (states if is_open else closed)[one.state.name] += 1
                if is_open:
                    self._add(one)
        languages.refuse_if_none(found)
        self._language = self.fields.language = languages.taken[1] or config.languages[1]
        if len(self.fields) and not self._language and units[0].local_name == "unit":
            raise DataError(f"{path} does not name its target language (trgLang); name it: --tgt-language de")
        count = states.total() + closed.total()
        self.remark = (
            f"{path}: {named((languages.taken[0] or config.languages[0], self._language))}; {len(self.fields):,} of"
            f" {count:,} segments to fill in: {counted(states)}; the others: {counted(closed)}"
            f"{in_other_languages(languages.others)}"
        )

    def _add(self, segment: Segment) -> None:
        inline = Inline(self, segment.source, CODES)
        self.fields.add(
            inline.text, partial(self._put, segment, inline), partial(self._note, segment.unit), inline.shorter
        )

    def _put(self, segment: Segment, inline: Inline, text: str) -> bool:
        xml = inline.xml(text)
        if xml is None:
            return False
        on_target = self._mark(segment)
        part, target = segment.part, segment.part.child("target")
        if target is not None:
            self.set_attributes(target, dict(on_target))
        if segment.target is not None:
            self.set_inner(segment.target, xml)
        elif segment.mark is not None:
            self._rebuilt.setdefault(part.start, (segment, {}))[1][segment.mark] = xml
        else:
            self._insert_target(part, on_target, xml)
        self._name_language(segment.unit)
        self._filled.setdefault(segment.unit.start, (segment.unit, None))
        return True

    def _note(self, unit: Element, review: Review) -> None:
        _, before = self._filled[unit.start]
        self._filled[unit.start] = unit, review if before is None else min(review, before)

    def _mark(self, segment: Segment) -> dict[str, str]:
        """Says in the way of the tool that a machine made a translation.

        Returns:
            What is to be said of it in the target.
        """
        own, part = trados_segment(segment.unit, segment.mark), segment.part
        if own is not None:
            self.set_attributes(own, _BY_MACHINE_TRADOS | _MATCH_TRADOS)
        elif "mq:status" in part.attributes:
            self.set_attributes(part, _BY_MACHINE_MEMOQ)
        elif "m:confirmed" in part.attributes:
            self.set_attributes(part, _BY_MACHINE_PHRASE)
        elif part.local_name == "segment":
            self.set_attributes(part, _BY_MACHINE_2)
        else:
            return _BY_MACHINE
        return {}

    def _insert_target(self, part: Element, attributes: dict[str, str], xml: bytes) -> None:
        """Puts a new target where it belongs, behind the source."""
        before = part.child("seg-source") or part.child("source")
        assert before is not None  # or there would be nothing to fill in
        source = before.name.removesuffix("seg-source").removesuffix("source")
        name = f"{source}target"
        if "xml:space" in before.attributes:
            attributes = {"xml:space": before.get("xml:space"), **attributes}
        self.insert_behind(before, start_tag(name, attributes) + xml + f"</{name}>".encode())

    def _name_language(self, unit: Element) -> None:
        """Sees to it that the language of a filled target is named."""
        for one in unit.around() if self._language else ():
            if one.local_name == "file" and unit.local_name == "trans-unit" and not one.get("target-language"):
                self.set_attributes(one, {"target-language": self._language})
            elif one.local_name == "xliff" and unit.local_name == "unit" and not one.get("trgLang"):
                self.set_attributes(one, {"trgLang": self._language})

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file."""
        for segment, sentences in self._rebuilt.values():
            self._rebuild(segment, sentences)
        self._rebuilt.clear()
        for unit, review in self._filled.values():
            self._write_note(unit, review)
        self._filled.clear()
        super().save(stream)

    def _write_note(self, unit: Element, review: Review | None) -> None:
        """Puts a note for the reviewer in a unit. An earlier one of ours goes: it was of another text."""
        in_version_2 = unit.local_name == "unit"
        around, by = (unit.child("notes"), "category") if in_version_2 else (unit, "from")
        notes = [] if around is None else around.children("note")
        ours = next((one for one in notes if one.get(by) == OURS), None)
        if ours is not None and review is not None:
            self.set_inner(ours, str(review).encode())
        elif ours is not None:
            self.remove(around if in_version_2 and around is not None and len(notes) == 1 else ours)
        if ours is not None or review is None:
            return
        name = f"{unit.name.removesuffix(unit.local_name)}note"
        note = start_tag(name, {by: OURS}) + str(review).encode() + f"</{name}>".encode()
        if notes:
            self.insert_behind(notes[-1], note)
        elif in_version_2:
            first = next(one for one in unit.elements if one.local_name in ("originalData", "segment", "ignorable"))
            self.insert_before(first, f"<{name}s>".encode() + note + f"</{name}s>".encode())
        else:
            texts = (unit.child(kind) for kind in ("target", "seg-source", "source"))
            self.insert_behind(next(filter(None, texts)), note)

    def _rebuild(self, segment: Segment, sentences: dict[str, bytes]) -> None:
        """Gives a unit a target with a mark for each of its source's; those that have no translation are empty."""
        marked, target = segment.part.child("seg-source"), segment.part.child("target")
        assert marked is not None  # the sentences are marked there
        there = {} if target is None else marks_in(target)
        old = {mark: self.take_inner(one) for mark, one in there.items()}
        written = {one.start: {**old, **sentences}.get(mark, b"") for mark, one in marks_in(marked).items()}
        inner = self.inner_with(marked, written)
        if target is not None:
            self.set_inner(target, inner)
        else:
            self._insert_target(segment.part, self._mark(segment), inner)


def _is_translatable(unit: Element) -> bool:
    said = (one.get("translate") for one in unit.around())
    return next((value for value in said if value), "yes") != "no"
