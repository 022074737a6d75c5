"""The encodings of text files: UTF-8, what a byte-order mark says, what the user names; and what a file may be in."""

import codecs
import io
import re
from collections.abc import Iterable
from typing import IO, Any

UTF8_MARK = codecs.BOM_UTF8
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_GUESSED = [
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "koi8_r", "koi8_u"),
    *("iso8859_2", "iso8859_5", "iso8859_7", "iso8859_9", "iso8859_15", "cp437", "cp850", "cp852", "cp866"),
    *("mac_roman", "mac_cyrillic", "cp874", "cp932", "euc_jp", "gb18030", "big5", "cp949"),
]
"""Encodings of texts that are not in Unicode. The library knows a hundred more; short texts are taken for those."""
_SHOWN, _EXCERPT = 4, 30
"""How many encodings are named, and how many characters are shown of each."""
_BAD = "\udcff"
"""Half a character, which UTF-8 has not: text that is wrong in its encoding is wrong in UTF-8, too."""
_BLOCK = 1 << 16


def encoding_named(name: str) -> str:
    """The name by which Python knows an encoding; `utf-8` with a byte-order mark or without is one.

    Raises:
        ValueError: There is none of this name, or it is none for text.
    """
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError) as error:
        raise ValueError(f"no encoding is called {name!r:.60}; some are utf-16, cp1252, cp1251, shift_jis") from error
    if not getattr(found, "_is_text_encoding", True):
        raise ValueError(f"{name!r} is no encoding of text")
    return found.name.removesuffix("-sig")


def marked_encoding(head: bytes) -> str:
    """The encoding that the first bytes of a file say by a byte-order mark, or an empty string."""
    return next((name for mark, name in _MARKS.items() if head.startswith(mark)), "")


def encoding_of(head: bytes, named: str = "") -> str:
    """How to read a file: as its byte-order mark says, else as the user does, else as UTF-8."""
    return marked_encoding(head) or encoding_named(named or "utf-8")


