"""XML that is filled in: bytes of the file are replaced in places, in the file's own manner; all others stay."""

import re
from html.entities import html5
from pathlib import Path
from typing import IO

from ...data.formats.xml import LINE_END, Element, XmlFile
from ...data.reading import open_bytes
from ...system.errors import DataError
from .document import Fields

_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>"']+)\s*=\s*("[^"]*"|'[^']*')""")
_REFERENCE = re.compile(r"&(#[0-9]+|#[xX][0-9a-fA-F]+|\w+);")
_LINE_END_AS_WRITTEN = re.compile(r"&#(?:0*13|[xX]0*[dD]);(?:\r?\n|&#(?:0*10|[xX]0*[aA]);)|&#(?:0*10|[xX]0*[aA]);")
_CDATA = re.compile(r"\s*<!\[CDATA\[.*\]\]>\s*", re.DOTALL)
_MARKUP = re.compile(r"""<!--.*?-->|<(?:[^>"']|"[^"]*"|'[^']*')*>""", re.DOTALL)
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OWN = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
Attributes = dict[str, str | None]
"""Values to set; None removes an attribute."""


class Manner:
    """How a text is written in a file: which characters as references, and which line ends.

    Args:
        like: A text of the file, as it is written there.
        newline: The line ends of the file, where that text has none.
    """

    def __init__(self, like: str, newline: str) -> None:
        self._newline = "\r\n" if "\r\n" in like else "\n" if "\n" in like else newline
        self._cdata = bool(_CDATA.fullmatch(like)) and like.count("<![CDATA[") == 1
        written = _LINE_END_AS_WRITTEN.search(like)
        self._line_end = written[0] if written else self._newline
        self._characters = {"&": "&amp;", "<": "&lt;", "\r": "&#13;"}
        words = _MARKUP.sub("", _LINE_END_AS_WRITTEN.sub("", like))
        if ">" not in words:
            self._characters[">"] = "&gt;"
        for reference in _REFERENCE.finditer(words):
            character = _character(reference[1])
            if (len(character) == 1 and not character.isascii()) or character in ("&", "<", ">", '"', "'"):
                self._characters[character] = reference[0]

    def write(self, text: str) -> str:
        """A text as XML."""
        text = _NO_XML.sub("", text)
        if self._cdata:
            return f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>".replace("\n", self._newline)
        lines = ("".join(self._characters.get(one, one) for one in line) for line in text.split(LINE_END))
        return self._line_end.join(line.replace("\n", self._newline) for line in lines)


def _character(reference: str) -> str:
    if reference.startswith("#"):
        number = int(reference[2:], 16) if reference[1] in "xX" else int(reference[1:])
        return chr(number) if number < 0x110000 else ""
    return _OWN.get(reference) or html5.get(f"{reference};", "")


