"""Two text files: they match line by line or are refused, and nothing shifts a pair."""

import bz2
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.config import DataConfig
from tfm.data.corpus import open_corpus
from tfm.data.toy import toy_pairs
from tfm.system.errors import DataError

Write = Callable[[str, str | bytes], Path]


def test_two_files(write: Write) -> None:
    src, tgt = write("a.de", "eins\r\nzwei\n"), write("a.en", bz2.compress(b"one\ntwo"))
    corpus = open_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)]))
    assert list(corpus.pairs()) == list(corpus.pairs()) == [("eins", "one"), ("zwei", "two")]


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 30), st.sampled_from([-2, -1, 1, 2]), st.booleans())
def test_unequal_line_counts_are_refused_with_both_counts(lines: int, difference: int, final_newline: bool) -> None:
    other = max(0, lines + difference)
    if other == lines:
        return
    with TemporaryDirectory() as directory:
        src, tgt = Path(directory, "a.de"), Path(directory, "a.en")
        for path, count in ((src, lines), (tgt, other)):
            text = "".join(f"line {number}\n" for number in range(count))
            path.write_text(text if final_newline else text.removesuffix("\n"))
        corpus = open_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)]))
        with pytest.raises(
            DataError,
            match=rf"a\.de has {lines} lines and .*a\.en {other}; .*match line by line",
        ):
            list(corpus.pairs())


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(("at", "count"), [(417, 1), (700, 40)])
def test_the_place_where_lines_slip_is_named(write: Write, side: int, at: int, count: int) -> None:
    sides = [list(texts) for texts in zip(*toy_pairs("train", size=1_000), strict=True)]
    del sides[side][at : at + count]
    src, tgt = (str(write(f"a.{i}", "\n".join(lines))) for i, lines in enumerate(sides))
    with pytest.raises(DataError, match=r"match line by line; the first line that slips .* near ([\d,]+)$") as raised:
        list(open_corpus(DataConfig(src=[src], tgt=[tgt])).pairs())
    assert abs(int(str(raised.value).rpartition(" ")[2].replace(",", "")) - at) < 12


def test_no_place_is_named_where_nothing_tells(write: Write) -> None:
    src, tgt = ([pair[side] for pair in toy_pairs("train", size=1_000)] for side in (0, 1))
    random.Random(1).shuffle(others := list(tgt))
    for lines in (tgt[:-7], others[:-7], ["x"] * 990):
        names = [str(write("a.en", "\n".join(src))), str(write("a.de", "\n".join(lines)))]
        with pytest.raises(DataError, match=r"the two files must match line by line$"):
            list(open_corpus(DataConfig(src=names[:1], tgt=names[1:])).pairs())


def test_a_byte_order_mark_is_left_out_and_told_once(write: Write) -> None:
    src, tgt = str(write("a.de", "\ufeffeins\nzwei\n")), str(write("a.en", "one\ntwo\n"))
    corpus = open_corpus(DataConfig(src=[src], tgt=[tgt]))
    assert list(corpus.pairs()) == [("eins", "one"), ("zwei", "two")]
    assert corpus.remarks == (f"{src}: the byte-order mark before its text is left out",)
    assert len(open_corpus(DataConfig(src=[src], tgt=[src])).remarks) == 1
    assert len(open_corpus(DataConfig(text=[src])).remarks) == 1
    pairs = str(write("pairs.tsv", "\ufeffeins\tone\n"))
    assert sum("byte-order mark" in one for one in open_corpus(DataConfig(data=[pairs])).remarks) == 1


def test_blank_lines_are_empty_pairs_and_keep_their_place(write: Write) -> None:
    src, tgt = write("a.de", "eins\n\ndrei\n"), write("a.en", "one\ntwo\n\n")
    corpus = open_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)]))
    assert list(corpus.pairs()) == [("eins", "one"), ("", "two"), ("drei", "")]


def test_bad_lines_stop_or_are_skipped_on_both_sides(write: Write) -> None:
    src, tgt = (
        str(write("a.de", b"eins\nzw\xff\ndrei\n")),
        str(write("a.en", b"one\ntwo\n\xffthree\n")),
    )
    with pytest.raises(DataError, match=r"a\.de:2 byte 3: invalid UTF-8"):
        list(open_corpus(DataConfig(src=[src], tgt=[tgt])).pairs())
    skipping = open_corpus(DataConfig(src=[src], tgt=[tgt], bad_lines="skip"))
    assert list(skipping.pairs()) == [("eins", "one"), ("", ""), ("", "")]


def test_counting_does_not_tokenise_or_decode(write: Write) -> None:
    path = str(write("latin1.txt", "zw\u00f6lf\n".encode("latin-1")))
    assert open_corpus(DataConfig(src=[path], tgt=[path])).count() == 1
