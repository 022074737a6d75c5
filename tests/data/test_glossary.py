"""Glossaries: which terms are found in a text, and what is said of a file that is none."""

import gzip
import time
from pathlib import Path

import pytest

from tfm.data.glossary import Glossary
from tfm.data.words import missed
from tfm.system.errors import DataError

TERMS = Glossary([("cat", "Katze"), ("house cat", "Hauskatze"), ("US", "USA"), ("猫", "Katze"), ("C++", "C++")])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a cat", ["Katze"]),
        ("The Cat and the cat.", ["Katze", "Katze"]),
        ("concatenate", []),
        ("a house cat", ["Hauskatze"]),
        ("tell us", []),
        ("in the US.", ["USA"]),
        ("黒猫です", ["Katze"]),
        ("in C++, say", ["C++"]),
        ("", []),
        ("a HOUSE CAT", ["Hauskatze"]),
        ("黒猫と猫", ["Katze", "Katze"]),
    ],
)
def test_terms_are_found_as_whole_words_the_longest_first(text: str, expected: list[str]) -> None:
    assert TERMS.wanted(text) == expected


@pytest.mark.parametrize(
    ("term", "text", "found"),
    [
        ("Katze", "KATZE", True),
        ("Katze", "katze", False),
        ("straße", "STRASSE", True),
        ("insan", "İnsan", True),
        ("σοφός", "ΣΟΦΌΣ", True),
        ("café", "Cafe\u0301", True),
        ("cafe\u0301", "café", True),
    ],
)
def test_a_small_letter_stands_for_a_capital_and_accents_may_be_apart(term: str, text: str, *, found: bool) -> None:
    assert Glossary([(term, "x")]).wanted(text) == ["x"] * found


@pytest.mark.parametrize(
    ("wanted", "translation", "lacking"),
    [
        (["Katze", "Katze"], "Die Katze.", ("Katze",)),
        (["Katze"], "Die Katzen.", ("Katze",)),
        (["Katze"], "DIE KATZE", ()),
        (["eau"], "le bateau", ("eau",)),
        (["eau"], "l'eau", ()),
        (["e\u0301te\u0301"], "l'été", ()),
        (["東京"], "彼は東京に住む", ()),
        (["eau", "eau de vie"], "eau de vie", ("eau",)),
        (["eau de vie", "eau"], "L'eau, eau de vie", ()),
        ([], "x", ()),
    ],
)
def test_what_a_translation_lacks(wanted: list[str], translation: str, lacking: tuple[str, ...]) -> None:
    assert missed(wanted, translation) == lacking


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("terms.tsv", "# comment\n\ncat\tKatze\tnoun\ndog \t Hund\n"),
        ("terms.txt", "term\tTranslation\ncat\tKatze\ndog\tHund"),
        ("terms.csv", 'source,target\n# a "comment", here\ncat,Katze,noun\n\n"dog", "Hund"\n'),
        ("terms.csv", "dog;Hund\ncat;Katze\n"),
        ("terms.csv", "sep=;\nEnglish;German\ndog;Hund\ncat;Katze\n"),
        ("terms.tsv", "English\tGERMAN\ndog\tHund\ncat\tKatze\n"),
        ("terms.csv", "\ufeffsrc\ttgt\r\ndog\tHund\r\ncat\tKatze\r\n"),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_a_file(tmp_path: Path, name: str, content: str, *, compressed: bool) -> None:
    path = tmp_path / (f"{name}.gz" if compressed else name)
    path.write_bytes(gzip.compress(content.encode()) if compressed else content.encode())
    glossary = Glossary.load(path)
    assert len(glossary) == 2 and glossary.wanted("dog, cat") == ["Hund", "Katze"]


def test_quotes_and_commas_in_a_csv_and_quotes_in_a_tsv(tmp_path: Path) -> None:
    (tmp_path / "terms.csv").write_text('"salt, pepper","Salz; ""Pfeffer"""\ncat,Katze; Kater\n')
    glossary = Glossary.load(tmp_path / "terms.csv")
    assert glossary.wanted("salt, pepper, cat") == ['Salz; "Pfeffer"', "Katze; Kater"]
    (tmp_path / "terms.tsv").write_text('"cat\t"Katze, Kater\n')
    assert Glossary.load(tmp_path / "terms.tsv").wanted('the "cat') == ['"Katze, Kater']


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("cat Katze\n", r":1: a line of a glossary is term<TAB>translation"),
        ("a\tb\nc\t\n", ":2:"),
        ("# x\n", "no terms"),
        ("term\ttranslation\n", "no terms"),
        ("a\tb\nterm\ttranslation\nterm\tx", ":3: 'term' has another translation in line 2"),
        ("a\tb\nc\td\na\tx\n", ":3: 'a' has another translation in line 1; keep one"),
    ],
)
def test_a_file_that_is_no_glossary(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        Glossary.load(path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("cat\tKatze, cat\n,x", ":2: a line of a glossary is term,translation"),
        ('a,b\n\n"c" d,e\n', ":3: a double quote that opens a field"),
        ('a,b\n"c,d\n', "a double quote that opens a field"),
        ('a,b\n"a",c\n', ":2: 'a' has another translation in line 1"),
    ],
)
def test_a_csv_that_is_no_glossary(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "terms.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=problem):
        Glossary.load(path)


def test_a_file_of_another_format(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not plain text"):
        Glossary.load(tmp_path / "terms.tmx")


def test_a_first_line_says_what_is_between_the_fields_of_a_csv(tmp_path: Path) -> None:
    (tmp_path / "terms.csv").write_text("sep=;\ndog;Hund, klein\ncat;Katze, alt\n")
    assert Glossary.load(tmp_path / "terms.csv").wanted("a dog") == ["Hund, klein"]


def test_names_of_languages_in_the_first_line_alone_name_columns(tmp_path: Path) -> None:
    (tmp_path / "terms.tsv").write_text("German\tDeutsch\nEnglish\tFrench\n")
    assert Glossary.load(tmp_path / "terms.tsv").wanted("German, English") == ["Deutsch", "French"]


@pytest.mark.parametrize(
    "text",
    ["https://example.org/cat", "cat@example.org", "`cat`", "{cat}", "<cat>", "%(cat)s", ":file:`cat`", "</cat>"],
)
def test_a_part_of_a_placeholder_is_no_term(text: str) -> None:
    glossary = Glossary([("cat", "Katze")])
    assert glossary.wanted(f"see {text} now") == []
    assert glossary.wanted(f"see {text} and a cat") == ["Katze"]
    assert Glossary([(text, "x")]).wanted(f"see {text} now") == ["x"], "a whole one may be a term"


def test_many_placeholders_take_no_time() -> None:
    begun = time.process_time()
    assert len(Glossary([("cat", "Katze")]).wanted("cat {x} " * 20_000)) == 20_000
    assert time.process_time() - begun < 5


def test_hyphens_are_alike() -> None:
    for hyphen in "-\u2010\u2011":
        assert Glossary([(f"e{hyphen}mail", "E-Mail")]).wanted("an e-mail, an e\u2011mail") == ["E-Mail"] * 2
    assert missed(["E-Mail"], "eine E\u2011Mail") == ()


def test_apostrophes_are_alike() -> None:
    for term in ("aujourd'hui", "aujourd\u2019hui"):
        glossary = Glossary([(term, "today's news"), ("L'Eau", "L'Eau")])
        assert glossary.wanted("aujourd'hui, AUJOURD\u2019HUI") == ["today's news"] * 2
        assert glossary.wanted("L\u2019Eau, l'eau") == ["L'Eau"]
    assert missed(["today's news"], "the today\u2019s news") == ()