class XmlDocument:
    """A file with places for translations. What is not filled in is written as it was read, to the byte.

    Raises:
        DataError: The file is no XML, or its bytes cannot be written again.
    """

    def __init__(self, path: Path) -> None:
        self.fields = Fields()
        self.remark = ""
        self.file = XmlFile(path)
        self._changes: list[tuple[int, int, bytes]] = []
        self._attributes: dict[int, tuple[Element, Attributes]] = {}
        """By the place of the element."""
        self._inner: dict[int, tuple[Element, bytes]] = {}
        content = self.file.content
        self._newline = "\r\n" if 2 * content.count(b"\r\n") > content.count(b"\n") else "\n"
        self._refuse_if_not_the_same()

    def _refuse_if_not_the_same(self) -> None:
        """Refuses an encoding in which a character may be written in two ways."""
        encoding = self.file.encoding
        if encoding in ("utf-8", "utf-16-le", "utf-16-be"):
            return
        with open_bytes(self.file.path, text=False) as file:
            same = file.read() == self.file.content.decode().encode(encoding)
        if not same:
            raise DataError(f"{self.file.path}: {encoding} cannot be written again as it is; save the file as UTF-8")

    def manner(self, element: Element) -> Manner:
        """How the text of an element is written."""
        return Manner(self.file.inner(element).decode(), self._newline)

    def set_attributes(self, element: Element, attributes: Attributes) -> None:
        """Sets attributes of an element, beside those that were set before."""
        _, before = self._attributes.get(element.start, (element, {}))
        self._attributes[element.start] = element, before | attributes

    def set_inner(self, element: Element, inner: bytes) -> None:
        """Replaces what stands between the tags of an element."""
        self._inner[element.start] = element, inner

    def take_inner(self, element: Element) -> bytes:
        """What stands between the tags of an element, or is to stand there; whoever takes it writes it elsewhere."""
        _, inner = self._inner.pop(element.start, (element, self.file.inner(element)))
        return inner

    def insert_behind(self, element: Element, new: bytes) -> None:
        """Adds XML behind an element, with the white space that stands before that."""
        place = self.file.end(element)
        self._changes.append((place, place, self.space_before(element.start) + new))

    def insert_before(self, element: Element, new: bytes) -> None:
        """Adds XML before an element, with the white space that stands before that between them."""
        self._changes.append((element.start, element.start, new + self.space_before(element.start)))

    def remove(self, element: Element) -> None:
        """Removes an element, and the white space before it."""
        start = element.start - len(self.space_before(element.start))
        self._changes.append((start, self.file.end(element), b""))

    def space_before(self, place: int) -> bytes:
        """The white space that ends at a place."""
        before = self.file.content[max(place - 1000, 0) : place]
        return before[len(before.rstrip()) :]

    def inner_with(self, element: Element, inners: dict[int, bytes]) -> bytes:
        """What stands between the tags of an element, with another content of some elements in it, by their places."""
        file = self.file
        start, pieces = file.inner_start(element), list[bytes]()
        for one in element.descendants():
            if one.start in inners:
                pieces += [file.content[start : one.start], self._element(one, {}, inners[one.start])]
                start = file.end(one)
        return b"".join([*pieces, file.content[start : element.stop]])

    def _element(self, element: Element, attributes: Attributes, inner: bytes) -> bytes:
        """An element with other attributes and another content."""
        tag = _with_attributes(self.file.content[element.start : self.file.inner_start(element)], attributes)
        if not self.file.is_empty_tag(element):
            return tag + inner + self.file.content[element.stop : self.file.end(element)]
        return tag[:-2].rstrip() + b">" + inner + f"</{element.name}>".encode() if inner else tag

    def save(self, stream: IO[bytes]) -> None:
        """Writes the file."""
        content, place = self.file.content, 0
        for start, end, new in sorted(self._all_changes(), key=lambda change: change[:2]):
            self._write(stream, content[place:start])
            self._write(stream, new)
            place = end
        self._write(stream, content[place:])

    def _all_changes(self) -> list[tuple[int, int, bytes]]:
        changes, file = list(self._changes), self.file
        for start, (element, inner) in self._inner.items():
            _, attributes = self._attributes.get(start, (element, {}))
            changes.append((start, file.end(element), self._element(element, attributes, inner)))
        for start, (element, attributes) in self._attributes.items():
            if start not in self._inner:
                end = file.inner_start(element)
                changes.append((start, end, _with_attributes(file.content[start:end], attributes)))
        return changes

    def _write(self, stream: IO[bytes], content: bytes) -> None:
        encoding = self.file.encoding
        stream.write(content if encoding == "utf-8" else content.decode().encode(encoding, "xmlcharrefreplace"))


def _with_attributes(tag: bytes, attributes: Attributes) -> bytes:
    """A start tag with other values of attributes; new ones are added behind its last."""
    for name, value in attributes.items():
        there = list(_ATTRIBUTE.finditer(tag))
        old = next((one for one in there if one[1] == name.encode()), None)
        quote = (old or there[-1])[2][:1] if there else b'"'
        written = quote + _attribute_value(value or "", quote.decode()).encode() + quote
        if old is None:
            last = there[-1].end() if there else len(tag.rstrip(b"/>").rstrip())
            if value is not None:
                tag = tag[:last] + f" {name}=".encode() + written + tag[last:]
        elif value is None:
            tag = tag[: old.start()] + tag[old.end() :]
        else:
            tag = tag[: old.start(2)] + written + tag[old.end(2) :]
    return tag


def _attribute_value(value: str, quote: str) -> str:
    escaped = _NO_XML.sub("", value).replace("&", "&amp;").replace("<", "&lt;")
    return escaped.replace(quote, "&quot;" if quote == '"' else "&apos;")


def start_tag(name: str, attributes: dict[str, str]) -> bytes:
    """A new start tag."""
    return _with_attributes(f"<{name}>".encode(), dict(attributes))
