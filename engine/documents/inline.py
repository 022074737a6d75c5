"""Tags of inline elements in a translation, and back to XML."""

from collections import Counter
from collections.abc import Iterable

from ...data.formats.codes import Code, cut_ends, name_of_tags, numbered, parts_of, tag_pattern, tagged
from ...data.formats.xml import Element
from ...data.placeholders import has_words
from .document import Cut
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
    """The content of a segment as `text` with tags, and back. The content of elements named in `markup` is no text.

    Attributes:
        text: Without the tags around all of it.
    """

    def __init__(self, document: XmlDocument, element: Element, markup: frozenset[str]) -> None:
        self._manner = document.manner(element)
        parts, name = parts_of(element, markup), name_of_tags(element)
        numbers = numbered(parts)
        codes = {one.tag(f"{name}{numbers[one.first]}"): one for one in parts if isinstance(one, Code)}
        self._written = {tag: _as_written(document, code) for tag, code in codes.items()}
        """The XML of each tag."""
        self._around = {tag for tag, code in codes.items() if code.has_text}
        """The tags of elements that have text in them."""
        self._tag = tag_pattern(name)
        whole = tagged(parts, name, numbers, preserves=element.preserves)
        self._before, self.text, self._after = cut_ends(whole, self._tag, alone=False)

    def shorter(self, text: str, translation: str) -> Cut | None:
        """For a line of the text whose tags did not come through: the line without the tags at its ends, between
        these; None if they did, or if it has none there."""
        if Counter(self._tag.findall(text)) == Counter(self._tag.findall(translation)):
            return None
        before, inner, after = cut_ends(text, self._tag, alone=True)
        return (before, inner, after) if (before or after) and has_words(inner) else None

    def xml(self, text: str) -> bytes | None:
        """A translation of `self.text` as XML.

        Returns:
            None if a tag is missing, comes twice, or is not nested: those of elements with text must be, all others
            where they are in the source. In an ICU message a tag may come again.
        """
        tags, expected = self._tag.findall(text), self._tag.findall(self.text)
        is_nested = are_nested(filter(self._around.__contains__, tags))
        is_nested &= are_nested(tags) or not are_nested(expected)
        if looks_like_message(self.text):  # its branches may have the same markup, and its translation more branches
            tags, expected = set(tags), set(expected)
        if sorted(tags) != sorted(expected) or not is_nested:
            return None
        pieces = self._tag.split(self._before + text + self._after)
        return b"".join(self._written.get(piece) or self._manner.write(piece).encode() for piece in pieces if piece)


def _as_written(document: XmlDocument, code: Code) -> bytes:
    """A code in the file: an element, or what opens or closes one that has text."""
    element, file = code.element, document.file
    if code.side == "<" and code.has_text:
        return file.content[element.start : file.inner_start(element)]
    if code.side == "</" and code.has_text:
        return file.content[element.stop : file.end(element)]
    return file.outer(element)