def wide_encoding(head: bytes) -> str:
    """The encoding in which bytes with many zeros are mostly Latin letters, or an empty string."""
    for encoding in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
        text = head[: len(head) // 4 * 4].decode(encoding, errors="replace")
        if 2 * sum(c < "\u0250" and (c.isprintable() or c.isspace()) for c in text) > len(text):
            return encoding
    return ""


def is_iso_2022_jp(head: bytes) -> bool:
    """Whether text switches to Japanese by escape sequences, which are ASCII and so UTF-8, too."""
    return re.search(rb"\x1b\$[@B](?:[!-~]{2})+", head) is not None


def in_utf8(file: IO[bytes], encoding: str) -> IO[bytes]:
    """The content of a file as bytes of UTF-8; where it is wrong, bytes that are no UTF-8. A mark stays."""
    return file if encoding == "utf-8" else io.BufferedReader(_Recoded(file, encoding))


class _Recoded(io.RawIOBase):
    def __init__(self, file: IO[bytes], encoding: str) -> None:
        codecs.register_error("tfm-bad", lambda error: (_BAD, error.end))  # pyright: ignore[reportAttributeAccessIssue]
        self._read = getattr(file, "read1", file.read)  # what is there, from a stream that goes on
        self._decoder = codecs.getincrementaldecoder(encoding)("tfm-bad")
        self._waiting, self._ended = b"", False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._waiting and not self._ended:
            block = self._read(_BLOCK)
            self._ended = not block
            self._waiting = self._decoder.decode(block, self._ended).encode("utf-8", "surrogatepass")
        given, self._waiting = self._waiting[: len(buffer)], self._waiting[len(buffer) :]
        buffer[: len(given)] = given
        return len(given)


class Undecoded:
    """The lines of a text that are not UTF-8, and what to do about them.

    Args:
        lines: How many lines came before, all of them UTF-8; None if lines have no numbers, because two files are read.
        sound: How many of those have other characters than ASCII's.
    """

    def __init__(self, lines: int | None = 0, sound: int = 0) -> None:
        self.count, self._lines, self._sound, self._numbered = 0, lines or 0, sound, lines is not None
        self._first, self._places = list[bytes](), list[int]()
        self._ends_within = False

    def add(self, raw: bytes | None) -> bool:
        """Looks at the next line; None is one that could not be read. Says whether it is sound."""
        self._lines += 1
        self._ends_within = False
        try:
            (raw or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            self.count += 1
            self._ends_within = error.reason == "unexpected end of data"
            if len(self._first) < _LOOKED_AT:
                self._first.append(raw or b"")
                self._places.append(self._lines)
            return False
        self._sound += raw is not None and not raw.isascii()
        return True

    def advice(self, *, cut: bool = False) -> str:
        """What to do. `cut` says that the text ended without a line end."""
        if self._sound and self.count == 1 and cut and self._ends_within:
            return f"line {self._lines:,}, the last, ends within a character: the text seems to be cut"
        if self._sound and self.count * _FEW <= self._lines:
            named = ", ".join(f"{place:,}" for place in self._places[:_PLACES])
            more = ", .." if self.count > _PLACES else ""
            if not self._numbered:
                which = "it is" if self.count == 1 else "they are"
            else:
                which = f"line {named} is" if self.count == 1 else f"lines {named}{more} are"
            return f"{which} not UTF-8 and the rest is: mend {'that line' if self.count == 1 else 'those lines'}"
        return likely_encodings(self._first)


_LOOKED_AT = 100
"""This many lines that are not UTF-8 are looked at, to see what a text may be in."""
_FEW, _PLACES = 20, 5
"""A text counts as UTF-8 if at most one line in `_FEW` is not. At most `_PLACES` of those lines are named."""
_COHERENT = 0.2
_MIXED = r"\p{Latin}(?=\p{L})\P{Latin}|(?=\p{L})\P{Latin}\p{Latin}"
"""Letters of two scripts side by side, such as the `f` and the sign of a `für` that is read as Chinese."""


def likely_encodings(lines: Iterable[bytes]) -> str:
    """What lines that are not UTF-8 may be in, in words: the likeliest encodings, and how the first line reads in each.

    A short text fits many, so that only a person can tell which reads right.
    """
    from charset_normalizer import from_bytes

    lines = list(dict.fromkeys(lines))
    found = from_bytes(b"\n".join(lines), cp_isolation=_GUESSED, threshold=0.3)
    ranked = sorted(found, key=lambda one: (_oddness(one), _GUESSED.index(one.encoding)))
    if not ranked:
        return "no encoding is known in which it reads as text; name it: --encoding NAME"
    names = [next((name for name in _GUESSED if name in one.could_be_from_charset), one.encoding) for one in ranked]
    readings = [f"{name} ({_excerpt(lines[0], name)})" for name in names[:_SHOWN]]
    if not _oddness(ranked[0])[-1] and all(_oddness(one) > _oddness(ranked[0]) for one in ranked[1:]):
        others = f"; less likely in {' or '.join(readings[1:])}" if readings[1:] else ""
        return f"it is most likely in {readings[0]}: --encoding {names[0]}{others}"
    return f"it may be in {' or '.join(readings)}: name the one that reads right, --encoding NAME"


def _oddness(guess: Any) -> tuple[int, float, bool]:
    """Letters of two scripts side by side, signs of mess, and whether the letters are those of no language."""
    import regex

    return len(regex.findall(_MIXED, str(guess))), round(guess.chaos, 1), guess.coherence < _COHERENT


def _excerpt(line: bytes, encoding: str) -> str:
    """The part of a line around its first character that is not ASCII."""
    text = line.decode(encoding, errors="replace")
    first = next((place for place, character in enumerate(text) if not character.isascii()), 0)
    begin = max(0, min(first - _EXCERPT // 2, len(text) - _EXCERPT))
    return repr(text[begin : begin + _EXCERPT])
