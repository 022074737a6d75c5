"""Tab-separated lines."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.tables import pairs_of

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.system.errors import DataError, UsageError

Write = Callable[[str, str | bytes], Path]
NAMED = "id\ten\tfr\n1\ta cat\tun chat\n2\ta dog\t\n3\tbread\tdu pain\n"


def test_tsv(write: Write) -> None:
    path = write("a.tsv", "ein Hund\ta dog\r\n\nzwei\ttwo\tthird field\n")
    assert pairs_of(path) == [("ein Hund", "a dog"), ("", ""), ("zwei", "two")]
    with pytest.raises(DataError, match=r"b\.tsv:2: no tab"):
        pairs_of(write("b.tsv", "a\tb\nno tab here\n"))


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
@pytest.mark.parametrize("wanted", [("en", "fr"), ("EN", "fr"), ("2", "3"), ("en", "3")])
def test_columns_with_a_header_are_found_by_name_or_number(write: Write, name: str, wanted: tuple[str, str]) -> None:
    path = write(name, gzip.compress(NAMED.encode()) if name.endswith(".gz") else NAMED)
    corpus = open_spec(str(path), DataConfig(src_column=wanted[0], tgt_column=wanted[1]))
    assert list(corpus.pairs()) == [("a cat", "un chat"), ("a dog", ""), ("bread", "du pain")]
    assert corpus.count() == 3
    (remark,) = corpus.remarks
    assert "the first row taken for a header: 'id', 'en', 'fr'; source in column 2, target in column 3" in remark


def test_columns_that_are_not_there_are_never_replaced_by_others(write: Write) -> None:
    path = write("a.tsv", NAMED)
    for wanted in (("en", "es"), ("English", "French"), ("2", "4"), ("0", "1"), ("src", "tgt")):
        with pytest.raises(DataError, match=f"no columns '{wanted[0]}' and '{wanted[1]}' among 'id', 'en', 'fr'"):
            pairs_of(path, DataConfig(src_column=wanted[0], tgt_column=wanted[1]))
    with pytest.raises(UsageError, match="source and target are the same column"):
        pairs_of(path, DataConfig(src_column="en", tgt_column="2"))
    with pytest.raises(DataError, match=r"b\.tsv: two columns are called 'en'"):
        pairs_of(write("b.tsv", "en\ten\tfr\na\tb\tc\n"), DataConfig(src_column="en", tgt_column="fr"))


def test_without_a_header_columns_are_numbered(write: Write) -> None:
    path = write("a.tsv", "1\ta cat\tun chat\n2\ta dog\tun chien\n")
    assert pairs_of(path, DataConfig(src_column="3", tgt_column="2")) == [("un chat", "a cat"), ("un chien", "a dog")]
    two = write("b.tsv", "a cat\tun chat\n")
    assert pairs_of(two, DataConfig(src_column="en", tgt_column="fr")) == pairs_of(two), "languages of a file beside it"
    with pytest.raises(DataError, match="no columns 'English' and 'French' among 'a cat', 'un chat'"):
        pairs_of(two, DataConfig(src_column="English", tgt_column="French"))


@pytest.mark.parametrize(
    ("content", "header"),
    [
        ("src\ttrg\nthe cat\tdie Katze\n", True),
        ("Source text\tTarget text\ncat\tKatze\n", True),
        ("de\ten\nHund\tdog\n", True),
        ("eng_Latn\tdeu_Latn\ndog\tHund\n", True),
        ("English\tGerman\nThe dog sleeps.\tDer Hund schläft.\n", True),
        ("dog\tHund\ncat\tKatze\n", False),
        ("Go.\tGeh.\nThe dog sleeps.\tDer Hund schläft.\n", False),
        ("the cat\tdie Katze\nthe dog\tder Hund\n", False),
        ("no\tnein\nThe dog sleeps.\tHund\n", False),
    ],
)
def test_a_header_is_known_by_its_names_or_by_words_above_texts(write: Write, content: str, header: bool) -> None:
    corpus = open_spec(str(write("a.tsv", content)), DataConfig())
    assert corpus.count() == len(list(corpus.pairs())) == content.count("\n") - header
    assert ("taken for a header" in corpus.remarks[0]) == header


def test_a_name_is_found_composed_or_not(write: Write) -> None:
    path = write("a.tsv", "English\tFranc\u0327ais\na\tb\n")
    assert pairs_of(path, DataConfig(src_column="english", tgt_column="Fran\u00e7ais")) == [("a", "b")]


def test_quotes_are_text(write: Write) -> None:
    assert pairs_of(write("a.tsv", '"a b\tc"\n"c d"\te ""f\n')) == [('"a b', 'c"'), ('"c d"', 'e ""f')]


def test_a_tab_inside_a_text_never_makes_a_wrong_pair(write: Write) -> None:
    with pytest.raises(DataError, match=r"a\.tsv:3: 3 fields, but the first row has 2; is a tab inside a text"):
        pairs_of(write("a.tsv", "src\ttgt\na\tb\nc\td\te\n"))
    with pytest.raises(DataError, match=r"b\.tsv:2: 2 fields, but the text is in column 3"):
        pairs_of(write("b.tsv", "id\tsrc\ttgt\n1\ta\n"))


def test_an_empty_file_has_no_pairs(write: Write) -> None:
    corpus = open_spec(str(write("a.tsv", "")), DataConfig())
    assert (list(corpus.pairs()), corpus.count()) == ([], 0)
