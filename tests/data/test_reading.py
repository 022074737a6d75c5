"""Reading: only \\n ends a line, and whatever is not UTF-8 text is refused in words."""

import bz2
import gzip
import io
import lzma
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers.written_files import Write
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data import reading
from tfm.data.reading import UndecodableText, count_controls, count_lines, iter_raw_lines, read_lines, survey
from tfm.system.errors import DataError

COMPRESSORS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda content: pa.compress(content, codec="zstd", asbytes=True),
}
LINES = st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n")), min_size=1)


def lines_of(content: bytes) -> list[bytes]:
    return list(iter_raw_lines(io.BytesIO(content), "it"))


@settings(deadline=None, max_examples=200)
@given(LINES | st.lists(st.text(alphabet="a\u2028\u2029\u0085\v\f\x1c\x1e\r"), min_size=1))
def test_lines_come_back_one_to_one(lines: list[str]) -> None:
    written = "\ufeff" + "".join(f"{line}\n" for line in lines)
    assert [line.decode() for line in lines_of(written.encode())] == [line.removesuffix("\r") for line in lines]


@settings(deadline=None, max_examples=100)
@given(LINES, st.sampled_from(["\n", "\r\n"]))
def test_line_ends_and_mark_leave_no_trace(lines: list[str], end: str) -> None:
    written = "\ufeff" + "".join(line + "x" + end for line in lines)
    assert [line.decode() for line in lines_of(written.encode())] == [f"{line}x" for line in lines]


def test_unicode_line_ends_stay_inside_a_line(write: Write) -> None:
    line = "one\u2028two\u2029three\u0085four\vfive\fsix\x1eseven\reight"
    assert list(read_lines(write("a.txt", f"{line}\nlast\n"))) == [line, "last"]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\n\n", ["", ""]),
        (b"one\ntwo", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"one\r\r\n", ["one\r"]),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"]),
        (b"\xef\xbb\xbf", [""]),
    ],
)
def test_line_ends_and_byte_order_mark(write: Write, content: bytes, lines: list[str]) -> None:
    assert list(read_lines(write("a.txt", content))) == lines


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_compressed_files_are_read_whatever_their_name(write: Write, suffix: str) -> None:
    content = COMPRESSORS[suffix]("\ufeffein\r\nzwei\u2028halb\ndrei".encode())
    for name in (f"a.{suffix}", "a.txt"):
        assert list(read_lines(write(name, content))) == ["ein", "zwei\u2028halb", "drei"]


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [*((suffix, "cut") for suffix in COMPRESSORS), ("gz", "flipped"), ("bz2", "flipped"), ("xz", "flipped")],
)  # pyarrow writes zstd without a checksum, so that a flipped bit may go unseen
def test_damaged_archives_are_refused(write: Write, suffix: str, damage: str) -> None:
    content = COMPRESSORS[suffix]("".join(f"line {number}\n" for number in range(500)).encode())
    for place in range(20, len(content) - 1, 37):
        damaged = bytearray(content[:place] if damage == "cut" else content)
        if damage == "flipped":
            damaged[place] ^= 0xFF
        path = write("a.txt", bytes(damaged))
        with pytest.raises(DataError, match=r"a\.txt"):
            list(read_lines(path))


@pytest.mark.parametrize("content", [b"one\rtwo", b"one\rtwo\r", b"\xef\xbb\xbfone\r\rtwo\r", b"a line\r" * 400_000])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_line_ends_of_old_macs_are_named_with_their_cure(
    write: Write, content: bytes, pack: Callable[[bytes], bytes]
) -> None:
    path = write("a.txt", pack(content))
    with pytest.raises(DataError, match=r"a\.txt has the line ends of old Macs .*tr '\\r' '\\n'"):
        list(read_lines(path))


def test_a_stray_cr_is_no_line_end(write: Write) -> None:
    for content in (b"one\r", b"one\rtwo\n", b"one\rtwo\nthree", b"x" * 2_000_000 + b"\r"):
        assert len(list(read_lines(write("a.txt", content)))) == content.count(b"\n") + (content[-1:] != b"\n")
    (cut,) = read_lines(write("long.txt", b"word " * 1000 + b"\r" + b"word " * 400_000))
    assert cut is not None and cut.startswith("word word")


