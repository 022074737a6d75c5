"""Glossaries: which terms are found in a text, and what is said of a file that is none."""

from pathlib import Path

import pytest

from tfm.data.errors import DataError
from tfm.data.glossary import Glossary, missed

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
    ],
)
def test_terms_are_found_as_whole_words_the_longest_first(text: str, expected: list[str]) -> None:
    assert TERMS.wanted(text) == expected


def test_what_a_translation_lacks() -> None:
    assert missed(["Katze", "Katze"], "Die Katze.") == ("Katze",)
    assert missed(["Katze"], "Die Katzen.") == ()
    assert missed([], "x") == ()


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("# comment\n\ncat\tKatze\tnoun\ndog \t Hund\n", encoding="utf-8")
    glossary = Glossary.load(path)
    assert len(glossary) == 2 and glossary.wanted("dog, cat") == ["Hund", "Katze"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("cat Katze\n", r":1: a line of a glossary is term<TAB>translation"),
        ("a\tb\nc\t\n", ":2:"),
        ("# x\n", "no terms"),
        ("a\tb\nc\td\na\tx\n", ":3: 'a' has another translation in line 1; keep one"),
    ],
)
def test_a_file_that_is_no_glossary(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        Glossary.load(path)


def test_a_file_of_another_format(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not plain text"):
        Glossary.load(tmp_path / "terms.tmx")
