"""TSV, CSV and JSON Lines."""

import bz2
import gzip
from pathlib import Path
from typing import Any

import pytest
from helpers.tables import PAIRS, jsonl, pairs_of
from helpers.written_files import Write

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.data.formats.columns import DELIMITERS, UnclearColumns
from tfm.system.errors import DataError, UsageError

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


def test_jsonl(write: Write) -> None:
    rows = [{"src": s, "tgt": t, "id": 1} for s, t in PAIRS] + [{"src": None, "tgt": "x"}]
    assert pairs_of(write("a.jsonl", jsonl(rows) + "\n")) == [
        *PAIRS,
        ("", ""),
        ("", ""),
    ]
    assert pairs_of(write("a.jsonl.bz2", bz2.compress(jsonl(rows[:3]).encode()))) == PAIRS


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a JSON object: "),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
        ('{"src": 1, "tgt": "x"}', "source and target must be strings"),
        (
            '{"a": "x", "b": "y", "c": "z"}',
            "no src and tgt, which other rows have",
        ),
    ],
)
def test_damaged_jsonl_names_its_line(write: Write, line: str, message: str) -> None:
    with pytest.raises(DataError, match=f"a.jsonl:2: {message}"):
        pairs_of(write("a.jsonl", jsonl([{"src": "a", "tgt": "b"}]) + line + "\n"))


def test_the_columns_of_jsonl_are_picked_once(tmp_path: Path) -> None:
    path = tmp_path / "swapped.jsonl"
    path.write_text('{"en": "dog", "de": "Hund"}\n{"de": "Katze", "en": "cat"}\n')
    assert list(open_spec(str(path), DataConfig()).pairs()) == [("dog", "Hund"), ("cat", "Katze")]
    path.write_text('{"en": "dog", "de": "Hund"}\n' * 50 + '{"en": "cat", "fr": "chat"}\n')
    with pytest.raises(DataError, match=r"swapped.jsonl:51: no de, which other rows have"):
        list(open_spec(str(path), DataConfig()).pairs())
    path.write_text('{"en": "dog", "note": "?", "de": "Hund"}\n{"en": "cat", "note": "?"}\n')
    with pytest.raises(UnclearColumns, match="among 'en', 'note', 'de'"):
        list(open_spec(str(path), DataConfig()).pairs())


@pytest.mark.parametrize(
    ("rows", "pairs"),
    [
        ([{"en": "dog"}, {"en": "cat", "de": "Katze"}], [("", ""), ("cat", "Katze")]),
        ([{"en": "dog"}, {"en": "owl"}, {"en": "cat", "de": "Katze"}], [("", ""), ("", ""), ("cat", "Katze")]),
        ([{"de": "Hund"}, *[{"en": "cat", "de": "Katze"}] * 2], [("", ""), *[("cat", "Katze")] * 2]),
        ([{"id": 1, "src": "a", "tgt": "b"}, {"id": 2, "src": "c"}, {"id": 3}], [("a", "b"), ("", ""), ("", "")]),
        ([{"id": 2, "src": "c"}, {"id": 1, "src": "a", "tgt": "b"}], [("", ""), ("a", "b")]),
        (
            [
                {"en": "dog", "de": "Hund"},
                *[{"en": "cat", "de": "Katze", "note": "a pet"}] * 3,
                {"en": "x", "note": "y"},
            ],
            [("dog", "Hund"), *[("cat", "Katze")] * 3, ("", "")],
        ),
    ],
)
def test_a_field_that_an_object_leaves_out_is_blank(
    write: Write, rows: list[dict[str, Any]], pairs: list[tuple[str, str]]
) -> None:
    assert pairs_of(write("a.jsonl", jsonl(rows))) == pairs


@pytest.mark.parametrize(
    "content",
    [
        '{"translation": {"de": "eins", "en": "one"}}\n\n{"translation": {"de": "zwei", "en": "two"}}\n',
        '[{"translation": {"de": "eins", "en": "one"}}, {"translation": {"de": "zwei", "en": "two"}}]',
        '\n [\n  {"de": "eins", "en": "one"},\n  {"en": "two",\n   "de": "zwei"}\n]\n',
    ],
)
def test_a_json_has_an_object_in_a_line_or_an_array(write: Write, content: str) -> None:
    path = write("a.json", content)
    assert [pair for pair in pairs_of(path, DataConfig(src_column="de", tgt_column="en")) if any(pair)] == [
        ("eins", "one"),
        ("zwei", "two"),
    ]


@pytest.mark.parametrize(
    "content", ['{\n  "title": "x"\n}', "[1, 2]", '["a", {"src": "x", "tgt": "y"}]', "[", '{"src": "a"', "text"]
)
def test_a_json_without_pairs_is_told(write: Write, content: str) -> None:
    with pytest.raises(DataError, match=r"a\.json(:1|: element 1)?: not (a )?JSON"):
        pairs_of(write("a.json", content))


def test_columns_that_are_not_clear_are_shown_with_a_row_and_what_may_be_meant(write: Write) -> None:
    tables = {
        "a.csv": ("Forbidden,Domain,en-GB,de-DE\n,Shop,the cat,\n", ["en-GB", "de-DE"], "'', 'Shop', 'the cat', ''"),
        "b.csv": ("Domain,English,German\nShop,the cat sleeps,die Katze\n", ["2", "3"], "'Shop', 'the cat sleeps'"),
        "c.tsv": ("1\tthe old cat\tdie Katze\n2\tthe dog\tder Hund\n", ["2", "3"], "'2', 'the dog'"),
        "d.jsonl": ('{"id": 1, "text": "x", "n": 2}\n', [], "'', 'x', ''"),
    }
    for name, (content, columns, row) in tables.items():
        with pytest.raises(UnclearColumns, match=r"; name both, or number them from 1") as refused:
            pairs_of(write(name, content))
        assert f"(below: {row}" in str(refused.value)
        assert refused.value.flags == (["--src-column", columns[0], "--tgt-column", columns[1]] if columns else [])
