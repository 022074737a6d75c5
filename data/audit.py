"""The audit of a corpus before a night is spent on it: what is wrong with which pair."""

import contextlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from . import Pair
from .alignment import Shift, find_shifts
from .cleaning import clean
from .facts import SAMPLE, differences_in_numbers
from .placeholders import differences
from .scripts import are_unspaced, graphemes

Kind = Literal[
    "untranslated", "empty", "identical", "duplicate", "script", "mojibake", "numbers", "tags", "shifted", "overlap"
]
KINDS: dict[Kind, str] = {
    "untranslated": "not translated, or not yet for good: left out",
    "empty": "no text on one side",
    "identical": "the same text on both sides",
    "duplicate": "a pair that was there before",
    "script": "letters of another script than the rest of its side",
    "mojibake": "characters broken by a wrong encoding",
    "numbers": "other numbers on one side than on the other",
    "tags": "other tags or placeholders on one side than on the other",
    "shifted": "the target seems to belong to another line",
    "overlap": "the source is also in the validation or test set",
}
"""What can be wrong, in the order in which it is told."""
REMOVED: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind != "numbers")
"""What makes a pair unfit for training. A number may be a word on the other side."""

_MIN_LETTERS = 4
"""A side with fewer letters has no script to speak of."""
_FOREIGN_SHARE = 0.5
"""Share of letters of other scripts from which a side is taken for one of them."""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with the pair of a row, counted from 0."""

    row: int
    kind: Kind
    detail: str


@dataclass
class Lengths:
    """How long the texts of a side are, in words; in characters where there are no spaces between words."""

    unit: str
    median: int
    most: int
    total: int


@dataclass
class Audit:
    """What an audit has found."""

    pairs: int
    src: Lengths
    tgt: Lengths
    faults: list[Fault] = field(default_factory=list)
    shifts: list[Shift] = field(default_factory=list)

    def count(self, kind: Kind) -> int:
        """The number of pairs with this fault."""
        return len({fault.row for fault in self.faults if fault.kind == kind})

    def rows(self, kinds: Iterable[Kind]) -> set[int]:
        """The rows with one of these faults."""
        wanted = set(kinds)
        return {fault.row for fault in self.faults if fault.kind in wanted}


def audit(pairs: Sequence[Pair], others: Iterable[Pair] = (), *, incomplete: bool = False) -> Audit:
    """Looks at every pair of a corpus.

    Args:
        others: Those of validation and test sets.
        incomplete: The corpus comes from files with entries that are not translated yet, or only by a machine or as a
            draft. Each of those is an empty pair.
    """
    cleaned = [(clean(src), clean(tgt)) for src, tgt in pairs]
    src_script, tgt_script = (_main_script(side) for side in ([s for s, _ in cleaned], [t for _, t in cleaned]))
    known = {clean(src) for src, _ in others} - {""}
    seen: dict[Pair, int] = {}
    shifts = find_shifts(cleaned)
    shifted = {row: shift for shift in shifts for row in range(shift.first, shift.last + 1)}
    src_lengths = _lengths([src for src, _ in cleaned])
    found = Audit(len(pairs), src_lengths, _lengths([tgt for _, tgt in cleaned]), shifts=shifts)
    for row, ((src, tgt), raw) in enumerate(zip(cleaned, pairs, strict=True)):
        faults = _faults_of_pair(src, tgt, (src_script, tgt_script))
        if incomplete and not any(raw):
            del faults["empty"]
            faults["untranslated"] = ""
        if broken := _broken_characters(raw, (src_script, tgt_script)):
            faults["mojibake"] = broken
        if (src, tgt) in seen and src and tgt:
            faults["duplicate"] = f"as in line {seen[src, tgt] + 1:,}"
        seen.setdefault((src, tgt), row)
        if row in shifted:  # then other differences say nothing
            faults = {kind: said for kind, said in faults.items() if kind not in ("numbers", "tags")}
            offset = shifted[row].offset
            faults["shifted"] = f"to the target {abs(offset)} {'below' if offset > 0 else 'above'}"
        if src in known:
            faults["overlap"] = ""
        found.faults += [Fault(row, kind, faults[kind]) for kind in KINDS if kind in faults]
    return found


def _faults_of_pair(src: str, tgt: str, scripts: tuple[str, str]) -> dict[Kind, str]:
    """The faults that a pair shows by itself."""
    if not src or not tgt:
        return {"empty": "source" if not src else "target"}
    found: dict[Kind, str] = {}
    if src == tgt and sum(map(str.isalpha, src)) >= _MIN_LETTERS and " " in src:
        found["identical"] = ""
    for side, text, script in (("source", src, scripts[0]), ("target", tgt, scripts[1])):
        if (other := _other_script(text, script)) is not None:
            found["script"] = f"{side}: {other}"
    if different := _other_numbers(src, tgt):
        found["numbers"] = different
    if different := differences(src, tgt):
        found["tags"] = str(different)
    return found


def _lengths(texts: list[str]) -> Lengths:
    filled = [text for text in texts if text]
    spaced = sum(text.count(" ") for text in filled) > len(filled) or not are_unspaced(filled[:SAMPLE])
    lengths = sorted(len(text.split()) if spaced else len(graphemes(text)) for text in filled) or [0]
    return Lengths("words" if spaced else "characters", lengths[len(lengths) // 2], lengths[-1], sum(lengths))


# --- scripts ---


def _script(character: str) -> str:
    """The script of a letter, by the first word of its name in Unicode; scripts that are written together are one."""
    name = unicodedata.name(character, "").partition(" ")[0]
    return "CJK" if name in ("HIRAGANA", "KATAKANA", "CJK", "IDEOGRAPHIC", "HALFWIDTH", "FULLWIDTH") else name


def _scripts(text: str) -> Counter[str]:
    return Counter(_script(character) for character in text if character.isalpha())


def _main_script(texts: Sequence[str]) -> str:
    """The script of most texts of a side."""
    counts = Counter[str]()
    for text in texts[:: max(len(texts) // 2_000, 1)]:
        counts.update(name for name, _ in _scripts(text).most_common(1))
    return counts.most_common(1)[0][0] if counts else ""


def _other_script(text: str, script: str) -> str | None:
    """The script of most letters of a text, if it is not the one of its side.

    Latin letters stand in texts of every script, as names and code: they do not count as another one there.
    """
    if text.isascii() and script == "LATIN":
        return None
    counts = _scripts(text)
    letters = sum(counts.values())
    if letters < _MIN_LETTERS or not script:
        return None
    foreign = {name: count for name, count in counts.items() if name not in (script, "LATIN")}
    if script != "LATIN" and counts["LATIN"] == letters and " " in text:
        return "latin"
    if sum(foreign.values()) > _FOREIGN_SHARE * letters:
        return max(foreign, key=lambda name: foreign[name]).lower()
    return None


# --- encodings ---


def _broken_characters(pair: Pair, scripts: tuple[str, str]) -> str:
    """The broken characters of a side; empty if there are none."""
    if "\ufffd" in "".join(pair):
        return "U+FFFD"
    for side, text, script in zip(("source", "target"), pair, scripts, strict=True):
        if (broken := _mojibake(text, script)) is not None:
            return f"{side}: {broken}"
    return ""


def _is_text(meant: str, script: str) -> bool:
    """Whether somebody would have written these characters: Latin letters as languages have them, signs, emoji, letters
    of this script, or several letters of any one script."""
    if len(meant) > 1 and len({_script(character) for character in meant}) == 1 and meant.isalpha():
        return True

    def is_expected(character: str) -> bool:
        latin = character < "\u0250" or "\u1e00" <= character < "\u1f00"
        sign = "\u2000" <= character < "\u2c00" or character >= "\U00010000"
        return latin or sign or (script != "LATIN" and _script(character) == script)

    return all(map(is_expected, meant))


def _windows_1252() -> dict[str, int]:
    """The byte that each character is in Windows-1252; where that has none, in Latin-1, as web browsers read it."""
    characters = {chr(byte): byte for byte in range(0x80, 0x100)}
    for byte in range(0x80, 0xA0):
        with contextlib.suppress(UnicodeDecodeError):
            characters[bytes([byte]).decode("cp1252")] = byte
    return characters


_BYTES = _windows_1252()
_TAIL = f"[{re.escape(''.join(character for character, byte in _BYTES.items() if byte < 0xC0))}]"
_BROKEN = re.compile(f"(?:[\u00c2-\u00df]{_TAIL}|[\u00e0-\u00ef]{_TAIL}{{2}}|[\u00f0-\u00f4]{_TAIL}{{3}})+")
"""What a UTF-8 character of two, three or four bytes looks like, several in a row."""


def _mojibake(text: str, script: str) -> str | None:
    """A part of a text that is UTF-8 read as if it were Windows-1252 or Latin-1, or None.

    A capital before a quotation mark can look so, too: what it would stand for must be text. The text is as it was
    read: cleaning removes some of what tells.
    """
    if text.isascii():
        return None
    for match in _BROKEN.finditer(text):
        meant = bytes(_BYTES[character] for character in match[0]).decode("utf-8", errors="replace")
        if _is_text(meant, script):
            return f"{match[0]!r} for {meant!r}"
    return None


# --- numbers ---


def _other_numbers(src: str, tgt: str) -> str:
    """The numbers of one side only. One digit may be a word on the other side, so single digits do not count alone.

    What looks like a placeholder may be none, as `%20` in Turkish: numbers differ with and without them.
    """
    lost, added = differences_in_numbers(src, tgt)
    if not any(len(number) > 1 for number in (*lost, *added)) and not (lost and added):
        return ""
    if not any(differences_in_numbers(src, tgt, ())):
        return ""
    return f"{' '.join(lost) or 'none'} | {' '.join(added) or 'none'}"
