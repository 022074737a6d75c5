"""Inline elements of XML segments: markup inside a sentence, which a translation must have, too.

In a text an element is a tag: `<t1>` and `</t1>` around its words, or `<t2/>` if it has none. Tags are placeholders, so
a model learns from such texts, and translates them, with a symbol for each tag.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count

from ..cleaning import edges
from .format import Pair
from .xml import DELETED, TAG_MARK, Element, lines_of, text_of, unwrapped

_CLOSED_BY = {"bpt": "ept", "bx": "ex", "sc": "ec"}
"""Elements that open something, and those that close it: they are not around it, and need not be nested."""
_ANGULAR = re.compile(r"(START|CLOSE)_(.+?)(?:_\d+)?")
"""The `id` of an `x` that opens or closes something, as Angular writes it."""
_NUMBERS = ("rid", "startRef", "i", "id")
"""Attributes that say which two of these belong together: the first that an element has."""
_SAME = ("x", "id", "rid")
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
        return self.side != "/" and self.first.local_name not in (*_CLOSED_BY, "x")

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
        opens, half = _half(one.element)
        if opens:
            opened[half] = place, one.element
        elif half in opened:
            before, first = opened.pop(half)
            parts[before], parts[place] = Code(first, "<", first), Code(one.element, "</", first)
    return parts


def _parts(element: Element, markup: frozenset[str]) -> Iterator[Part]:
    for one in element.content:
        if isinstance(one, str):
            yield one
        elif (kind := one.get("mtype")) == DELETED:
            continue
        elif kind == "seg":
            yield from _parts(one, markup)
        elif _is_protected(one) or one.local_name in markup or not one.content:
            yield Code(one, "/", one)
        else:
            yield from [Code(one, "<", one), *_parts(one, markup), Code(one, "</", one)]


def _half(element: Element) -> tuple[bool, tuple[str, str]]:
    """Whether an element opens something, and what it has in common with the one that closes that."""
    name = element.local_name
    if name == "x" and (found := _ANGULAR.fullmatch(element.get("id"))):
        return found[1] == "START", ("x", found[2])
    return name in _CLOSED_BY, (_CLOSED_BY.get(name, name), _first_of(element, _NUMBERS))


def _is_protected(element: Element) -> bool:
    return element.get("translate") == "no" or element.get("mtype") == "protected"


def _first_of(element: Element, attributes: Sequence[str]) -> str:
    there = element.attributes
    for name in attributes:
        if there.get(name):
            return there[name]
    return ""


def name_of_tags(*elements: Element) -> str:
    """What the names of tags begin with: the texts of the elements have no such tag."""
    text = "".join(one.whole_text for one in elements)
    return next(name for name in chain(["t"], (f"t{n}_" for n in count())) if f"<{name}" not in text)


def numbered(parts: Sequence[Part]) -> dict[Element, int]:
    """A number for each element that has a tag, from 1, in the order of the text."""
    return {one.first: number for number, one in enumerate(_begun(parts), start=1)}


def _begun(parts: Sequence[Part]) -> list[Code]:
    """All codes but those that close another one."""
    return [one for one in parts if isinstance(one, Code) and one.side != "</"]


def tagged(parts: Sequence[Part], name: str, numbers: Mapping[Element, int], *, preserves: bool) -> str:
    """The parts as a text with tags. What white space in it is text, see `unwrapped`."""
    text = "".join(one.replace(TAG_MARK, "") if isinstance(one, str) else TAG_MARK for one in parts)
    tags = (one.tag(f"{name}{numbers[one.first]}") for one in parts if isinstance(one, Code))
    return re.sub(TAG_MARK, lambda _: next(tags), unwrapped(text, preserves))


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
    before, inner, after = edges("".join(pieces[first:last]))
    return "".join(pieces[:first]) + before, inner, after + "".join(pieces[last:])


def pairs_of(source: Element, target: Element, markup: frozenset[str]) -> list[Pair]:
    """What there is to learn from a segment and its translation; an empty pair if there is nothing.

    Both have tags if both have the same codes, else none: what is to become of a code is not known then.
    """
    texts = text_of(source, markup), text_of(target, markup)
    if not all(map(str.strip, texts)):
        return [("", "")]
    return _tagged_pairs(source, target, markup) or lines_of(*texts)


def _tagged_pairs(source: Element, target: Element, markup: frozenset[str]) -> list[Pair]:
    """The pairs with tags; none if the codes of the two texts differ, or those of two lines."""
    if not (source.elements and target.elements):
        return []
    src, tgt = parts_of(source, markup), parts_of(target, markup)
    numbers = numbered(src)
    same = _same_codes(numbers, src, tgt)
    if not same:
        return []
    name = name_of_tags(source, target)
    tag = tag_pattern(name)
    whole = tagged(src, name, numbers, preserves=source.preserves), tagged(tgt, name, same, preserves=target.preserves)
    pairs = lines_of(*(cut_ends(text, tag, alone=False)[1] for text in whole))
    return pairs if all(sorted(tag.findall(one)) == sorted(tag.findall(other)) for one, other in pairs) else []


def tag_pattern(name: str) -> re.Pattern[str]:
    """Finds the tags whose names begin with `name`."""
    return re.compile(rf"(</?{name}\d+/?>)")


def _same_codes(numbers: Mapping[Element, int], src: Sequence[Part], tgt: Sequence[Part]) -> dict[Element, int]:
    """The numbers of the same codes in a translation; empty if it has not just these.

    Two codes are the same if they have the same number and content. If that does not fit for all codes, the content
    alone decides, and then the number alone.
    """
    there, here = _begun(src), _begun(tgt)
    if len(there) != len(here):
        return {}
    for marks in (_number_and_content, _content, _number):
        wanted, found = [(one, marks(one)) for one in there], [(one, marks(one)) for one in here]
        if sorted(mark for _, mark in wanted) == sorted(mark for _, mark in found):
            return _in_turn(wanted, found, numbers)
    return {}


_Marks = tuple[str, ...]
_Marked = list[tuple[Code, _Marks]]


def _in_turn(there: _Marked, here: _Marked, numbers: Mapping[Element, int]) -> dict[Element, int]:
    """Numbers for codes, of those with the same marks: first where the codes have the same number, then in order."""
    left = defaultdict[_Marks, list[Code]](list)
    for code, marks in there:
        left[marks].append(code)
    taken = dict[Element, int]()
    for code, marks in here:
        if (same := next((one for one in left[marks] if _number(one) == _number(code)), None)) is not None:
            left[marks].remove(same)
            taken[code.first] = numbers[same.first]
    return taken | {code.first: numbers[left[marks].pop(0).first] for code, marks in here if code.first not in taken}


def _number(code: Code) -> _Marks:
    return code.side, code.first.local_name, _first_of(code.first, _SAME)


def _content(code: Code) -> _Marks:
    return code.side, code.first.local_name, "" if code.has_text else code.first.whole_text


def _number_and_content(code: Code) -> _Marks:
    return *_number(code), *_content(code)
