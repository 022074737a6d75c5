"""Paragraphs of a text whose line ends count: lines that only a width has made are one text, all others are their own.

Lines that follow each other are one paragraph if all of this holds:

* None is blank, and all begin with the same white space. A tab or three spaces inside a line make columns, and then it
  is no part of a paragraph.
* None but the first begins as an item does: with a number or a letter and `.` or `)`, or with a sign such as `-`.
* Each but the last is full: the first word of the next one would have made it wider than the widest line around it,
  which has `LEAST_WIDTH` columns or more.
* One of them ends inside a sentence: not with a sign that ends one, and the next one begins with no capital.

The translation of a paragraph has lines of its width, after the same white space.
"""

import re
from itertools import pairwise

from ...data.scripts import is_finished
from ...data.sentences import join_texts
from .lines import broken, columns

LEAST_WIDTH = 40
_LINE_END = re.compile(r"(\r?\n)")
_COLUMNS = re.compile(r"\S.*(?:\t| {3}).*\S")
_ITEM = re.compile(r"\s*(?:\(?(?:\d+|[a-zA-Z])[.)]\s|[-*+•·‣–—#|>=~])")


class Paragraphs:
    """A text, paragraph by paragraph.

    Attributes:
        joined: The text with each paragraph in one line.
    """

    def __init__(self, text: str) -> None:
        lines = _LINE_END.split(text)
        self._ends = [*lines[1::2], ""]
        self._blocks = _blocks(lines[::2])
        self.joined = self._with_ends([_joined(block) for block in self._blocks])

    def wrapped(self, translation: str) -> str:
        """A translation of `joined`, which has as many lines, with the paragraphs in lines as they were."""
        lines = _LINE_END.split(translation)[::2]
        return self._with_ends([self._wrapped(one, block) for one, block in zip(lines, self._blocks, strict=True)])

    def _wrapped(self, line: str, block: list[str]) -> str:
        if len(block) == 1:
            return line
        indent, width = _indent(block[0]), max(map(columns, block))
        lines = broken(f"{line.strip()} ", width + 1 - columns(indent))  # a space at the end of a line has no width
        return self._ends[0].join(indent + one.rstrip() for one in lines)

    def _with_ends(self, blocks: list[str]) -> str:
        """Blocks, each with the line end of its last line."""
        last, text = -1, ""
        for content, block in zip(blocks, self._blocks, strict=True):
            last += len(block)
            text += content + self._ends[last]
        return text


def _blocks(lines: list[str]) -> list[list[str]]:
    """Lines, and paragraphs of several lines."""
    blocks = [lines[:1]]
    for before, line in pairwise(lines):
        if _may_go_on(before, line):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return [paragraph for block in blocks for paragraph in _paragraphs(block)]


def _may_go_on(before: str, line: str) -> bool:
    return (
        bool(before.strip() and line.strip())
        and _indent(before) == _indent(line)
        and not (_COLUMNS.search(before) or _COLUMNS.search(line) or _ITEM.match(line))
    )


def _paragraphs(block: list[str]) -> list[list[str]]:
    """A block, cut behind lines that are not full. A part of it is a paragraph if a line ends inside a sentence."""
    width, parts = max(map(columns, block)), [block[:1]]
    for before, line in pairwise(block):
        if width >= LEAST_WIDTH and columns(before.rstrip()) + 1 + columns(line.split()[0]) > width:
            parts[-1].append(line)
        else:
            parts.append([line])
    return [one for part in parts for one in ([part] if _is_wrapped(part) else [[line] for line in part])]


def _is_wrapped(part: list[str]) -> bool:
    return any(
        not is_finished(before) and not next(filter(str.isalpha, line), "A").isupper()
        for before, line in pairwise(part)
    )


def _joined(block: list[str]) -> str:
    if len(block) == 1:
        return block[0]
    return _indent(block[0]) + join_texts([line.strip() for line in block], are_lines=True)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
