"""Inline elements of XML segments: markup inside a sentence, which a translation must have, too.

In the text an element is a tag: `<t1>` and `</t1>` around its words, or `<t2/>` if it has none. The translator takes
tags for placeholders.
"""

import re
from collections.abc import Iterable
from itertools import chain, count

from ...data.formats.xml import DELETED, Element, unwrapped
from .messages import looks_like_message
from .xml import XmlDocument


def are_nested(tags: Iterable[str]) -> bool:
    """Whether each `</t1>` closes the last tag that was opened, and none is left open."""
    opened: list[str] = []
    for tag in tags:
        if tag.startswith("</"):
            if not opened or opened.pop() != tag[2:-1]:
                return False
        elif not tag.endswith("/>"):
            opened.append(tag[1:-1])
    return not opened


class Inline:
    """The content of a segment as `text` with tags, and back. The content of elements named in `codes` is markup."""

    def __init__(self, document: XmlDocument, element: Element, codes: frozenset[str]) -> None:
        self._document, self._codes = document, codes
        self._manner = document.manner(element)
        self._written: dict[str, bytes] = {}
        """The XML of each tag."""
        whole = element.whole_text
        self._letter = next(name for name in chain(["t"], (f"t{n}_" for n in count())) if f"<{name}" not in whole)
        self._tag = re.compile(rf"(</?{self._letter}\d+/?>)")
        self._count = 0
        self.text = unwrapped(self._flatten(element), element.preserves)

    def _flatten(self, element: Element) -> str:
        text = ""
        for one in element.content:
            if isinstance(one, str):
                text += one
            elif one.get("mtype") != DELETED:
                text += self._flatten_child(one)
        return text

    def _flatten_child(self, child: Element) -> str:
        self._count += 1
        name, file = f"{self._letter}{self._count}", self._document.file
        if self._is_code(child):
            self._written[f"<{name}/>"] = file.outer(child)
            return f"<{name}/>"
        self._written[f"<{name}>"] = file.content[child.start : file.inner_start(child)]
        self._written[f"</{name}>"] = file.content[child.stop : file.end(child)]
        return f"<{name}>{self._flatten(child)}</{name}>"

    def _is_code(self, element: Element) -> bool:
        """Whether nothing in an element is to be translated."""
        protected = element.get("translate") == "no" or element.get("mtype") == "protected"
        return protected or element.local_name in self._codes or not element.content

    def xml(self, text: str) -> bytes | None:
        """A translation of `self.text` as XML.

        Returns:
            None if a tag is missing, comes twice, or tags are not nested. In an ICU message a tag may come again.
        """
        tags, expected = self._tag.findall(text), self._tag.findall(self.text)
        if looks_like_message(self.text):  # its branches may have the same markup, and its translation more branches
            tags, expected = set(tags), set(expected)
        if sorted(tags) != sorted(expected):
            return None
        if not are_nested(self._tag.findall(text)):
            return None
        return b"".join(
            self._written[piece] if self._tag.fullmatch(piece) else self._manner.write(piece).encode()
            for piece in self._tag.split(text)
            if piece
        )
