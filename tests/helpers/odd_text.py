"""Text as nobody should write it, and as somebody does: lines, files and corpora made of a seed."""

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from xml.sax import saxutils

import pyarrow as pa

Make = Callable[[random.Random], str]
Spoil = Callable[[random.Random, bytes], bytes]
WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eins", "zwei", "drei", "fünf", "Straße", ".", ",", "!"]
SPECIAL = ["<s>", "</s>", "<unk>", "<pad>", "<reserved_00>", "<reserved_07>", "<0x0A>", "▁", "⁇", "[MASK]", "\\"]
SPECIAL += ["\ue000", "\ue000a", "\ue000b", "\ufdd0", "\ufdd1", "\ufddf", "\uffff", "\ufffd", "\U0010ffff", "=SUM(A1)"]
PLACEHOLDERS = ["%s", "%1$d", "{name}", "{0:.2f}", "<b>", "</b>", "<a href='x'>", "https://a.b/c?d=e", "&amp;", "{{x}}"]
PLACEHOLDERS += ["a@b.org", ":func:`x`", "`code`", "%%", "\\n", "<!-- x -->", "{\\an8}", "|name|", "%", "{", "<", "`"]
SPACES = "\u2028\u2029\u0085\v\f\x1c\x1d\x1e\u00a0\u3000\u2003\u202f\t"
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u202a\u202b\u202c\u202d\u202e\u2066\u2069\u200e\u200f\U000e0001"
INVISIBLE += "\u06dd\u180e\u061c\U0001f3f4\U000e0067\U000e007f"
RANGES = [(0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x400, 0x4FF), (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F)]
RANGES += [(0x1100, 0x11FF), (0x1F300, 0x1FAFF), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xE000, 0xF8FF)]
RANGES += [(0x1D400, 0x1D7FF), (0x20000, 0x2A6DF), (0xFB00, 0xFDFF)]


def _words(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 12)))


def _mixed(pieces: list[str]) -> Make:
    def make(rng: random.Random) -> str:
        between = rng.choice(["", " "])
        return between.join(rng.choices([*pieces, *WORDS], k=rng.randint(1, 15)))

    return make


def _of_one_script(rng: random.Random) -> str:
    first, last = rng.choice(RANGES)
    return "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 60)))


def _of_all_scripts(rng: random.Random) -> str:
    return "".join(chr(rng.randint(*rng.choice(RANGES))) for _ in range(rng.randint(1, 300)))


def _decomposed(rng: random.Random) -> str:
    return unicodedata.normalize(rng.choice(["NFD", "NFKD"]), _of_one_script(rng)) + "e" + "\u0301" * rng.randint(0, 30)


def _number(rng: random.Random) -> str:
    return rng.choice(["", "-", "1e"]) + "".join(rng.choices("0123456789.,", k=rng.randint(1, 500)))


def _controls(rng: random.Random) -> str:
    return _words(rng) + rng.choice(["\x00", "\x1b[31m", "\x1b]0;title\x07", "\x08", "\x7f", "\x9b2J", "\x80"])


TOO_LONG = 1_000_000
"""A line of more bytes is cut where it is read."""
USUAL: list[Make] = [_words, _of_one_script, _of_all_scripts, _decomposed, _number, _controls, lambda rng: ""]
USUAL += [_mixed(SPECIAL), _mixed(PLACEHOLDERS), _mixed(list(SPACES)), _mixed(list(INVISIBLE)), lambda rng: " \u200b "]
HUGE: list[Make] = [
    lambda rng: rng.choice(["x", "日", "\U0001f600", "a\u0301"]) * 200_000,
    lambda rng: "word " * 10_000,
    lambda rng: "y" * 1_100_000,
    lambda rng: "".join(f"<a{number}>" for number in range(300)) + " x",
    lambda rng: "a. " * 60_000,
    lambda rng: rng.choice(["<a", "{", "%", "`", "www.", "http://!", "a@", "\\", "``a`"]) * 30_000,
    lambda rng: "".join(chr(code) for code in range(0x4E00, 0x4E00 + 6_000)),
]


