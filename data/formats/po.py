"""gettext's PO files, read as `msgfmt` reads them: every message, with the places of its parts in the file.

A file is never written anew from what was read: `PoFile.replaced` puts new text into some places, and every other byte
stays what it is.
"""

import codecs
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Literal, NamedTuple

from ...system.errors import DataError
from ..config import LANGUAGE
from ..reading import open_bytes
from .format import OtherLanguages, fits

State = Literal["translated", "fuzzy", "empty", "obsolete"]
STATES: tuple[State, ...] = ("translated", "fuzzy", "empty", "obsolete")

_TOKEN = re.compile(
    r"""
      (?P<space> (?: [ \t\r\f\v\ufeff] | \\ \r? \n )+ )
    | (?P<line_end> \n )
    | (?P<string> " (?: [^"\\\n]++ | \\ \r? \n | \\ (?: \\ \r? \n )* [^\n] )*+ " )
    | (?P<comment> \# (?! [~|] ) (?: [^\\\n]++ | \\ \r? \n | \\ )*+ )  # a backslash joins lines, in a comment as well
    | (?P<mark> \#~\|? | \#\| )
    | (?P<word> [A-Za-z_$] [A-Za-z0-9_$]* | [\[\]] )
    | (?P<number> [0-9]+ )
    """,
    re.VERBOSE,
)
_WORDS = frozenset({"domain", "msgctxt", "msgid", "msgid_plural", "msgstr", "[", "]"})
_PREVIOUS = ("#|msgctxt", "#|msgid", "#|msgid_plural")
"""Keywords of what was to be translated before, in the order in which they stand."""
_JOINED_LINES = re.compile(r"\\\r?\n")
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]+)|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "b": "\b", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "\\": "\\", '"': '"'}
_BYTE = re.compile("[\udc80-\udcff]")
_CONTEXT_END = "\x04"
"""Separates context and text in a MO file."""
_ASCII = bytes(range(0x20, 0x7F))


@dataclass(frozen=True)
class PoPart:
    """A keyword and its strings, or a comment, from `start` to `end` in the text of the file.

    Attributes:
        text: What the strings say, or the comment with its `#`.
    """

    text: str
    start: int
    end: int


@dataclass
class PoMessage:
    """A message, with its parts as the format calls them.

    Attributes:
        comments: All that stand before it, but for `previous`.
        previous: The keywords behind `#|`: what was to be translated when it was.
        msgstr: One translation, or one for each plural form.
    """

    domain: str
    comments: list[PoPart]
    previous: list[PoPart]
    msgctxt: PoPart | None
    msgid: PoPart
    msgid_plural: PoPart | None
    msgstr: list[PoPart]
    obsolete: bool

    @property
    def start(self) -> int:
        """Where its first keyword begins."""
        return (self.msgctxt or self.msgid).start

    @cached_property
    def flags(self) -> frozenset[str]:
        """Its flags, such as `c-format`."""
        lines = (comment.text[2:] for comment in self.comments if is_flags(comment))
        return frozenset(flag for line in lines for flag in re.split(r"[\s,]+", line) if flag)

    @property
    def is_header(self) -> bool:
        """Whether it describes the file instead of holding a text."""
        return not self.msgid.text and self.msgctxt is None and not self.obsolete

    @property
    def state(self) -> State:
        """How far it is translated; not at all if a plural form is empty."""
        if self.obsolete:
            return "obsolete"
        if not all(one.text for one in self.msgstr):
            return "empty"
        return "fuzzy" if "fuzzy" in self.flags else "translated"


def is_flags(comment: PoPart) -> bool:
    """Whether a comment holds flags. Since gettext 0.26, `#=` begins such a line as `#,` does."""
    return comment.text[1:2] in (",", "=", "!")


def header_value(header: str, name: str) -> str:
    """What a header says behind a name, such as `Language`; empty if it says nothing."""
    found = re.search(rf"^{re.escape(name)}:[ \t]*(.*?)[ \t]*$", header, re.MULTILINE | re.IGNORECASE)
    return found[1] if found else ""


