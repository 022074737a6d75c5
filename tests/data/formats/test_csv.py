"""Comma-separated rows."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.tables import pairs_of

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.data.formats.columns import DELIMITERS
from tfm.system.errors import DataError

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
    with pytest.raises(DataError, match=r"short\.csv:3: 1 fields, but the first row has 2"):
        pairs_of(write("short.csv", "src,tgt\na,b\nshort\n"))
    with pytest.raises(DataError, match=r"open\.csv:2: a double quote .* \(field larger than field limit"):
        pairs_of(write("open.csv", 'src,tgt\na,"never closed\n' + "text\n" * 50_000))
    with pytest.raises(DataError, match=r"latin\.csv:3 byte 2: invalid UTF-8"):
        pairs_of(write("latin.csv", b"src,tgt\na,b\nT\xfcr,door\n"))
    with pytest.raises(DataError, match=r"empty\.csv has no row"):
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
    assert f"fields between {DELIMITERS[delimiter]}, the first row taken for a header: 'src', 'tgt', 'note'" in remark


def test_between_commas_of_the_text_semicolons_win(write: Write) -> None:
    content = "Good morning, Tom;Guten Morgen, Tom\nGood night, Tom;Gute Nacht, Tom\n"
    assert pairs_of(write("a.csv", content))[0] == ("Good morning, Tom", "Guten Morgen, Tom")
    assert pairs_of(write("one.csv", "Hello, world;Hallo, Welt\n")) == [("Hello, world", "Hallo, Welt")]
    assert pairs_of(write("excel.csv", "sep=;\nsource;target\na, b;c, d\n")) == [("", ""), ("a, b", "c, d")]
    with pytest.raises(DataError, match=r"one field in a row; a \.csv has commas, semicolons or tabs between fields"):
        pairs_of(write("pipe.csv", "a | b\nc | d\n"))


def test_without_a_header_the_first_row_is_a_pair(write: Write) -> None:
    path = write("a.csv", "Good morning.;Guten Morgen.\nGood night.;Gute Nacht.\n")
    assert pairs_of(path) == [("Good morning.", "Guten Morgen."), ("Good night.", "Gute Nacht.")]
    assert pairs_of(path, DataConfig(src_column="en", tgt_column="de")) == pairs_of(path)
    (remark,) = open_spec(str(path), DataConfig()).remarks
    assert "fields between semicolons, no header: the first row taken for a pair" in remark
    three = write("b.csv", "1;Good morning.;Guten Morgen.\n2;Good night.;Gute Nacht.\n")
    with pytest.raises(
        DataError, match=r"no columns 'src' and 'tgt' among '1', 'Good morning\.', .*; name both, or number"
    ):
        pairs_of(three)
    assert pairs_of(three, DataConfig(src_column="3", tgt_column="2"))[1] == ("Gute Nacht.", "Good night.")


@pytest.mark.parametrize(
    "content", ["Hello,Hallo\n", "dog;Hund\ncat;Katze\n", "こんにちは,hello\n今日は,good day\nはい,yes I do\n"]
)
def test_no_first_pair_is_lost_where_all_rows_are_words(write: Write, content: str) -> None:
    assert len(pairs_of(write("a.csv", content))) == content.count("\n")


def test_a_header_is_known_by_its_names_or_by_being_shorter_than_what_follows(write: Write) -> None:
    sentences = "The dog sleeps,Der Hund schläft\nA cat sees me,Eine Katze sieht mich\n"
    assert pairs_of(write("a.csv", "German,English\n" + sentences))[0][0] == "The dog sleeps"
    assert pairs_of(write("c.csv", "id;Target text;Source text\n1;Hund;dog\n")) == [("dog", "Hund")]
    named = write("b.csv", "\n ID ,Target, Source\n1,Hund,dog\n")
    assert pairs_of(named) == [("", ""), ("dog", "Hund")]
    assert pairs_of(named, DataConfig(src_column="2", tgt_column="1")) == [("", ""), ("Hund", "1")]
    with pytest.raises(DataError, match="no columns 'Englsh' and 'German'"):
        pairs_of(named, DataConfig(src_column="Englsh", tgt_column="German"))


def test_quotes_and_surplus_fields_never_make_a_wrong_pair(write: Write) -> None:
    assert pairs_of(write("space.csv", 'src, tgt\n"Hello, world", "Hallo, Welt"\n')) == [
        ("Hello, world", "Hallo, Welt")
    ]
    for name, row, line in (
        ("extra.csv", "Hello, world,Hallo Welt\n", 2),
        ("open.csv", 'Hello,"Hallo\nYes,Ja\n', 2),
        ("stray.csv", 'a,b\n"Hello" he said,Hallo\n', 3),
    ):
        with pytest.raises(DataError, match=rf"{name}:{line}: .*quote"):
            pairs_of(write(name, "src,tgt\n" + row))
