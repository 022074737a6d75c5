"""Subtitles in SRT and WebVTT: the text of each cue is translated; numbers, times and settings stay.

The formats have no mark for a translation that nobody has reviewed.
"""

import re
from collections.abc import Callable, Container, Mapping
from html import escape, unescape
from itertools import count, groupby, pairwise
from pathlib import Path

from ...data.config import DataConfig
from ...data.formats import suffix_of
from ...data.placeholders import placeholders
from ...data.sentences import join_texts
from ...system.errors import DataError
from .document import BYTE_ORDER_MARK, RawDocument, line_end

_TIME = re.compile(r"\s*(\d+:)?\d{1,2}:\d{2}[,.]\d{3}\s+-->\s+(\d+:)?\d{1,2}:\d{2}[,.]\d{3}.*")
_CODE = re.compile(r"<[^<>]*>|\{[^{}]*\}")
"""A tag such as `<i>` and `<v Mary Ann>`, or a code such as `{\\an8}`: it has no width, and no line end inside."""
_MOMENT = re.compile(r"<(?:\d+:)?\d{2}:\d{2}\.\d{3}>")
"""A time inside a WebVTT text, at which the next word comes. A translation has its words in another order."""
_TAG = re.compile(r"<(?P<closes>/?)(?P<name>(?i:b|c|font|i|lang|rt|ruby|s|u|v))(?:[\s.=][^<>]*)?>")
"""A tag of subtitles. Other words in angle brackets may be text: `<door creaks>`."""
_AROUND = rf"\{{\\[^{{}}]*\}}|{_TAG.pattern}|&(?:lrm|rlm);|[\u200e\u200f\u202a-\u202e\u2066-\u2069]"
"""Codes, tags and marks of the direction of the text, which are taken off the two ends of a text."""
_PIECE = re.compile(rf"\s*(?:{_AROUND})\s*")
_AT_START = re.compile(rf"(?:(?:{_AROUND})\s*)*")
_AT_END = re.compile(rf"(?:\s*(?:{_AROUND}))*$")
_SPEAKER = re.compile(r"(?:[-\u2010-\u2015\u2212]|>>+|(?:&gt;){2,})\s*")
"""What stands before the words of one of several who speak."""
_VOICE = re.compile(r"<v[\s.>]")


class SubtitleDocument(RawDocument):
    """Translates every cue. The lines of a cue are one text, unless several speak: then each has a text.

    Who speaks has a dash before it, `>>` or a tag `<v Mary>`. Lines that have tags of their own around them are texts
    of their own, too. Tags and codes at the ends of a text are not translated, and those inside of it stay whole.

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
        numbers = range(first, last)
        turns = [number for number in numbers if _begins_turn(lines[number])]
        several = len(turns) > 1 and turns[0] == first
        if not several:
            turns = [*numbers] if all(_is_wrapped(lines[number]) for number in numbers) else [first]
        for start, stop in pairwise([*turns, last]):
            self._add_lines(start, stop, join_texts(lines[start:stop], are_lines=True), with_speaker=several)

    def _add_lines(self, first: int, last: int, text: str, *, with_speaker: bool) -> None:
        before, text, after = _without_ends(text)
        if with_speaker and (speaker := _SPEAKER.match(text)) is not None:
            inner_before, text, inner_after = _without_ends(text[speaker.end() :])
            before, after = before + speaker[0] + inner_before, inner_after + after
        if not text:
            return
        shown, whole = self._shown(text)
        self.fields.add(shown, lambda words: self._put(first, last, before + whole(words) + after))

    def _shown(self, text: str) -> tuple[str, Callable[[str], str]]:
        """The text for the model, and a function that makes the text for the file from its translation.

        A model would translate the words in a tag such as `<v Mary Ann>`: it reads the tag without them.
        """
        shown_as, codes = dict[str, str](), dict.fromkeys(_CODE.findall(text))
        for code in codes:
            if self._has_entities or code.startswith("{") or _TAG.fullmatch(code):
                shown_as[code] = code if placeholders(code) == [code] else _short(code, {*codes, *shown_as.values()})
        written = {short: code for code, short in shown_as.items()}
        if not self._has_entities:
            return _each(str, text, shown_as), lambda words: _each(str, words, written)
        return _each(unescape, text, shown_as), lambda words: _each(_escaped, words, written)

    def _put(self, first: int, last: int, text: str) -> bool:
        """Replaces lines by a text, in at most as many and about equally long lines."""
        end = line_end(self._pieces[first])
        width = max(-(-_width(text) // (last - first)), 1)
        while len(lines := _wrapped(text, width)) > last - first:
            width += 1
        return self._replace(first, last, end.join(lines))


def _each(change: Callable[[str], str], text: str, codes: Mapping[str, str]) -> str:
    """Replaces codes by others, and changes the text between them."""
    parts = re.split(f"({'|'.join(map(re.escape, codes))})", text) if codes else [text]
    return "".join(codes[part] if part in codes else change(part) for part in parts)


def _short(code: str, taken: Container[str]) -> str:
    """A tag without words that stands for another one: `<v>` for `<v Mary Ann>`, `<v1>` if that is taken."""
    if not code.startswith("<"):
        return code
    tag = _TAG.fullmatch(code)
    start = f"<{tag['closes']}{tag['name']}" if tag is not None else "<t"
    return next(one for one in (f"{start}{number or ''}>" for number in count()) if one not in taken)


def _begins_turn(line: str) -> bool:
    """Whether somebody begins to speak in a line."""
    codes = _AT_START.match(line)
    assert codes is not None  # there may be none
    return _SPEAKER.match(line, codes.end()) is not None or _VOICE.search(codes[0]) is not None


def _is_wrapped(line: str) -> bool:
    """Whether a line has a tag of its own around all of it."""
    before, text, after = _without_ends(line)
    opened, closed = [*_TAG.finditer(before)], [*_TAG.finditer(after)]
    return bool(opened and closed) and _partners(line).get(opened[0].start()) == len(before + text) + closed[-1].start()


def _without_ends(text: str) -> tuple[str, str, str]:
    """The codes before a text, the text, and those behind it. A tag of which one end is inside the text stays there."""
    begun, ended = _AT_START.match(text), _AT_END.search(text)
    assert begun is not None and ended is not None  # both may be empty
    if begun.end() == len(text):
        return text, "", ""
    partners = _partners(text)
    start, stop = 0, len(text)
    for piece in _PIECE.finditer(text, 0, begun.end()):
        if begun.end() <= partners.get(_place(piece), stop) < ended.start():
            break
        start = piece.end()
    for piece in reversed([*_PIECE.finditer(text, ended.start())]):
        if start <= partners.get(_place(piece), -1) < ended.start():
            break
        stop = piece.start()
    return text[:start], text[start:stop], text[stop:]


def _place(piece: re.Match[str]) -> int:
    """Where the code of a piece begins, behind its white space."""
    return piece.end() - len(piece[0].lstrip())


def _partners(text: str) -> dict[int, int]:
    """Where the other end of each tag is, for those that have one, by the places of both."""
    opened, found = list[re.Match[str]](), dict[int, int]()
    for tag in _TAG.finditer(text):
        if not tag["closes"]:
            opened.append(tag)
            continue
        other = next((one for one in reversed(opened) if one["name"].lower() == tag["name"].lower()), None)
        if other is not None:
            opened.remove(other)
            found |= {other.start(): tag.start(), tag.start(): other.start()}
    return found


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
