"""Subtitles in SRT and WebVTT: the text of each cue is translated; numbers, times and settings stay.

The formats have no mark for a translation that nobody has reviewed.
"""

import re
import textwrap
from itertools import pairwise
from pathlib import Path

from ...data.config import DataConfig
from ...data.sentences import join_texts
from ...system.errors import DataError
from .document import RawDocument, line_end

_TIME = re.compile(r"\s*(\d+:)?\d{1,2}:\d{2}[,.]\d{3}\s+-->\s+(\d+:)?\d{1,2}:\d{2}[,.]\d{3}.*")


class SubtitleDocument(RawDocument):
    """Translates every cue. The lines of a cue are one text, unless each line has another speaker (`- Yes.`)."""

    def __init__(self, path: Path, config: DataConfig) -> None:
        del config
        super().__init__(path)
        lines = [line.strip() for line in self._pieces]
        times = [number for number, line in enumerate(lines) if _TIME.fullmatch(line)]
        for time, following in pairwise([*times, len(lines)]):
            self._add(lines, time + 1, following)
        if not times:
            raise DataError(f"{path} has no cue: no line such as 00:00:01,000 --> 00:00:02,500")
        self.remark = f"{path}: {len(times):,} cues"

    def _add(self, lines: list[str], first: int, end: int) -> None:
        """Adds the text of a cue: from line `first` to a blank one, or to the number of the next cue.

        `end` is the line of the next cue's times, or the end of the file.
        """
        last = first
        while last < end and lines[last]:
            last += 1
        if last == end < len(lines) and last > first and lines[last - 1].isdecimal():  # no blank line in between
            last -= 1
        spoken = lines[first:last]
        if len(spoken) > 1 and all(line.startswith(("-", "–", "—")) for line in spoken):
            for number, line in enumerate(spoken, start=first):
                self._add_lines(number, number + 1, line[0] + " ", line[1:].strip())
        elif spoken:
            self._add_lines(first, last, "", join_texts(spoken))

    def _add_lines(self, first: int, last: int, before: str, text: str) -> None:
        self.fields.add(text, lambda translation: self._put(first, last, before + translation))

    def _put(self, first: int, last: int, text: str) -> bool:
        """Replaces lines by a text, in about equally long lines."""
        count, end = last - first, line_end(self._pieces[first])
        width = max(-(-len(text) // count), max(map(len, text.split()), default=1))
        lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
        while len(lines) > count:
            width += 1
            lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
        self._pieces[first:last] = [*(line + end for line in lines), *[""] * (count - len(lines))]
        return True