class PoFile:
    """A PO file.

    Attributes:
        text: The whole file, decoded. In a comment, a byte that the charset has not is a lone surrogate.
        charset: In which it is read, as Python names it.
        declared: The charset that it names; an empty text if it names none, or `CHARSET`, as templates do.
        headers: The header of each domain. Nearly all files have one domain, `messages`.
        messages: All others, in order.

    Raises:
        DataError: It cannot be read; the line is named.
    """

    def __init__(self, path: Path) -> None:
        with open_bytes(path) as file:
            self._raw = file.read()
        self.path = path
        self.declared = _declared_charset(path, self._raw)
        self.charset = _python_charset(path, self.declared)
        self._lines = self._raw.split(b"\n")
        decoded = [self._decoded(line, number) for number, line in enumerate(self._lines, start=1)]
        self._starts = list(accumulate((len(line) + 1 for line in decoded), initial=0))
        self.text = "\n".join(decoded)
        found = list(_Reader(path, self.text, self.charset))
        if not found:
            raise DataError(f"{path} has no message")
        self.headers: dict[str, PoMessage] = {}
        for message in found:
            if message.is_header:
                self.headers.setdefault(message.domain, message)
        self.messages = [message for message in found if not message.is_header]

    def header(self, message: PoMessage) -> str:
        """What the header of a message's domain says; an empty text if there is none."""
        header = self.headers.get(message.domain)
        return header.msgstr[0].text if header else ""

    @property
    def languages(self) -> list[str]:
        """The languages that its headers name by their codes."""
        named = (header_value(header.msgstr[0].text, "Language") for header in self.headers.values())
        return [code for code in named if LANGUAGE.fullmatch(code)]

    def refuse_other_languages(self, wanted: str) -> None:
        """Refuses a file whose header names another target language than the one wanted.

        Raises:
            OtherLanguages: Neither is a more general form of the other.
        """
        if other := next((code for code in self.languages if not fits(code, wanted)), None):
            raise OtherLanguages(
                f"{self.path}: in {other}, as its header says (Language)",
                f", not in {wanted}; name the language of the file: --tgt-language {other}",
            )

    def counts(self) -> str:
        """How many messages there are in each state, for people."""
        found = Counter(message.state for message in self.messages)
        return ", ".join(f"{found[state]:,} {state}" for state in STATES)

    def replaced(self, edits: list[tuple[int, int, str]], charset: str) -> bytes:
        """The file with new text in some places, each from its start to its end in `text`; they do not overlap.

        Args:
            charset: That of the file, or UTF-8 for one of ASCII alone.
        """
        pieces, done = list[bytes](), 0
        for start, end, new in sorted(edits, key=lambda edit: edit[:2]):
            pieces += [self._raw[done : self._byte(start)], new.encode(charset)]
            done = self._byte(end)
        return b"".join([*pieces, self._raw[done:]])

    def line_end(self, place: int) -> str:
        """How the line of a place ends; the last line, which may have no end, is taken to end as the one before."""
        line = min(self._line(place), max(len(self._lines) - 2, 0))
        return "\r\n" if self._lines[line].endswith(b"\r") else "\n"

    def line_start(self, place: int) -> int:
        """Where the line of a place begins."""
        return self._starts[self._line(place)]

    def next_line(self, place: int) -> int:
        """Where the line behind that of a place begins; in the last line, where the file ends."""
        return min(self._starts[self._line(place) + 1], len(self.text))

    def _line(self, place: int) -> int:
        return bisect_right(self._starts, place, hi=len(self._lines)) - 1

    def _byte(self, place: int) -> int:
        """Where a place in `text` is in the bytes of the file."""
        line = self._line(place)
        before, raw, characters = self._byte_starts[line], self._lines[line], place - self._starts[line]
        decoder = codecs.getincrementaldecoder(self.charset)("surrogateescape")
        for count in range(len(raw)):  # a charset may have two codes for one character, so that encoding is no measure
            if characters <= 0:
                return before + count
            characters -= len(decoder.decode(raw[count : count + 1]))
        return before + len(raw)

    @cached_property
    def _byte_starts(self) -> list[int]:
        return list(accumulate((len(line) + 1 for line in self._lines), initial=0))

    def _decoded(self, line: bytes, number: int) -> str:
        try:
            return line.decode(self.charset)
        except UnicodeDecodeError as error:
            if line.startswith(b"#") and line[1:2] not in (b"~", b"|"):  # nobody needs to read a comment
                return line.decode(self.charset, "surrogateescape")
            wrong = f"invalid {self.declared}, which the file declares; convert it, or declare what it is"
            if not self.declared:
                wrong = "invalid UTF-8, and the file declares no charset; name it in the header, or convert the file"
            raise DataError(f"{self.path}:{number}: {wrong}") from error


def _declared_charset(path: Path, raw: bytes) -> str:
    """The charset that the header names, if no mark says that it is UTF-8.

    The header is read as bytes: whatever the charset is, ASCII is the same in it.
    """
    if raw.startswith(codecs.BOM_UTF8):
        return "UTF-8"
    try:
        headers = (message for message in _Reader(path, raw.decode("latin-1"), "latin-1") if message.is_header)
        header = next((message.msgstr[0].text for message in headers), "")
    except DataError:  # it will be raised again when the file is read
        header = ""
    found = re.search(r"charset=([^ \t\n]+)", header)
    return found[1] if found and found[1] != "CHARSET" else ""


def _python_charset(path: Path, declared: str) -> str:
    try:
        charset = codecs.lookup(declared or "utf-8").name
        if _ASCII.decode(charset).encode("ascii") == _ASCII:
            return charset
    except (LookupError, UnicodeError, ValueError):
        pass
    raise DataError(f"{path}: it declares charset={declared}, which is none; write the true one there")


class _Token(NamedTuple):
    """A comment, a keyword, a bracket, a string or a number. In a line that begins with `#|`, its kind does so, too."""

    kind: str
    start: int
    end: int
    obsolete: bool


