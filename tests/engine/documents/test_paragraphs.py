"""Paragraphs: lines that only a width has made are one text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.engine.documents.paragraphs import Paragraphs

WRAPPED = (
    "    Without arguments, `alias' prints the list of aliases in the reusable\n"
    "    form `alias NAME=VALUE' on standard output.\n"
)
JOINED = (
    "    Without arguments, `alias' prints the list of aliases in the reusable"
    " form `alias NAME=VALUE' on standard output.\n"
)


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        (f"Define aliases.\n    \n{WRAPPED}    \n    Options:\n      -p\tprint\n", None),
        (WRAPPED, JOINED),
        (WRAPPED.replace("\n", "\r\n"), JOINED.replace("\n", "\r\n")),
        ("Usage: %s FILE\nThis is the first of two lines.\n", "Usage: %s FILE\nThis is the first of two lines.\n"),
        ("The file was not found, and nothing was done.\nPlease try again.", None),
        ("Import what the user has chosen from the file\nExport what the user has chosen to the file", None),
        ("- an item that has many words and goes to the end\n- another item that goes to the end", None),
        ("  -a, --all             take all of them and more than\n                        one", None),
        ("one\ntwo\nthree", None),
        ("", ""),
    ],
)
def test_lines_are_one_text_where_a_width_has_made_them(text: str, joined: str | None) -> None:
    if joined is None:
        joined = text.replace(WRAPPED, JOINED)
    assert Paragraphs(text).joined == joined
    assert Paragraphs(text).wrapped(joined) == text


def test_a_translation_has_the_width_of_its_source() -> None:
    lines = Paragraphs(WRAPPED).wrapped("    " + "sehr lange Wörter " * 20 + "\n").split("\n")
    assert max(map(len, lines)) <= 73 and len(lines) == 7 and lines.pop() == ""
    assert all(line.startswith("    ") and line == line.rstrip() for line in lines)


@given(st.text(st.sampled_from("ab .\n\t-A字\r\x85"), max_size=80))
def test_no_character_is_lost_but_white_space(text: str) -> None:
    paragraphs = Paragraphs(text)
    again = paragraphs.wrapped(paragraphs.joined)
    assert "".join(again.split()) == "".join(text.split())
    assert len(paragraphs.joined.split("\n")) <= len(text.split("\n"))