def test_invalid_utf8_names_file_line_and_byte(write: Write) -> None:
    path = write("a.de", b"gut\n" + "Tür ".encode() + b"T\xfcr\n")
    with pytest.raises(UndecodableText, match=r"a\.de:2 byte 7: invalid UTF-8 \(1 line in all\);.*--encoding "):
        list(read_lines(path))


def test_it_is_said_how_many_lines_are_invalid(write: Write) -> None:
    path = write("a.de", b"gut\n" + 3 * b"T\xfcr\n\n" + "Tür\n".encode())
    with pytest.raises(DataError, match=r"a\.de:2 byte 2: invalid UTF-8 \(3 lines in all\)"):
        list(read_lines(path))


def test_control_characters_are_counted_and_white_space_is_not() -> None:
    assert count_controls("a\tb\vc\fd\re\x85 \x00\x1b\x7f\x80\x9f é ¢".encode()) == 5


@pytest.mark.parametrize("skip_bad", [False, True])
@pytest.mark.parametrize("head", [b"", b"four thousand bytes of text\n" * 150], ids=["from the start", "behind text"])
def test_what_is_full_of_control_characters_is_no_text(write: Write, head: bytes, skip_bad: bool) -> None:
    noise = random.Random(4).randbytes(40_000).replace(b"\0", b"")
    with pytest.raises(DataError, match=r"a\.txt does not look like text: [\d,]+ of [\d,]+ bytes.*a binary file"):
        list(read_lines(write("a.txt", head + noise), skip_bad=skip_bad))


def test_few_control_characters_are_no_reason_to_refuse(write: Write) -> None:
    lines = ["a\x00b", "\x1b[31mred\x1b[0m", *["nothing else"] * 500, *["\x07"] * 40]
    assert list(read_lines(write("a.txt", "\n".join(lines)))) == lines


