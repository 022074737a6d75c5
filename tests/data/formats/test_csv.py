"""Comma-separated rows."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.tables import pairs_of

from tfm.data.config import DataConfig
from tfm.data.errors import DataError

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
