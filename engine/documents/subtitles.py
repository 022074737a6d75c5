"""Subtitles in SRT and WebVTT: the text of each cue is translated; numbers, times and settings stay.

The formats have no mark for a translation that nobody has reviewed.
"""

import re
from collections.abc import Callable
from html import escape, unescape
from itertools import groupby, pairwise
from pathlib import Path

from ...data.config import DataConfig
from ...data.formats import suffix_of
from ...data.sentences import join_texts
from ...system.errors import DataError
from .document import BYTE_ORDER_MARK, RawDocument, line_end

_TIME = re.compile(r"\s*(\d+:)?\d{1,2}:\d{2}[,.]\d{3}\s+-->\s+(\d+:)?\d{1,2}:\d{2}[,.]\d{3}.*")
_CODE = re.compile(r"<[^<>]*>|\{[^{}]*\}")
"""A tag such as `<i>` and `<v Mary Ann>`, or a code such as `{\\an8}`: it has no width, and no line end inside."""
_MOMENT = re.compile(r"<(?:\d+:)?\d{2}:\d{2}\.\d{3}>")
"""A time inside a WebVTT text, at which the next word comes. A translation has its words in another order."""
_FRAME = re.compile(
    r"(?P<before>\{\\[^{}]*\}\s*)(?P<rest>.*)"
    r"|(?P<opens><(?P<name>\w+)[^<>]*>)(?P<inner>.*)(?P<closes></(?P=name)>)"
)
"""The position of a text, or a tag around all of it: it is translated without them."""
_DASHES = ("-", "–", "—")


class SubtitleDocument(RawDocument):
    """Translates every cue. The lines of a cue are one text, unless several speak (`- Yes.`): then each has a text.

    In SRT a blank line inside a cue parts two texts of it. In WebVTT it ends the cue; a text behind it belongs to none,
    which is said, if it is no comment (`NOTE`), style or region. Entities of WebVTT such as `&gt;` are what they stand
    for, and a time inside a text is left out, which is said, too.
    """

    def __init__(self, path: Path, config: DataConfig) -> None:
        super().__init__(path, config)
        lines = [line.removeprefix(BYTE_ORDER_MARK).strip() for line in self._pieces]
        times = [number for number, line in enumerate(lines) if _TIME.fullmatch(line)]
        if not times:
            raise DataError(f"{path} has no cue: no line such as 00:00:01,000 --> 00:00:02,500")
        outside, is_vtt = 0, suffix_of(path) == ".vtt"
        self._has_entities = is_vtt
        moments = sum(len(_MOMENT.findall(line)) for line in lines) if is_vtt else 0
        if moments:
            lines = [_MOMENT.sub("", line).strip() for line in lines]
        for time, following in pairwise([*times, len(lines)]):
            blocks = _blocks(lines, time + 1, following)
            if following < len(lines) and blocks and blocks[-1][1] == following:  # what is right before the next time
                blocks = _without_name(lines, blocks, named=is_vtt and blocks[-1][0] > time + 1)
            if is_vtt:
                spoken = [block for block in blocks if block[0] == time + 1]
                others = [lines[first] for first, _ in blocks if first > time + 1]
                outside += sum(not re.match(r"NOTE\b|STYLE$|REGION$", line) for line in others)
                blocks = spoken
            for first, last in blocks:
                self._add(lines, first, last)
        self.remark = f"{path}: {len(times):,} cues"
        if moments:
            self.remark += f"; left out {moments:,} of the times at which a word comes"
        if outside:
            self.remark += f"; {outside:,} texts behind a blank line are in no cue, and stay as they are"

    def _add(self, lines: list[str], first: int, last: int) -> None:
        """Adds the text in lines, of which none is blank."""
        turns = [number for number in range(first, last) if lines[number].startswith(_DASHES)]
        if len(turns) > 1 and turns[0] == first:
            for start, stop in pairwise([*turns, last]):
                text = join_texts(lines[start:stop], are_lines=True)
                self._add_lines(start, stop, text[0] + " ", text[1:].strip())
        else:
            self._add_lines(first, last, "", join_texts(lines[first:last], are_lines=True))

    def _add_lines(self, first: int, last: int, before: str, text: str) -> None:
        after = ""
        while (frame := _FRAME.fullmatch(text)) is not None:
            if frame["before"]:
                before, text = before + frame["before"], frame["rest"]
            elif f"<{frame['name']}" in frame["inner"]:  # two of them, or one in another
                break
            else:
                before, text, after = before + frame["opens"], frame["inner"], frame["closes"] + after
        if not text:
            return
        if not self._has_entities:
            self.fields.add(text, lambda words: self._put(first, last, before + words + after))
            return
        codes = frozenset(_CODE.findall(text))
        self.fields.add(
            _outside_codes(unescape, text, codes),
            lambda words: self._put(first, last, before + _outside_codes(_escaped, words, codes) + after),
        )

    def _put(self, first: int, last: int, text: str) -> bool:
        """Replaces lines by a text, in at most as many and about equally long lines."""
        end = line_end(self._pieces[first])
        width = max(-(-_width(text) // (last - first)), 1)
        while len(lines := _wrapped(text, width)) > last - first:
            width += 1
        return self._replace(first, last, end.join(lines))


def _outside_codes(change: Callable[[str], str], text: str, codes: frozenset[str]) -> str:
    """Changes what is between these codes."""
    parts = re.split(f"({'|'.join(map(re.escape, codes))})", text) if codes else [text]
    return "".join(part if part in codes else change(part) for part in parts)


def _escaped(text: str) -> str:
    return escape(text, quote=False)


def _blocks(lines: list[str], first: int, end: int) -> list[tuple[int, int]]:
    """The first line of each run of lines with text, and the one behind its last."""
    runs = [list(run) for text, run in groupby(range(first, end), lambda number: bool(lines[number])) if text]
    return [(run[0], run[-1] + 1) for run in runs]


def _without_name(lines: list[str], blocks: list[tuple[int, int]], *, named: bool) -> list[tuple[int, int]]:
    """The same runs without the number or name of the next cue, which is the last line.

    Args:
        named: A line alone is a name, whatever it is; else a number is one.
    """
    first, last = blocks[-1]
    if not (lines[last - 1].isdecimal() or (named and last - first == 1)):
        return blocks
    return [*blocks[:-1], *([(first, last - 1)] if last - 1 > first else [])]


def _width(text: str) -> int:
    """How many characters are seen."""
    return len(_CODE.sub("", text))


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of a width, or wider where a word is; codes stay whole, and touch what they touch."""
    whole = _CODE.sub(lambda code: code[0].replace(" ", "\0"), text)
    lines: list[str] = []
    for word in whole.split():
        word = word.replace("\0", " ")
        if lines and _width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines or [""]
