"""Messages of programs in gettext's PO files. A translation by machine is fuzzy: no program shows it unreviewed."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

from ...data.config import DataConfig
from ...data.formats import suffix_of
from ...data.formats.plurals import Plurals, rule_of
from ...data.formats.po import PoFile, PoMessage, PoPart, header_value, is_flags
from ...system.errors import UsageError
from .document import Fields, Review
from .paragraphs import Paragraphs
from .po_strings import Manner

COMMENT = "machine translation, not reviewed"
_AUTOMATIC = (".", ":", ",", "=", "!")
"""What follows the `#` of a comment that is not a translator's."""
Edit = tuple[int, int, str]
"""Two places in the text of a file, and what is to stand between them."""


class PoDocument:
    """Fills messages without a translation, and those whose translation is fuzzy. Other messages stay, to the byte.

    The header changes if something is filled, and only in what has to be said then: in a template the language, its
    plural forms, the charset, and no more that the header is fuzzy; in other files plural forms that are missing, and
    the charset if none is named, or ASCII, and the translations have other characters.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        self._file = PoFile(path)
        self._manner = Manner.of(self._file)
        self._is_template = suffix_of(path) == ".pot"
        self._language = config.languages[1]
        if not self._is_template:
            self._file.refuse_other_languages(self._language)
        self._charset = "utf-8" if self._file.charset == "ascii" else self._file.charset
        headers = self._file.headers
        self._rules = {domain: self._rule(header.msgstr[0].text) for domain, header in headers.items()}
        self._plurals = {domain: Plurals.by_rule(rule) for domain, rule in self._rules.items()}
        self._filled: dict[int, dict[int, str]] = {}
        self._reviews: dict[int, Review] = {}
        self.fields = Fields()
        self.fields.language = self._language or next(iter(self._file.languages), "")
        without_forms = sum(not self._add(*numbered) for numbered in enumerate(self._file.messages))
        self.remark = f"{path}: {self._file.counts()}"
        if without_forms:
            self.remark += (
                f"; {without_forms:,} with a plural stay as they are, as the header has no Plural-Forms:"
                " name the language, --tgt-language CODE"
            )

    def _rule(self, header: str) -> str:
        """The plural forms that a header names, else those of its language, which the settings may name."""
        rule = header_value(header, "Plural-Forms")
        language = self._language or header_value(header, "Language")
        if Plurals.by_rule(rule).count is not None or not language:
            return rule
        try:
            return rule_of(language)
        except UsageError:
            if self._language:
                raise
            return rule

    def _add(self, number: int, message: PoMessage) -> bool:
        """Adds what is to be filled in a message. Returns False if it should have plural forms, and has no rule."""
        if message.obsolete or not message.msgid.text:
            return True
        there = [] if "fuzzy" in message.flags else [bool(part.text) for part in message.msgstr]
        if message.msgid_plural is None:
            if not all(there or [False]):
                self._add_form(number, 0, message.msgid.text)
            return True
        plurals = self._plurals.get(message.domain, Plurals())
        singular, plural = message.msgid.text, message.msgid_plural.text
        for form in range(plurals.count or 0):
            if there[form : form + 1] != [True]:
                self._add_form(number, form, singular if plurals.is_singular(form, singular, plural) else plural)
        return plurals.count is not None or message.state == "translated"

    def _add_form(self, number: int, form: int, source: str) -> None:
        paragraphs = Paragraphs(source)

        def put(text: str) -> bool:
            try:
                text.encode(self._charset)
            except UnicodeEncodeError:
                return False
            self._filled.setdefault(number, {})[form] = paragraphs.wrapped(text)
            return True

        def note(review: Review) -> None:  # of the worst of the plural forms
            self._reviews[number] = min(review, self._reviews.get(number, review))

        self.fields.add(paragraphs.joined, put, note)

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file."""
        edits = list[Edit]()
        for number, texts in self._filled.items():
            message = self._file.messages[number]
            edits += [*self._translated(message, texts), *self._marked(message, self._reviews.get(number))]
        if edits:
            for domain, header in self._file.headers.items():
                edits += self._completed(domain, header)
        stream.write(self._file.replaced(edits, self._charset))

    def _translated(self, message: PoMessage, texts: dict[int, str]) -> Iterator[Edit]:
        """Writes plural forms, or the only form. Those that a language does not have are left out if they are empty."""
        parts, line_end = message.msgstr, self._file.line_end(message.start)
        plurals = self._plurals.get(message.domain, Plurals())
        count = len(parts) if message.msgid_plural is None else max(plurals.count or 0, max(texts) + 1)
        for form, part in enumerate(parts[:count]):
            if form in texts:
                yield part.start, part.end, self._written(message, form, part, texts[form])
        last = parts[-1]
        if count < len(parts) and not any(part.text for part in parts[count:]):
            yield parts[count - 1].end, last.end, ""
        added = (self._written(message, form, last, texts.get(form, "")) for form in range(len(parts), count))
        if more := "".join(line_end + one for one in added):
            yield last.end, last.end, more

    def _written(self, message: PoMessage, form: int, part: PoPart, text: str) -> str:
        keyword = "msgstr" if message.msgid_plural is None else f"msgstr[{form}]"
        line_end = self._file.line_end(part.start)
        sources = [message.msgid, *([message.msgid_plural] if message.msgid_plural else [])]
        manner = self._manner.for_part(self._file, part, sources, wraps="no-wrap" not in message.flags)
        return manner.written(keyword, text, line_end)

    def _marked(self, message: PoMessage, review: Review | None) -> Iterator[Edit]:
        """Says in the format's own way that nobody has looked at a translation yet, and how good it probably is."""
        comments, file = message.comments, self._file
        line_end = file.line_end(message.start)
        first = next(iter([*comments, *message.previous]), None)
        start = message.start if first is None else first.start
        own = [comment for comment in comments if comment.text[1:2] not in _AUTOMATIC]
        ours = next((one for one in own if one.text[1:].partition(";")[0].strip() == COMMENT), None)
        line = f"# {COMMENT}" if review is None else f"# {COMMENT}; {review}"
        if ours is None:
            yield self._line(line, file.next_line(own[-1].end) if own else start, line_end)
        elif review is not None or ";" in ours.text:
            yield ours.start, ours.start + len(ours.text), line
        if "fuzzy" not in message.flags:
            flags = next((comment for comment in comments if comment.text.startswith("#,")), None)
            if flags is not None:
                yield flags.start + 2, flags.start + 2, " fuzzy," if flags.text[2:].strip() else " fuzzy"
            else:
                yield self._line("#, fuzzy", (message.previous or [message])[0].start, line_end)
        if message.previous:  # they belong to the translation that is replaced
            yield file.line_start(message.previous[0].start), file.next_line(message.previous[-1].end), ""

    def _line(self, line: str, before: int, line_end: str) -> Edit:
        """Puts a line before that of a place; if something else stands there, between them."""
        start = self._file.line_start(before)
        if self._file.text[start:before].strip().strip("#|~"):
            return before, before, f"{line_end}{line}{line_end}"
        return start, start, f"{line}{line_end}"

    def _completed(self, domain: str, header: PoMessage) -> Iterator[Edit]:
        """Says in a header what has to be said, now that something is filled."""
        text, part, file = header.msgstr[0].text, header.msgstr[0], self._file
        filled = {number: "".join(texts.values()) for number, texts in self._filled.items()}
        if (not file.declared or file.charset == "ascii") and (
            self._is_template or not all(text.isascii() for text in filled.values())
        ):
            text = re.sub(r"charset=[^ \t\n]*", "charset=UTF-8", text)
        if self._is_template and self._language:
            text = _with_value(text, "Language", self._language.replace("-", "_"))
        plural = any(message.msgid_plural for message in map(file.messages.__getitem__, filled))
        if self._plurals[domain].count is not None and (plural or (self._is_template and self._language)):
            text = _with_value(text, "Plural-Forms", self._rules[domain])
        if text != part.text:
            manner = replace(self._manner, like_source=True).for_part(file, part, [part])
            yield part.start, part.end, manner.written("msgstr", text, file.line_end(part.start))
        if self._is_template:
            yield from self._without_fuzzy(header)

    def _without_fuzzy(self, message: PoMessage) -> Iterator[Edit]:
        for comment in filter(is_flags, message.comments):
            flags = [flag.strip() for flag in comment.text[2:].split(",")]
            others = [flag for flag in flags if flag not in ("fuzzy", "")]
            if others and "fuzzy" in flags:
                yield comment.start, comment.start + len(comment.text), f"{comment.text[:2]} {', '.join(others)}"
            elif "fuzzy" in flags:
                yield self._file.line_start(comment.start), self._file.next_line(comment.end), ""


def _with_value(header: str, name: str, value: str) -> str:
    """A header with another value behind a name; in a new line if it has none."""
    line = re.compile(rf"^{name}:.*$", re.MULTILINE | re.IGNORECASE)
    if header_value(header, name) == value:
        return header
    if line.search(header):
        return line.sub(lambda _: f"{name}: {value}", header, count=1)
    return f"{header}{'' if header.endswith(chr(10)) or not header else chr(10)}{name}: {value}\n"
