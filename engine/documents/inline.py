"""Inline elements of XML segments: markup inside a sentence, which a translation must have, too.

In the text an element is a tag: `<t1>` and `</t1>` around its words, or `<t2/>` if it has none. The translator takes
tags for placeholders.
"""

import re
from copy import deepcopy
from itertools import chain, count
from typing import Any

from ...data.formats.xml import local_name
from .messages import looks_like_message


class Inline:
    """The content of a segment as `text` with tags, and back. The content of elements named in `codes` is markup."""

    def __init__(self, element: Any, codes: frozenset[str]) -> None:
        self._elements: dict[str, Any] = {}
        self._codes = codes
        whole = "".join(element.itertext())
        self._letter = next(name for name in chain(["t"], (f"t{n}_" for n in count())) if f"<{name}" not in whole)
        self._tag = re.compile(rf"(</?{self._letter}\d+/?>)")
        self.text = self._flatten(element)

    def _flatten(self, element: Any) -> str:
        text = element.text or ""
        for child in element:
            name = f"{self._letter}{len(self._elements) + 1}"
            self._elements[name] = child
            if self._is_code(child):
                text += f"<{name}/>"
            else:
                text += f"<{name}>{self._flatten(child)}</{name}>"
            text += child.tail or ""
        return text

    def _is_code(self, element: Any) -> bool:
        """Whether nothing in an element is to be translated."""
        protected = element.get("translate") == "no" or element.get("mtype") == "protected"
        return protected or local_name(element) in ("", *self._codes) or not (len(element) or element.text)

    def put(self, text: str, target: Any) -> bool:
        """Replaces the content of the element `target` by a translation of `self.text`.

        Returns:
            False if a tag is missing, comes twice, or tags are not nested; the element is then unchanged. In a message
            of ICU's format a tag comes as often as there are branches with it.
        """
        tags, expected = sorted(self._tag.findall(text)), sorted(self._tag.findall(self.text))
        if looks_like_message(self.text):
            tags, expected = sorted({*tags}), sorted({*expected})
        if tags != expected:
            return False
        root: list[Any] = [None, "", []]  # element to copy, text, children with their tails
        stack = [root]
        for piece in self._tag.split(text):
            if not self._tag.fullmatch(piece):
                _append_text(stack[-1], piece)
            elif piece.startswith("</"):
                if stack[-1][0] != piece[2:-1]:
                    return False
                stack.pop()
            else:
                node: list[Any] = [piece.strip("</>"), "", []]
                stack[-1][2].append([node, ""])
                if not piece.endswith("/>"):
                    stack.append(node)
        if len(stack) > 1:
            return False
        for child in list(target):
            target.remove(child)
        target.text = root[1]
        for node, tail in root[2]:
            target.append(self._built(node, tail))
        return True

    def _built(self, node: list[Any], tail: str) -> Any:
        name, text, children = node
        copy = deepcopy(self._elements[name])
        copy.tail = tail
        if f"<{name}>" in self.text:
            for child in list(copy):
                copy.remove(child)
            copy.text = text
            for child, child_tail in children:
                copy.append(self._built(child, child_tail))
        return copy


def _append_text(node: list[Any], text: str) -> None:
    if node[2]:
        node[2][-1][1] += text
    else:
        node[1] += text
