"""Texts are several. Splitting long ones: no word is lost, every part fits, and cuts fall at sentence ends."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.cleaning import clean
from tfm.data.sentences import refuse_one_text, split_text

TEXTS = st.text(alphabet="ab é.!?…\"')»。！日😀 ", max_size=80).map(clean)
LIMITS = st.integers(1, 20)


def bytes_of(text: str) -> int:
    return len(text.encode())


def without_space(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(TEXTS, LIMITS)
@settings(max_examples=300, deadline=None)
def test_nothing_is_lost_and_every_part_fits(text: str, limit: int) -> None:
    parts, _ = split_text(text, bytes_of, limit)
    assert without_space("".join(parts)) == without_space(text)
    assert all(bytes_of(part) <= limit or len(part) == 1 for part in parts)
    assert all(part == part.strip() for part in parts)
    assert all(parts) or parts == [""]


@given(st.lists(st.text(alphabet="abc.", min_size=1, max_size=6), min_size=1, max_size=20), st.integers(6, 20))
@settings(max_examples=200, deadline=None)
def test_words_that_fit_stay_whole(words: list[str], limit: int) -> None:
    parts, _ = split_text(" ".join(words), len, limit)
    assert " ".join(parts).split() == words


@given(
    st.lists(st.text(alphabet="ab ", min_size=1, max_size=12).map(clean).filter(bool), max_size=9), st.integers(1, 25)
)
@settings(max_examples=200, deadline=None)
def test_sentences_are_cut_only_if_one_of_them_is_too_long(sentences: list[str], limit: int) -> None:
    ended = [f"{sentence}." for sentence in sentences]
    parts, cut = split_text(" ".join(ended), len, limit)
    assert cut == any(len(sentence) > limit for sentence in ended)
    assert cut or all(part.endswith(".") for part in parts if part)
    assert cut or all(len(f"{a} {b.split('.')[0]}.") > limit for a, b in pairwise(parts))


@given(TEXTS)
def test_a_text_that_fits_is_left_alone(text: str) -> None:
    assert split_text(text, bytes_of, bytes_of(text)) == ([text], False)


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("One. Two! Three? Four", 12, ["One. Two!", "Three? Four"]),
        ("One. Two! Three? Four", 9, ["One. Two!", "Three?", "Four"]),
        ("He said: “Go!” She went.", 15, ["He said: “Go!”", "She went."]),
        ("(See there.) Then go.", 14, ["(See there.)", "Then go."]),
        ("你好。再见！走吧", 3, ["你好。", "再见！", "走吧"]),
        ("It is 3.5 km. Far.", 13, ["It is 3.5 km.", "Far."]),
        ("Well… Yes.", 6, ["Well…", "Yes."]),
    ],
)
def test_cuts_fall_at_sentence_ends(text: str, limit: int, parts: list[str]) -> None:
    assert split_text(text, len, limit) == (parts, False)


def test_a_long_sentence_is_halved_at_the_space_nearest_its_middle() -> None:
    assert split_text("aa bbbb cc dddd ee", len, 10) == (["aa bbbb cc", "dddd ee"], True)
    assert split_text("a bbbbbbbbbbbb", len, 12) == (["a", "bbbbbbbbbbbb"], True)


def test_a_long_word_is_cut_inside() -> None:
    assert split_text("abcdefgh", len, 2) == (["ab", "cd", "ef", "gh"], True)


def test_a_character_that_cannot_fit_is_kept() -> None:
    assert split_text("a😀b", bytes_of, 2) == (["a", "😀", "b"], True)


@pytest.mark.parametrize("text", ["ab", "", "a text that is longer than what is shown of it"])
def test_one_text_is_refused_where_several_are_wanted(text: str) -> None:
    with pytest.raises(TypeError, match=r"give a list of texts, not one text: \['"):
        refuse_one_text(text)
    refuse_one_text([text])
