"""How a PO file writes its strings: how long a line is, and what begins a new one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ...data.formats.po import PoFile, PoPart
from .lines import RULES, Rules, broken, columns, first_piece, may_break

USUAL_WIDTH = 79
"""Columns of a line of gettext's, quotes included."""
_LONG = 50
"""A line of fewer columns does not show how long one may be."""
_MESSAGES_LOOKED_AT = 3_000
_ESCAPES = {"\n": r"\n", "\t": r"\t", "\b": r"\b", "\r": r"\r", "\f": r"\f", "\v": r"\v", "\a": r"\a"}
_ESCAPES |= {"\\": r"\\", '"': r"\""}
_SPECIAL = re.compile(r'[\x00-\x1f\x7f"\\]')
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_LINE_END = re.compile(r"(?<!\\)(?:\\\\)*\\n")
_BEFORE_FIRST = re.compile(r"[a-z_]+(?:\s*\[\s*\d+\s*\])?(\s*)")
_BEFORE_SECOND = re.compile(r"\n([ \t]*)$")


@dataclass(frozen=True)
class Manner:
    """How strings are written.

    Attributes:
        width: Columns of a line, quotes included; None where no text is wrapped.
        rules: By which a text is wrapped.
        splits: A string ends where a line of the text does.
        empty_first: A text of several strings begins below its keyword.
        like_source: A translation is written as its source is.
        gap: What stands between a keyword and its first string.
        indent: What stands before the others.
    """

    width: int | None = USUAL_WIDTH
    rules: Rules = "today"
    splits: bool = True
    empty_first: bool = True
    like_source: bool = True
    gap: str = " "
    indent: str = ""

    @classmethod
    def of(cls, file: PoFile) -> "Manner":
        """That of a file: of its translations, which some tools write in another way than its sources."""
        messages = [message for message in file.messages if not message.obsolete][:_MESSAGES_LOOKED_AT]
        sources = [part for one in messages for part in (one.msgid, one.msgid_plural) if part is not None]
        source, own = (
            _shown([_Strings(file, part) for part in parts])
            for parts in (sources, [part for one in messages for part in one.msgstr])
        )
        like_source = all(source.get(key, own[key]) == own[key] for key in ("width", "splits") if key in own)
        return replace(cls(like_source=like_source), **source | own)

    def for_part(self, file: PoFile, part: PoPart, like: list[PoPart], *, wraps: bool = True) -> "Manner":
        """That for one part of a message.

        Args:
            like: The sources of the message, which may differ from others.
            wraps: Its lines may be wrapped.
        """
        others, own = [_Strings(file, one) for one in like if self.like_source], _Strings(file, part)
        splits = [one.splits for one in others if one.splits is not None]
        below = [not one.bodies[0] for one in others if len(one.bodies) > 1]
        wide = self.width is not None and any(width > self.width for one in others for width in one.whole())
        return replace(
            self,
            width=self.width if wraps and not wide else None,
            splits=any(splits) if splits else self.splits,
            empty_first=any(below) if below else self.empty_first,
            gap=own.gap,
            indent=own.indent,
        )

    def written(self, keyword: str, text: str, line_end: str) -> str:
        """A keyword and a text, without the end of the last line."""
        lines = re.findall(r"[^\n]*\n|[^\n]+", text) if self.splits else [text]
        lines = [_escaped(line) for line in lines] or [""]
        before = columns(self.indent if "\n" in self.gap else f"{keyword}{self.gap}")
        if len(lines) > 1 or len(self._broken(lines[0], before)) > 1:
            if self.empty_first:
                lines.insert(0, "")
            lines[:1] = self._broken(lines[0], before)
            lines[1:] = [one for line in lines[1:] for one in self._broken(line, columns(self.indent))]
        return f"{keyword}{self.gap}" + f"{line_end}{self.indent}".join(f'"{line}"' for line in lines)

    def _broken(self, text: str, before: int) -> list[str]:
        if self.width is None:
            return [text]
        room = self.width - len('""') - columns(self.indent)
        return broken(text, room, before - columns(self.indent), self.rules)


class _Strings:
    """The strings of a part, as they are written.

    Attributes:
        bodies: What stands between the quotes of each.
        gap, indent: See `Manner`.
    """

    def __init__(self, file: PoFile, part: PoPart) -> None:
        raw = file.text[part.start : part.end]
        found = list(_STRING.finditer(raw))
        self.bodies = [match[1] for match in found]
        self._widths = [columns(raw[raw.rfind("\n", 0, match.start()) + 1 : match.end()]) for match in found]
        keyword, second = _BEFORE_FIRST.match(raw), None
        if len(found) > 1:
            second = _BEFORE_SECOND.search(raw, found[0].end(), found[1].start())
        self.gap = keyword[1] if keyword else " "
        self.indent = second[1] if second else ""

    @property
    def splits(self) -> bool | None:
        """Whether a string ends where a line of the text does; None if it has one line."""
        ends = [match.end() < len(body) for body in self.bodies for match in _LINE_END.finditer(body)]
        inside = sum(ends)
        return None if not ends or (not inside and len(self.bodies) == 1) else not inside

    def wrapped(self) -> Iterator[tuple[str, int, str]]:
        """The lines that end inside a line of the text, each with its columns and with what follows on it."""
        for (body, width), (following, _) in pairwise(zip(self.bodies, self._widths, strict=True)):
            if body and following and not _ends_line(body):
                yield body, width, following

    def whole(self) -> Iterator[int]:
        """The columns of the other lines that could be shorter."""
        for number, (body, width) in enumerate(zip(self.bodies, self._widths, strict=True), start=1):
            if (
                (number == len(self.bodies) or _ends_line(body))
                and width > _LONG
                and first_piece(body, "today") != body
            ):
                yield width


def _shown(strings: list[_Strings]) -> dict[str, Any]:
    """What strings show of how they are written, as values of a `Manner`: that with which most of them agree."""
    found: dict[str, Any] = {}
    if splits := [one.splits for one in strings if one.splits is not None]:
        found["splits"] = 2 * sum(splits) >= len(splits)
    if below := [not one.bodies[0] for one in strings if len(one.bodies) > 1]:
        found["empty_first"] = 2 * sum(below) >= len(below)
    wrapped = [line for one in strings for line in one.wrapped()]
    whole = [width for one in strings for width in one.whole()]
    ranges = [(width, width + columns(first_piece(following, "today"))) for _, width, following in wrapped]

    def agree(width: int | None) -> int:
        if width is None:
            return len(whole)
        return sum(low <= width < high for low, high in ranges) + sum(one <= width for one in whole)

    if wrapped or max(whole, default=0) > USUAL_WIDTH:
        found["width"] = width = max([USUAL_WIDTH, None, *sorted({low for low, _ in ranges})], key=agree)

        def obeyed(rules: Rules) -> int:
            return sum(
                may_break(body + following, len(body), rules)
                and columns(first_piece(following, rules)) > (width or 0) - before
                for body, before, following in wrapped
            )

        found["rules"] = max(RULES, key=obeyed)
    return found


def _ends_line(body: str) -> bool:
    return any(match.end() == len(body) for match in _LINE_END.finditer(body))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: _ESCAPES.get(match[0]) or f"\\{ord(match[0]):03o}", text)
