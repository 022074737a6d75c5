"""Comma-separated rows."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.tables import pairs_of

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.data.errors import DataError
from tfm.data.formats.csv import DELIMITERS

Write = Callable[[str, str | bytes], Path]


def test_csv_with_commas_quotes_and_newlines_inside(write: Write) -> None:
    content = '\ufeffid,src,tgt\r\n1,ein Hund,a dog\r\n2,"eins, ""zwei""\ndrei","one,\r\ntwo"\r\n\r\n3,x,y'
    assert pairs_of(write("a.csv", content)) == [
        ("ein Hund", "a dog"),
        ('eins, "zwei"\ndrei', "one,\ntwo"),
        ("", ""),
        ("x", "y"),
    ]


def test_damaged_csv_names_its_line(write: Write) -> None:
    with pytest.raises(DataError, match=r"short\.csv:3: 1 fields, but the header names 2"):
        pairs_of(write("short.csv", "src,tgt\na,b\nshort\n"))
    with pytest.raises(DataError, match=r"open\.csv:\d+: field larger than field limit"):
        pairs_of(write("open.csv", 'src,tgt\na,"never closed\n' + "text\n" * 50_000))
    with pytest.raises(DataError, match=r"latin\.csv:3 byte 2: invalid UTF-8"):
        pairs_of(write("latin.csv", b"src,tgt\na,b\nT\xfcr,door\n"))
    with pytest.raises(DataError, match=r"empty\.csv: no columns 'src' and 'tgt' among none"):
        pairs_of(write("empty.csv", ""))
    skipped = pairs_of(
        write("skip.csv", b"src,tgt\na,b\nT\xfcr,door\nc,d\n"),
        DataConfig(bad_lines="skip"),
    )
    assert skipped == [("a", "b"), ("", ""), ("c", "d")]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_recognised_and_said(write: Write, delimiter: str) -> None:
    rows = [["src", "tgt", "note"], ["Yes, of course; now.", "Ja, sicher; jetzt.", ""], ["No", "Nein", "a, b; c"]]
    content = "".join(delimiter.join(f'"{field}"' for field in row) + "\n" for row in rows)
    path = write("a.csv", content)
    assert pairs_of(path) == [("Yes, of course; now.", "Ja, sicher; jetzt."), ("No", "Nein")]
    (remark,) = open_spec(str(path), DataConfig()).remarks
    assert f"fields between {DELIMITERS[delimiter]}, header src, tgt, note" in remark


def test_without_a_header_the_first_row_is_a_pair(write: Write) -> None:
    path = write("a.csv", "Good morning.;Guten Morgen.\nGood night.;Gute Nacht.\n")
    assert pairs_of(path) == [("Good morning.", "Guten Morgen."), ("Good night.", "Gute Nacht.")]
    assert open_spec(str(path), DataConfig()).remarks == (
        f"{path}: fields between semicolons, no header: the first row is a pair",
    )
    three = write("b.csv", "1;Good morning.;Guten Morgen.\n2;Good night.;Gute Nacht.\n")
    with pytest.raises(DataError, match=r"no columns 'src' and 'tgt' among '1', '2', '3'; name them: --src-column"):
        pairs_of(three)
    assert pairs_of(three, DataConfig(src_column="3", tgt_column="2"))[1] == ("Gute Nacht.", "Good night.")


def test_short_words_are_a_header_and_numbers_say_that_there_is_none(write: Write) -> None:
    path = write("a.csv", "German,English\nHund,dog\n")
    assert pairs_of(path) == [("Hund", "dog")]
    assert pairs_of(path, DataConfig(src_column="1", tgt_column="2")) == [("German", "English"), ("Hund", "dog")]