def test_a_zero_does_not_make_utf16(write: Write) -> None:
    assert list(read_lines(write("a.txt", b"a\0b\n"))) == ["a\0b"]
    with pytest.raises(DataError, match="much of it is NUL; is it a binary file"):
        list(read_lines(write("a.txt", b"\0\0\0\1\0\xff\0\0" * 9)))


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xc0\xaf"])
def test_bad_lines_are_skipped_in_place(write: Write, bad: bytes) -> None:
    path = write("a.txt", b"one\n" + bad + b"\nthree\n")
    assert list(read_lines(path, skip_bad=True)) == ["one", None, "three"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_a_byte_order_mark_says_the_encoding(write: Write, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    lines = ["eine Zeile", "", "\u0a0a\u0d0a, deren Bytes wie Zeilenenden aussehen", "Ende \U0001f600"]
    path = write("a.txt", pack("\n".join(lines).encode(encoding)))
    assert list(read_lines(path)) == list(read_lines(path, encoding="cp1252")) == lines
    assert count_lines(path) == survey(path).lines == len(lines)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_without_a_mark_it_is_to_be_named(write: Write, encoding: str) -> None:
    path = write("a.txt", "eine Zeile\nnoch eine\n".encode(encoding))
    with pytest.raises(DataError, match=rf"looks like UTF-\d\d without a byte-order mark.*--encoding {encoding}"):
        list(read_lines(path))
    assert list(read_lines(path, encoding=encoding)) == ["eine Zeile", "noch eine"]


@pytest.mark.parametrize("encoding", ["cp1251", "koi8_r", "shift_jis", "gb18030", "euc_kr", "utf-16-le", "iso2022_jp"])
def test_a_named_encoding_is_read_as_python_reads_it(write: Write, encoding: str) -> None:
    characters = "Жёлтый дом 日本語のテキスト 한국어 ~\\|\n" * 9_000
    text = "".join(character for character in characters if _has(character, encoding))
    path = write("a.txt", text.encode(encoding))
    assert list(read_lines(path, encoding=encoding)) == text.removesuffix("\n").split("\n")
    assert count_lines(path, encoding) == text.count("\n")


def _has(character: str, encoding: str) -> bool:
    try:
        return character.encode(encoding).decode(encoding) == character
    except UnicodeError:
        return False


def test_what_is_not_in_the_named_encoding_is_said_or_skipped(write: Write) -> None:
    path = write("a.txt", "один\nдва\n".encode("cp1251") + b"\x98\n")
    with pytest.raises(UndecodableText, match=r"a\.txt:3: invalid cp1251 \(1 line in all\); name another --encoding"):
        list(read_lines(path, encoding="cp1251"))
    assert list(read_lines(path, encoding="cp1251", skip_bad=True)) == ["один", "два", None]


@pytest.mark.parametrize(
    ("magic", "name"),
    [
        (b"PK\x03\x04", "zip"),
        (b"%PDF-1.7", "PDF"),
        (b"PAR1", "Parquet.*--data"),
        (b"ARROW1\0\0", "Arrow.*--data"),
        (b"\x80\x02", "pickle"),
        (b"<?xml version", "XML; give a .tmx"),
        (b"\xef\xbb\xbf<?xml version", "XML; give a .tmx"),
        (b"\xde\x12\x04\x95", r"gettext's .mo"),
        (b"\x89PNG\r\n", "PNG"),
        (b"\xff\xd8\xff\xe0", "JPEG"),
        (b"GIF89a", "GIF"),
        (b"\x7fELF\x02", "a program"),
        (b"(\xb5/\xfd", "cannot read.*a.txt"),
    ],
)
def test_foreign_formats_are_named(write: Write, magic: bytes, name: str) -> None:
    path = write("a.txt", magic + b"anything else")
    with pytest.raises(DataError, match=name):
        list(read_lines(path))


def test_missing_file_offers_its_neighbour(write: Write) -> None:
    path = write("train.en", "a\n")
    with pytest.raises(DataError, match=r"cannot read .*train\.de: no such file \(did you mean .*train\.en\?\)"):
        list(read_lines(path.with_name("train.de")))
    with pytest.raises(DataError, match=r"no such file$"):
        list(read_lines(path.with_name("quite different")))


def test_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*[Dd]irectory"):
        list(read_lines(tmp_path))


def test_missing_permission_is_named(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(reading, "open", refuse, raising=False)
    with pytest.raises(DataError, match=r"cannot read .*a\.txt: Permission denied"):
        list(read_lines(write("a.txt", "a\n")))


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.text(alphabet=st.sampled_from("ab\u00e9\u20ac\U0001f600"), max_size=40), min_size=1),
    st.integers(4, 16),
)
def test_long_lines_are_cut_between_characters_and_lines_stay_aligned(lines: list[str], limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "MAX_LINE_BYTES", limit)
        cut = [line.decode() for line in lines_of("".join(f"{line}\n" for line in lines).encode())]
    assert len(cut) == len(lines)
    for line, start in zip(lines, cut, strict=True):
        assert line.startswith(start)
        assert start == line or limit - 4 < len(start.encode()) <= limit


def test_long_last_line_without_an_end_is_cut_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 8)
    assert lines_of(b"short\n" + b"x" * 100) == [b"short", b"x" * 8]
    assert lines_of(b"x" * 8 + b"\n" + b"y") == [b"x" * 8, b"y"]


def test_a_bad_line_of_a_text_in_utf_8_is_to_be_mended(write: Write) -> None:
    lines = ["für".encode(), *[b"a"] * 20, b"f\xfcr", b"a"]
    with pytest.raises(UndecodableText, match=r"a\.txt:22 byte 2: .*; line 22 is not UTF-8 and the rest is: mend that"):
        list(read_lines(write("a.txt", b"\n".join(lines))))


@pytest.mark.parametrize(("end", "cut"), [(b"", True), (b"\n", False), (b"\na", False)])
def test_a_text_that_ends_within_a_character_seems_to_be_cut(write: Write, end: bytes, cut: bool) -> None:
    with pytest.raises(UndecodableText) as refused:
        list(read_lines(write("a.txt", "für\nBä".encode()[:-1] + end)))
    assert ("line 2, the last, ends within a character: the text seems to be cut" in str(refused.value)) == cut


def test_iso_2022_jp_is_named(write: Write) -> None:
    path = write("a.txt", "年老いた女\n".encode("iso2022_jp"))
    with pytest.raises(DataError, match=r"a\.txt looks like ISO-2022-JP, not UTF-8; .*: --encoding iso2022_jp$"):
        list(read_lines(path))
    assert list(read_lines(path, encoding="iso2022_jp")) == ["年老いた女"]
