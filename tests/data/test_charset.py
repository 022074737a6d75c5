"""Encodings: names, byte-order marks, and what a text may be in."""

import os

import pytest

from tfm.data.charset import Undecoded, encoding_named, encoding_of, in_utf8, is_iso_2022_jp, likely_encodings


@pytest.mark.parametrize(
    ("name", "known"),
    [("UTF8", "utf-8"), ("utf-8-sig", "utf-8"), ("Windows-1251", "cp1251"), ("UTF_16LE", "utf-16-le")],
)
def test_an_encoding_has_many_names(name: str, known: str) -> None:
    assert encoding_named(name) == known


@pytest.mark.parametrize("name", ["cp9999", "", "rot13", "base64", "a\0b"])
def test_what_is_no_encoding_of_text_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="encoding"):
        encoding_named(name)


def test_a_mark_counts_more_than_a_name() -> None:
    assert encoding_of("a".encode("utf-16"), "cp1251") == "utf-16-le"
    assert encoding_of("a".encode("utf-32"), "cp1251") == "utf-32-le"
    assert encoding_of(b"a", "cp1251") == "cp1251"
    assert encoding_of(b"a") == encoding_of(b"") == "utf-8"


TEXTS = {
    "cp1251": "Старая женщина даёт ребёнку два красных яблока",
    "koi8_r": "Старая женщина даёт ребёнку два красных яблока",
    "cp1250": "Stará žena dává dítěti dvě červená jablka",
    "cp1252": "für den Bär",
    "cp1253": "Η γριά γυναίκα δίνει στο παιδί δύο κόκκινα μήλα",
    "cp1255": "האישה הזקנה נותנת לילד שני תפוחים אדומים",
    "cp932": "年老いた女は子供に赤いりんごを二つあげる",
    "euc_jp": "年老いた女は子供に赤いりんごを二つあげる",
    "gb18030": "老妇人给孩子两个红苹果",
    "cp949": "늙은 여자가 아이에게 빨간 사과 두 개를 준다",
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_the_right_encoding_is_among_those_named_and_shown_as_it_reads(encoding: str) -> None:
    text = TEXTS[encoding]
    said = likely_encodings([text.encode(encoding)] * 3)
    first = next(place for place, character in enumerate(text) if not character.isascii())
    assert f"{encoding} ('" in said and text[first : first + 5] in said and "--encoding" in said


def test_a_stream_that_goes_on_is_not_waited_for() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as file, open(writing, "wb", buffering=0) as other:
        text = in_utf8(file, "cp1251")
        for line in ("один\n", "два\n"):
            other.write(line.encode("cp1251"))
            assert text.readline() == line.encode()


def test_one_alone_is_recommended() -> None:
    said = likely_encodings([TEXTS["cp1251"].encode("cp1251"), "Другая строка.".encode("cp1251")])
    assert said.startswith("it is most likely in cp1251 (") and ": --encoding cp1251" in said
    assert "name the one that reads right, --encoding NAME" in likely_encodings([TEXTS["cp1252"].encode("cp1252")])


def test_of_a_text_in_utf_8_the_line_is_named_that_is_none() -> None:
    bad = Undecoded()
    assert all(bad.add(line.encode()) for line in ["für", *["a"] * 30, "Bär"])
    assert not bad.add(b"f\xfcr")
    bad.add(None)
    assert (bad.count, bad.advice()) == (1, "line 33 is not UTF-8 and the rest is: mend that line")
    bad = Undecoded(1000, sound=3)
    for _ in range(6):
        bad.add(b"f\xfcr")
    assert bad.advice() == "lines 1,001, 1,002, 1,003, 1,004, 1,005, .. are not UTF-8 and the rest is: mend those lines"
    bad = Undecoded(None, sound=1)
    assert not all(bad.add(line) for line in [*[b"a"] * 30, b"f\xfcr"])
    assert bad.advice() == "it is not UTF-8 and the rest is: mend that line"


@pytest.mark.parametrize(("lines", "sound"), [(18, 1), (1000, 0)])
def test_many_lines_are_an_encoding_and_so_is_one_beside_ascii(lines: int, sound: int) -> None:
    bad = Undecoded(lines, sound)
    bad.add("für den Bär".encode("cp1252"))
    assert "--encoding" in bad.advice() and "mend" not in bad.advice()


def test_japanese_by_escapes_is_known() -> None:
    assert is_iso_2022_jp("a: 年老いた女".encode("iso2022_jp"))
    assert not is_iso_2022_jp(b"\x1b[1mbold\x1b[0m costs $B\x1b$ 3")
