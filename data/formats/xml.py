"""XML files that other people wrote: read by expat, element by element, each with its place in the file.

Nothing outside a file is opened, and no entity is expanded in a text. Places are counted in the bytes of the file in
UTF-8: whoever fills a file in replaces bytes there, and leaves all others alone.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html.entities import html5
from itertools import chain
from pathlib import Path
from typing import IO
from xml.parsers import expat

from ...system.errors import DataError
from ..cleaning import edges
from ..reading import open_bytes
from .format import Pair

XML_LANG = "xml:lang"
_BLOCK_BYTES = 1 << 16
_DEEPEST = 256
"""Elements are inside each other at most this deep."""
_LARGEST = 10_000_000
"""An element that is read as a whole, such as a unit, has at most this many bytes; so has a tag."""
DELETED = "x-sdl-deleted"
"""The type of a mark around words that somebody has taken out, in Trados."""
_ALONE = frozenset({"ph", "x", "ut"})
"""Codes that neither open nor close anything."""
_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_DECLARED = re.compile(rb"""<\?xml\b[^>]*?\bencoding\s*=\s*["']([A-Za-z][\w.:-]*)["']""")
_TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")
_WRAPPED = re.compile(r"[ \t]*(?<!\r)\n[ \t\n]*")
TAG_MARK = "\ufdd0"
"""Stands for a tag in a text, see `codes`; a noncharacter, which no text has."""
_GOES_ON = re.compile(rf"([^\s.!?:;…{TAG_MARK}]{TAG_MARK}*)[ \t]*\n[ \t]*(?={TAG_MARK}*(\w))")
LINE_END = "\r\n"
"""A line end that is written as a reference, `&#10;`, and not as white space between words."""


class Element:
    """An element, or what stands between texts without being one: an instruction, an entity that nobody knows.

    Attributes:
        name: As it is written, with its prefix; `?` for an instruction, `&own;` for an entity.
        parent: The element around it; None inside the elements that are read as a whole, and for the root.
        content: Texts and elements, in order.
        preserves: Line ends in its text count, by `xml:space`.
        start, stop: Where its start tag begins, and where its end tag does; for an empty element, where it ends.
    """

    __slots__ = ("attributes", "content", "name", "parent", "preserves", "start", "stop")

    def __init__(
        self, name: str, attributes: dict[str, str], parent: "Element | None", start: int, preserves: bool
    ) -> None:
        self.name, self.attributes, self.parent, self.start = name, attributes, parent, start
        self.preserves, self.stop = preserves, start
        self.content: list[str | Element] = []

    @property
    def local_name(self) -> str:
        """Its name without a prefix."""
        return self.name.rpartition(":")[2] if ":" in self.name else self.name

    def get(self, name: str, default: str = "") -> str:
        """The value of an attribute, named with its prefix."""
        return self.attributes.get(name, default)

    @property
    def elements(self) -> list["Element"]:
        """The elements right in it."""
        return [one for one in self.content if isinstance(one, Element)]

    def children(self, name: str) -> list["Element"]:
        """The elements right in it that have a name, whatever its prefix."""
        return [one for one in self.content if isinstance(one, Element) and one.local_name == name]

    def child(self, name: str) -> "Element | None":
        """The first of these children, if there is one."""
        return next(iter(self.children(name)), None)

    def descendants(self) -> Iterator["Element"]:
        """All elements in it, at any depth, in order."""
        for one in self.elements:
            yield one
            yield from one.descendants()

    def around(self) -> Iterator["Element"]:
        """The element and those around it, from the inside out."""
        one: Element | None = self
        while one is not None:
            yield one
            one = one.parent

    @property
    def whole_text(self) -> str:
        """All text in it, that of markup, too."""
        return "".join(one if isinstance(one, str) else one.whole_text for one in self.content)

    @property
    def is_blank(self) -> bool:
        """Whether there is no text in it."""
        return all(one.isspace() or not one if isinstance(one, str) else one.is_blank for one in self.content)


@dataclass(frozen=True)
class Kind:
    """A kind of XML file.

    Attributes:
        root: The name of the outermost element.
        names: Of the elements that are read, each as a whole, whatever their prefix.
    """

    root: str
    names: frozenset[str]


def elements(path: Path, kind: Kind) -> Iterator[Element]:
    """The elements of a file that count, each as soon as it is complete, and then forgotten.

    Raises:
        DataError: The file is not of this kind, no XML, or beyond the bounds of depth and size; with the line.
    """
    with open_bytes(path, text=False) as file:
        _, blocks = _in_utf8(path, file)
        for element in _parsed(path, blocks, kind):
            yield element
            element.content.clear()


class XmlFile:
    """A file in memory, to be filled in.

    Attributes:
        content: Its bytes, in UTF-8.
        encoding: What it is written in.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_bytes(path, text=False) as file:
            self.encoding, blocks = _in_utf8(path, file)
            self.content = b"".join(blocks)

    def elements(self, kind: Kind) -> list[Element]:
        """The elements that count."""
        whole = memoryview(self.content)
        blocks = (bytes(whole[i : i + _BLOCK_BYTES]) for i in range(0, len(whole), _BLOCK_BYTES))
        return list(_parsed(self.path, blocks, kind))

    def inner_start(self, element: Element) -> int:
        """Where the start tag of an element ends."""
        match = _TAG.match(self.content, element.start)
        assert match is not None  # expat has read it
        return match.end()

    def is_empty_tag(self, element: Element) -> bool:
        """Whether it is written as one tag: `<target/>`."""
        return self.content.endswith(b"/>", element.start, self.inner_start(element))

    def end(self, element: Element) -> int:
        """Where an element ends."""
        if element.name.startswith("&"):
            return element.start + len(element.name.encode())
        if element.name == "?":
            return self.content.index(b"?>", element.start) + 2
        return element.stop if self.is_empty_tag(element) else self.content.index(b">", element.stop) + 1

    def inner(self, element: Element) -> bytes:
        """What stands between its tags, as it is written."""
        return self.content[self.inner_start(element) : element.stop]

    def outer(self, element: Element) -> bytes:
        """An element as it is written."""
        return self.content[element.start : self.end(element)]


def _parsed(path: Path, blocks: Iterable[bytes], kind: Kind) -> Iterator[Element]:
    reader = _Reader(path, kind)
    for block in blocks:
        yield from reader.read(block)
    yield from reader.read(b"", last=True)


class _Reader:
    """Collects the elements that count from the events of expat."""

    def __init__(self, path: Path, kind: Kind) -> None:
        self._path, self._kind = path, kind
        self._open: list[Element] = []
        self._kept: Element | None = None
        """The outermost of the open elements that is read as a whole."""
        self._complete: list[Element] = []
        self._fed, self._block, self._before = 0, b"", b""
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.CommentHandler = lambda _: None
        parser.ProcessingInstructionHandler = self._instruction
        parser.DefaultHandler = self._other  # which keeps expat from expanding entities

    def read(self, block: bytes, *, last: bool = False) -> list[Element]:
        """Reads on.

        Returns:
            The elements that have become complete.
        """
        self._before, self._block = self._block, block
        self._fed += len(block)
        try:
            self._parser.Parse(block, last)
        except expat.ExpatError as error:
            problem = expat.ErrorString(error.code)
            raise DataError(f"{self._path}:{error.lineno}: not well-formed XML: {problem}") from error
        begun = self._kept.start if self._kept else max(self._parser.CurrentByteIndex, 0)
        if self._fed - begun > _LARGEST + 2 * _BLOCK_BYTES:
            raise self._refusal(f"an element or a tag of more than {_LARGEST:,} bytes")
        complete, self._complete = self._complete, []
        return complete

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        around = self._open[-1] if self._open else None
        if len(self._open) == _DEEPEST:
            raise self._refusal(f"more than {_DEEPEST} elements in each other")
        preserves = around is not None and around.preserves
        if "xml:space" in attributes:
            preserves = attributes["xml:space"] == "preserve"
        # no circles: what was read is freed at once
        parent = around if self._kept is None else None
        element = Element(name, attributes, parent, self._parser.CurrentByteIndex, preserves)
        if self._kept is not None and around is not None:
            around.content.append(element)
        elif element.local_name in self._kind.names:
            self._kept = element
        elif around is None and element.local_name != self._kind.root:
            raise self._refusal(f"its outermost element is <{name}>, not <{self._kind.root}>")
        self._open.append(element)

    def _end(self, name: str) -> None:
        del name
        element = self._open.pop()
        element.stop = self._parser.CurrentByteIndex
        if element is self._kept:
            self._complete.append(element)
            self._kept = None

    def _text(self, text: str) -> None:
        if self._kept is not None:
            if text == "\n" and self._is_reference() and self._open[-1].content[-1:] != ["\r"]:
                text = LINE_END
            self._open[-1].content.append(text)

    def _is_reference(self) -> bool:
        """Whether the character being read is written as `&#10;`."""
        place = self._parser.CurrentByteIndex - self._fed + len(self._block)
        return (self._block[place] if place >= 0 else self._before[place]) == ord("&")

    def _instruction(self, target: str, data: str) -> None:
        del target, data
        self._add("?")

    def _other(self, text: str) -> None:
        """Takes an entity that is not one of XML's own: the character that it is in HTML, or itself."""
        if text.startswith("&"):
            if known := html5.get(text[1:]):
                self._text(known)
            else:
                self._add(text)

    def _add(self, name: str) -> None:
        if self._kept is not None:
            self._open[-1].content.append(Element(name, {}, None, self._parser.CurrentByteIndex, False))

    def _refusal(self, problem: str) -> DataError:
        return DataError(f"{self._path}:{self._parser.CurrentLineNumber}: {problem}")


def _in_utf8(path: Path, file: IO[bytes]) -> tuple[str, Iterator[bytes]]:
    """The encoding of a file, and its content in blocks of UTF-8."""
    head = file.read(_BLOCK_BYTES)
    encoding = _encoding(path, head)
    blocks = chain([head], iter(lambda: file.read(_BLOCK_BYTES), b""))
    return encoding, blocks if encoding == "utf-8" else _decoded(path, blocks, encoding)


def _encoding(path: Path, head: bytes) -> str:
    """What a mark says, else two bytes for a character, else the declaration."""
    marked = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    wide = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}.get(head[:2])
    if marked or wide:
        return marked or str(wide)
    declared = _DECLARED.match(head[:1024].lstrip())
    name = declared[1].decode("ascii") if declared else "utf-8"
    try:
        codec = codecs.lookup(name)
        b"<".decode(name)
    except (LookupError, UnicodeError):
        if name.lower().startswith(("utf-16", "utf16", "ucs-2")):  # it has no two bytes for a character
            return "utf-8"
        raise DataError(f"{path}:1: it declares encoding={name}, which is none; write the true one there") from None
    return codec.name