class _Reader:
    """Reads messages in the grammar of gettext. What is wrong there for `msgfmt` is wrong here."""

    def __init__(self, path: Path, text: str, charset: str) -> None:
        self._path, self._text, self._charset = path, text, charset
        self._tokens = self._found()
        self._next = next(self._tokens)
        self._obsolete: bool | None = None  # whether the message is that is being read

    def __iter__(self) -> Iterator[PoMessage]:
        domain, comments, previous = "messages", list[PoPart](), list[PoPart]()
        last = ""
        while (kind := self._next.kind) != "end":
            if kind in _PREVIOUS and kind > last:
                previous.append(self._part(kind))
                last = kind
            elif kind == "comment" and not previous:
                token = self._take(kind)
                comments.append(PoPart(self._text[token.start : token.end].rstrip("\r"), token.start, token.end))
            elif kind == "domain":
                domain = self._part(kind).text
                self._obsolete = None
            else:
                yield self._message(domain, comments, previous)
                comments, previous, last, self._obsolete = [], [], "", None

    def _message(self, domain: str, comments: list[PoPart], previous: list[PoPart]) -> PoMessage:
        context = self._part("msgctxt") if self._next.kind == "msgctxt" else None
        msgid = self._part("msgid")
        plural = self._part("msgid_plural") if self._next.kind == "msgid_plural" else None
        translations = [self._part("msgstr", None if plural is None else 0)]
        while plural is not None and self._next.kind == "msgstr":
            translations.append(self._part("msgstr", len(translations)))
        return PoMessage(domain, comments, previous, context, msgid, plural, translations, bool(self._obsolete))

    def _part(self, keyword: str, form: int | None = None) -> PoPart:
        """A keyword, the number of a plural form where one is due, and strings."""
        if self._obsolete is None:
            self._obsolete = self._next.obsolete
        first = self._take(keyword)
        if form is not None:
            self._take("[")
            number = self._take("number")
            if int(self._text[number.start : number.end]) != form:
                raise self._fault(f"msgstr[{form}] should be here: plural forms are in order", first.start)
            self._take("]")
        strings = "#|string" if keyword in _PREVIOUS else "string"
        said, last = list[str](), first
        while not said or (self._next.kind == strings and keyword != "domain"):
            last = self._take(strings)
            said.append(self._said(last))
        return PoPart("".join(said), first.start, last.end)

    def _take(self, kind: str) -> _Token:
        token = self._next
        if token.kind != kind:
            there = "the end of the file" if token.kind == "end" else repr(self._text[token.start : token.end][:40])
            raise self._fault(f"{there} is where {kind.removeprefix('#|')} should be", token.start)
        if kind != "comment" and token.obsolete != self._obsolete:
            raise self._fault("one line of the message begins with #~, and another does not", token.start)
        self._next = next(self._tokens)
        return token

    def _said(self, token: _Token) -> str:
        """What a string says. Escapes may be bytes: those of a character of the charset together, or of none."""
        body = self._text[token.start + 1 : token.end - 1]
        if "\\" in body:
            body = _ESCAPE.sub(lambda escape: self._meant(escape, token.start), _JOINED_LINES.sub("", body))
            if _BYTE.search(body):
                body = body.encode(self._charset, "surrogateescape").decode(self._charset, "replace")
        if _CONTEXT_END in body:
            raise self._fault("the string has the character U+0004, which none may have", token.start)
        return body.partition("\0")[0]  # no program sees more of it

    def _meant(self, escape: re.Match[str], place: int) -> str:
        octal, hexadecimal, letter = escape.groups()
        if letter is None:
            code = (int(octal, 8) if octal else int(hexadecimal, 16)) & 0xFF
            return chr(code if code < 0x80 else 0xDC00 + code)  # a byte, as "surrogateescape" has it
        if letter not in _LETTERS:
            raise self._fault(rf"\{letter} is no escape; a backslash is written \\", place)
        return _LETTERS[letter]

    def _found(self) -> Iterator[_Token]:
        """The tokens of the text, and behind them `end`, again and again."""
        place, previous, obsolete, kind = 0, "", False, None
        while match := _TOKEN.match(self._text, place):
            in_comment = kind == "comment"
            start, place, kind = match.start(), match.end(), match.lastgroup
            if kind == "line_end":
                previous = previous if in_comment else ""  # as in msgfmt, `#|` before a comment holds for the next line
                obsolete = False
            elif kind == "mark":
                previous = "#|" if match[0].endswith("|") else previous
                obsolete = obsolete or match[0].startswith("#~")
            elif kind == "comment":
                yield _Token(kind, start, place, obsolete)
            elif kind == "word" and match[0] not in _WORDS:
                raise self._fault(f"{match[0][:40]} is no keyword of a PO file", start)
            elif kind == "word":
                yield _Token(previous + match[0], start, place, obsolete)
            elif kind != "space":
                yield _Token(f"{previous if kind == 'string' else ''}{kind}", start, place, obsolete)
        if place < len(self._text):
            wrong = "the string has no double quote at its end"
            raise self._fault(
                wrong if self._text[place] == '"' else f"{self._text[place]!r} is outside a string", place
            )
        while True:
            yield _Token("end", place, place, False)

    def _fault(self, what: str, place: int) -> DataError:
        return DataError(f"{self._path}:{self._text.count(chr(10), 0, place) + 1}: {what}")