def odd_line(rng: random.Random, longest: int = TOO_LONG) -> str:
    """A line of text; one of several hundred is huge: not longer than so many characters, or too long to be read."""
    if rng.random() < 0.002:
        huge = rng.choice(HUGE)(rng)
        return huge if len(huge) > TOO_LONG else huge[:longest]
    return rng.choice(USUAL if rng.random() < 0.5 else [_words])(rng).replace("\n", " ")


def _one_more(make: Callable[[random.Random], bytes]) -> Spoil:
    """Puts bytes in a random place of a file."""

    def spoil(rng: random.Random, content: bytes) -> bytes:
        place = rng.randint(0, len(content))
        return content[:place] + make(rng) + content[place:]

    return spoil


def _packed(pack: Callable[[bytes], bytes]) -> Spoil:
    """Compresses a file, and now and then damages the archive."""

    def spoil(rng: random.Random, content: bytes) -> bytes:
        packed = bytearray(pack(content))
        match rng.randint(0, 2):
            case 0:
                del packed[rng.randint(0, len(packed)) :]
            case 1:
                packed[rng.randrange(len(packed))] ^= 1 << rng.randint(0, 7)
            case _:
                pass
        return bytes(packed)

    return spoil


def _in_encoding(name: str) -> Spoil:
    return lambda rng, content: content.decode(errors="replace").encode(name, errors="replace")


def _zstd(content: bytes) -> bytes:
    return pa.compress(content, codec="zstd", asbytes=True)


def _noise(rng: random.Random) -> bytes:
    return rng.randbytes(rng.choice([1, 3, 40, 400, 9_000]))