def _decoded(path: Path, blocks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    try:
        for block in chain(blocks, [b""]):
            text = decoder.decode(block, not block)
            line += text.count("\n")
            yield text.encode()
    except UnicodeError as error:
        raise DataError(f"{path}:{line}: not {encoding}, which the file declares; near this line") from error


def text_of(element: Element, codes: frozenset[str]) -> str:
    """The text of a segment, without what stands inside elements that hold markup instead of text.

    A line end in it is white space, see `unwrapped`. A code by itself, such as a line break, may
    stand between two words: a space keeps them apart.

    Args:
        codes: Names of the elements whose content is markup; what follows them is text.
    """
    return unwrapped(_text_of(element, codes), element.preserves)


def unwrapped(text: str, preserves: bool) -> str:
    """A text without the line ends that are white space between its words.

    Args:
        preserves: Line ends count, but for those inside a sentence: the next line begins with a small letter.
    """
    if "\n" not in text:
        return text
    if preserves:
        return _GOES_ON.sub(lambda found: f"{found[1]} " if found[2].islower() else found[0], text)
    before, inner, after = edges(text)
    return before + _WRAPPED.sub(" ", inner) + after


def lines_of(src: str, tgt: str) -> list[Pair]:
    """The pairs of two texts: line by line where their line ends count and both have the same number of lines."""
    if "\n" not in src or "\n" not in tgt:
        return [(src, tgt)] if src.strip() and tgt.strip() else [("", "")]
    lines = [[line for line in text.split("\n") if line.strip()] for text in (src, tgt)]
    if not all(lines):
        return [("", "")]
    return list(zip(*lines, strict=True)) if len(lines[0]) == len(lines[1]) else [(src, tgt)]


def _text_of(element: Element, codes: frozenset[str]) -> str:
    text, gap = "", False
    for one in element.content:
        if isinstance(one, str):
            text += f" {one}" if gap and text[-1:].isalnum() and one[:1].isalnum() else one
            gap = False
            continue
        name = one.local_name
        gap = name in _ALONE
        if one.name.startswith("&"):
            text += one.name
        elif name not in codes and one.get("mtype") != DELETED:
            text += _text_of(one, codes)
    return text
