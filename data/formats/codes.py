"""Inline elements of XML segments: markup inside a sentence, which a translation must have, too.

In a text an element is a tag: `<t1>` and `</t1>` around its words, or `<t2/>` if it has none. Tags are placeholders, so
a model learns from such texts, and translates them, with a symbol for each tag.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

from .format import Pair
from .xml import DELETED, Element, lines_of, text_of, unwrapped

_CLOSED_BY = {"bpt": "ept", "bx": "ex", "sc": "ec"}
"""Elements that open something, and those that close it: they are not around it, and need not be nested."""
_NUMBERS = ("rid", "startRef", "i", "id")
"""Attributes that say which two of these belong together: the first that an element has."""
_SAME = ("x", "id", "rid", "i")
"""Attributes that say which code of a translation is which of its source: the first that an element has."""


@dataclass(frozen=True)
class Code:
    """A tag in the text of a segment.

    Attributes:
        element: The element that it stands for, as a whole or by its start or end.
        side: `<` opens, `</` closes; `/` does neither.
        first: The element that opens what this one closes; else `element`.
    """

    element: Element
    side: str
    first: Element

    @property
    def has_text(self) -> bool:
        """Whether it is the start or the end of an element with text in it."""
        return self.side != "/" and self.first.local_name not in _CLOSED_BY

    def tag(self, name: str) -> str:
        """How it is written in the text."""
        return f"<{name}/>" if self.side == "/" else f"{self.side}{name}>"


Part = str | Code


def parts_of(element: Element, markup: frozenset[str]) -> list[Part]:
    """The texts and codes of a segment, in order. The content of elements named in `markup` is no text."""
    parts = list(_parts(element, markup))
    opened: dict[tuple[str, str], tuple[int, Element]] = {}
    for place, one in enumerate(parts):
        if isinstance(one, str) or one.side != "/":
            continue
        name, number = one.element.local_name, _first_of(one.element, _NUMBERS)
        if name in _CLOSED_BY:
            opened[_CLOSED_BY[name], number] = place, one.element
        elif (name, number) in opened:
            before, first = opened.pop((name, number))
            parts[before], parts[place] = Code(first, "<", first), Code(one.element, "</", first)
    return parts


def _parts(element: Element, markup: frozenset[str]) -> Iterator[Part]:
    for one in element.content:
        if isinstance(one, str):
            yield one
        elif one.get("mtype") == DELETED:
            continue
        elif _is_protected(one) or one.local_name in markup or not one.content:
            yield Code(one, "/", one)
        else:
            yield from [Code(one, "<", one), *_parts(one, markup), Code(one, "</", one)]


def _is_protected(element: Element) -> bool:
    return element.get("translate") == "no" or element.get("mtype") == "protected"


def _first_of(element: Element, attributes: Sequence[str]) -> str:
    return next((value for value in map(element.get, attributes) if value), "")


def name_of_tags(*elements: Element) -> str:
    """What the names of tags begin with: the texts of the elements have no such tag."""
    text = "".join(one.whole_text for one in elements)
    return next(name for name in chain(["t"], (f"t{n}_" for n in count())) if f"<{name}" not in text)


def numbered(parts: Sequence[Part]) -> dict[Element, int]:
    """A number for each element that has a tag, from 1, in the order of the text."""
    return {first: number for number, first in enumerate(dict.fromkeys(one.first for one in _codes(parts)), start=1)}


def _codes(parts: Sequence[Part]) -> list[Code]:
    return [one for one in parts if isinstance(one, Code)]


def tagged(parts: Sequence[Part], name: str, numbers: Mapping[Element, int], *, preserves: bool) -> str:
    """The parts as a text with tags. What white space in it is text, see `unwrapped`."""
    text = "".join(one if isinstance(one, str) else one.tag(f"{name}{numbers[one.first]}") for one in parts)
    return unwrapped(text, preserves)


def cut_ends(text: str, tag: re.Pattern[str], *, alone: bool) -> tuple[str, str, str]:
    """Cuts off white space and tags that stand around a whole text.

    Args:
        tag: Finds a tag, in one group.
        alone: Whether tags without words at its ends are cut off, too.

    Returns:
        What stands before the text, the text, and what stands after it.
    """
    pieces = tag.split(text)
    first, last = 0, len(pieces)
    while first < last:
        head, tail = pieces[first], pieces[last - 1]
        if not head.strip() or (alone and head.endswith("/>") and tag.fullmatch(head)):
            first += 1
        elif not tail.strip() or (alone and tail.endswith("/>") and tag.fullmatch(tail)):
            last -= 1
        elif tag.fullmatch(head) and tail == f"</{head[1:]}":
            first, last = first + 1, last - 1
        else:
            break
    return "".join(pieces[:first]), "".join(pieces[first:last]), "".join(pieces[last:])


def pairs_of(source: Element, target: Element, markup: frozenset[str]) -> list[Pair]:
    """What there is to learn from a segment and its translation; an empty pair if there is nothing.

    Both have tags if both have the same codes, else none: what is to become of a code is not known then.
    """
    if not text_of(source, markup).strip():
        return [("", "")]
    src, tgt = parts_of(source, markup), parts_of(target, markup)
    numbers = numbered(src)
    same = _numbers_of_translation(numbers, src, tgt, markup) if numbers else {}
    if not same:
        return lines_of(text_of(source, markup), text_of(target, markup))
    name = name_of_tags(source, target)
    tag = tag_pattern(name)
    texts = tagged(src, name, numbers, preserves=source.preserves), tagged(tgt, name, same, preserves=target.preserves)
    return lines_of(*(cut_ends(text, tag, alone=False)[1] for text in texts))


def tag_pattern(name: str) -> re.Pattern[str]:
    """Finds the tags whose names begin with `name`."""
    return re.compile(rf"(</?{name}\d+/?>)")


def _numbers_of_translation(
    numbers: Mapping[Element, int], src: Sequence[Part], tgt: Sequence[Part], markup: frozenset[str]
) -> dict[Element, int]:
    """The numbers of the same codes in a translation; empty if it has not just these."""

    def content(element: Element) -> str:
        return element.whole_text if element.local_name in markup else ""

    for mark in (lambda element: _first_of(element, _SAME), content):
        there, here = (Counter((one.side, *_sort(one.first, mark)) for one in _codes(parts)) for parts in (src, tgt))
        if there == here:
            left = defaultdict[tuple[str, str], list[int]](list)
            for element, number in numbers.items():
                left[_sort(element, mark)].append(number)
            return {element: left[_sort(element, mark)].pop(0) for element in numbered(tgt)}
    return {}


def _sort(element: Element, mark: Callable[[Element], str]) -> tuple[str, str]:
    return element.local_name, mark(element)