SPOIL: dict[str, Spoil] = {
    "empty": lambda rng, content: b"",
    "one newline": lambda rng, content: b"\n",
    "mark": lambda rng, content: b"\xef\xbb\xbf" + content,
    "CRLF": lambda rng, content: content.replace(b"\n", b"\r\n"),
    "CR": lambda rng, content: content.replace(b"\n", b"\r"),
    "no final newline": lambda rng, content: content.removesuffix(b"\n"),
    "blank lines": lambda rng, content: content.replace(b"\n", b"\n\n"),
    "cut": lambda rng, content: content[: rng.randint(0, len(content))],
    "invalid": _one_more(lambda rng: rng.choice([b"\xff", b"\xc3", b"\xed\xa0\x80\xed\xb0\x80", b"\xf8\x88\x80\x80"])),
    "noise": _one_more(_noise),
    "noise alone": lambda rng, content: _noise(rng) * 3,
    "zeros": _one_more(lambda rng: b"\0" * rng.choice([1, 30, 3_000])),
    "zip": lambda rng, content: b"PK\x03\x04" + content,
    "PDF": lambda rng, content: b"%PDF-1.7\n" + content,
    "PNG": lambda rng, content: b"\x89PNG\r\n\x1a\n" + _noise(rng),
    "latin-1": _in_encoding("latin-1"),
    "shift-jis": _in_encoding("shift-jis"),
    **{name: _in_encoding(name) for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-7")},
    "gz": _packed(gzip.compress),
    "bz2": _packed(bz2.compress),
    "xz": _packed(lzma.compress),
    "zst": _packed(_zstd),
}  # fmt: skip


@dataclass(frozen=True)
class OddFile:
    """A file of lines.

    Attributes:
        content: Its bytes.
        spoilt: How; `fine` if it is UTF-8 text, whatever is in it.
        lines: How many it has, where it is not spoilt in a way that leaves it open.
    """

    content: bytes
    spoilt: str
    lines: int | None


def odd_file(rng: random.Random, lines: list[str], share: float = 0.4) -> OddFile:
    """A file of these lines; a share of files is spoilt."""
    content = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    spoilt = rng.choice(list(SPOIL)) if rng.random() < share else "fine"
    content = SPOIL[spoilt](rng, content) if spoilt != "fine" else content
    packed = spoilt in ("gz", "bz2", "xz", "zst")
    return OddFile(content, spoilt, None if packed else content.count(b"\n") + (content[-1:] not in (b"\n", b"")))


def odd_pairs(rng: random.Random) -> list[tuple[str, str]]:
    """Pairs: some fit, some repeat others, some are the same on both sides, some have nothing to do with each other."""
    pairs = [(_words(rng), _words(rng)) for _ in range(rng.choice([0, 5, 40, 40, 100]))]
    pairs += [(odd_line(rng), odd_line(rng)) for _ in range(rng.choice([0, 1, 10, 40]))]
    if pairs:
        pairs += rng.choices(pairs, k=rng.choice([0, 0, 3, 30]))
        pairs += [(src, src) for src, _ in rng.choices(pairs, k=rng.choice([0, 0, 2]))]
    rng.shuffle(pairs)
    return pairs


def _table(delimiter: str) -> Callable[[list[tuple[str, str]]], str]:
    def write(pairs: list[tuple[str, str]]) -> str:
        stream = io.StringIO()
        csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows([("src", "tgt"), *pairs])
        return stream.getvalue()

    return write


def _each(before: str, row: Callable[[str, str], str], after: str = "") -> Callable[[list[tuple[str, str]]], str]:
    return lambda pairs: before + "".join(row(src, tgt) + "\n" for src, tgt in pairs) + after


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _in_xml(text: str) -> str:
    """A text without the characters that XML cannot have."""
    return saxutils.escape(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", text))


def _variant(language: str, text: str) -> str:
    return f'<tuv xml:lang="{language}"><seg>{_in_xml(text)}</seg></tuv>'


FORMATS: dict[str, Callable[[list[tuple[str, str]]], str]] = {
    ".tsv": _each("", lambda src, tgt: f"{src}\t{tgt}"),
    ".csv": _table(","),
    ".CSV": _table(";"),
    ".jsonl": _each("", lambda src, tgt: json.dumps({"src": src, "tgt": tgt})),
    ".po": _each(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n',
        lambda src, tgt: f"msgid {_quoted(src)}\nmsgstr {_quoted(tgt)}\n",
    ),
    ".xlf": _each(
        '<xliff version="1.2"><file source-language="en" target-language="de"><body>',
        lambda src, tgt: f"<trans-unit><source>{_in_xml(src)}</source><target>{_in_xml(tgt)}</target></trans-unit>",
        "</body></file></xliff>",
    ),
    ".tmx": _each(
        '<tmx version="1.4"><header srclang="en"/><body>',
        lambda src, tgt: f"<tu>{_variant('en', src)}{_variant('de', tgt)}</tu>",
        "</body></tmx>",
    ),
    ".srt": _each("", lambda src, tgt: f"1\n00:00:01,000 --> 00:00:02,000\n{src}\n"),
}  # fmt: skip


@dataclass(frozen=True)
class OddCorpus:
    """A corpus on disk.

    Attributes:
        flags: That name it.
        names: Of its files.
        pairs: What it was made of.
        rows: How many pairs a reader has to count, where that is sure.
        unequal: It is sure that the two files have different numbers of lines.
    """

    flags: list[str]
    names: list[str]
    pairs: list[tuple[str, str]]
    rows: int | None
    unequal: bool = False


def odd_corpus(rng: random.Random, folder: Path) -> OddCorpus:
    """Writes a corpus into a folder: two files, or one of both sides."""
    pairs = odd_pairs(rng)
    if rng.random() < 0.3:
        suffix = rng.choice(list(FORMATS))
        content = FORMATS[suffix](pairs).encode("utf-8", "surrogatepass")
        spoilt = rng.choice(list(SPOIL.values())) if rng.random() < 0.5 else None
        (folder / f"pairs{suffix}").write_bytes(spoilt(rng, content) if spoilt else content)
        return OddCorpus(["--data", f"pairs{suffix}"], [f"pairs{suffix}"], pairs, None)
    lines = [[pair[side] for pair in pairs] for side in (0, 1)]
    if rng.random() < 0.1:
        side = rng.choice(lines)
        side[:] = side[: rng.randint(0, len(side))]
    files = [odd_file(rng, side, 0.2) for side in lines]
    for name, file in zip(("text.en", "text.de"), files, strict=True):
        (folder / name).write_bytes(file.content)
    rows = [file.lines for file in files]
    flags, names = ["--src", "text.en", "--tgt", "text.de"], ["text.en", "text.de"]
    return OddCorpus(flags, names, pairs, *((rows[0], False) if rows[0] == rows[1] else (None, None not in rows)))
