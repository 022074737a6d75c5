"""Cleaning: one line in, one line out, and nothing left for a second pass."""

import unicodedata
from typing import Any

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.cleaning import check_texts, clean
from tfm.data.toy import toy_pairs

ANY_TEXT = st.text(alphabet=st.characters() | st.characters(categories=["Cs"]))
SPACES = "\u2028\u2029\u0085\v\f\x00\x1c\x1f\x7f\x80\x9f\u00a0\u3000\r\n\t"
INVISIBLE = "\u200b\u00ad\ufeff\u200e\u200f\u202a\u202e\u2066\u2069\u2060"
JOINERS = "\u200c\u200d"
VOWEL_SEPARATOR = "\u180e"
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"
TAGS = "\U000e0020\U000e0067\U000e007e\U000e007f"
VISIBLE = "\u0600\u0601\u0605\u06dd\u070f\u0890\u08e2\U000110bd\U000110cd"
TROUBLE = st.text(
    alphabet=st.sampled_from("a e\u0301\u0327\u1112\u1161\u11ab\ud800\udfff" + SPACES + INVISIBLE + JOINERS)
) | st.text(alphabet=st.sampled_from("ae\u0301 \u200b\ufe0f\U0001f3fb" + SCOTLAND + TAGS + VISIBLE + VOWEL_SEPARATOR))


ALL_TAGS = "".join(map(chr, range(0xE0020, 0xE0080)))


def is_invisible(character: str) -> bool:
    """Whether Unicode says that it is a format character that shows nothing."""
    return bool(regex.match(r"(?=\p{Default_Ignorable_Code_Point})\p{Cf}", character))


@settings(deadline=None, max_examples=300)
@given(ANY_TEXT | TROUBLE)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@settings(deadline=None, max_examples=300)
@given(ANY_TEXT | TROUBLE)
def test_result_is_one_tidy_line_of_nfc(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()  # no surrogate is left
    assert unicodedata.is_normalized("NFC", cleaned)
    assert cleaned == cleaned.strip() and "  " not in cleaned
    assert len((cleaned + "|").splitlines()) == 1
    kept = {unicodedata.category(character) for character in cleaned if character != " "}
    assert not kept & {"Cc", "Cs", "Zs", "Zl", "Zp"}
    assert not {character for character in cleaned if is_invisible(character)} - set(
        JOINERS + VOWEL_SEPARATOR + ALL_TAGS
    )


@settings(deadline=None, max_examples=100)
@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_letters_digits_and_signs_stay(text: str) -> None:
    assert clean(text) == unicodedata.normalize("NFC", text)


def test_every_single_character_is_handled_the_same_alone_and_among_letters() -> None:
    """The fast path for common characters agrees with the slow one."""
    for code in range(0x110000):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cc", "Zs", "Zl", "Zp"):
            assert clean(f"a{character}b") == "a b", hex(code)
        elif category == "Cf":
            dropped = is_invisible(character) and character not in JOINERS + VOWEL_SEPARATOR
            assert clean(f"a{character}b") == ("ab" if dropped else f"a{character}b"), hex(code)
        elif category == "Cs":
            assert clean(f"a{character}b") == "a\ufffdb", hex(code)


@pytest.mark.parametrize("character", SPACES)
def test_white_space_and_controls_become_a_space(character: str) -> None:
    assert clean(f"a{character}b") == "a b"
    assert clean(f"{character}a{character}{character}b{character}") == "a b"


@pytest.mark.parametrize("character", INVISIBLE)
def test_invisible_characters_are_dropped(character: str) -> None:
    assert clean(f"{character}a{character}b") == "ab"


@pytest.mark.parametrize(
    "text",
    [
        "می\u200cخواهم",
        "👩\u200d🚀",
        SCOTLAND,
        f"{SCOTLAND}{SCOTLAND} x",
        "ᠴᠠᠭᠠᠨ\u180eᠠ",
        "آيَة \u06dd\u0661\u0662",
        *(f"a {character}\u0661" for character in VISIBLE),
    ],
)
def test_format_characters_that_mean_something_are_kept(text: str) -> None:
    assert clean(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\U000e0067\U000e007f", "a"),
        ("\U0001f3f4\U000e0067 b", "\U0001f3f4 b"),
        ("\U0001f3f4\U000e007f", "\U0001f3f4"),
        ("\U0001f3f4\u200b\U000e0067\U000e007f", "\U0001f3f4"),
        (SCOTLAND + "\U000e0067\U000e007f", SCOTLAND),
    ],
)
def test_tags_are_dropped_where_they_make_no_emoji(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_letters_and_accents_are_composed_even_across_a_dropped_character() -> None:
    assert clean("e\u0301") == "é"
    assert clean("e\u200b\u0301") == "é"


def test_half_characters_become_the_replacement_character() -> None:
    assert clean("a\ud83db") == "a\ufffdb"


def test_the_toy_language_passes_as_it_is() -> None:
    """So no change of the cleaning changes the weights of a toy run."""
    assert all(clean(side) == side for pair in toy_pairs("train", size=1000) for side in pair)


@pytest.mark.parametrize("text", ["ab", "", "a text that is longer than what is shown of it"])
def test_one_text_is_refused_where_several_are_wanted(text: str) -> None:
    with pytest.raises(TypeError, match=r"give a list of texts, not one text: \['"):
        check_texts(text)
    check_texts([text])


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["a", "b", "c", None], r"texts\[3\] is None, not a string"),
        (["a", float("nan")], r"texts\[1\] is of type float, not a string"),
        ([3], r"texts\[0\] is of type int, not a string"),
        (("a", b"b"), r"texts\[1\] is of type bytes, not a string"),
        (np.array(["a", None], dtype=object), r"texts\[1\] is None, not a string"),
        (b"ab", "texts must be a list of strings, not of type bytes"),
        (None, "texts must be a list of strings, not of type NoneType"),
        ({"a": "b"}, "texts must be a list of strings, not of type dict"),
        ({"a"}, "texts must be a list of strings, not of type set"),
        (iter("ab"), "texts must be a list of strings, not of type str_"),
    ],
)
def test_what_is_no_text_is_named_by_its_place_and_type(texts: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        check_texts(texts)


def test_any_sized_collection_of_strings_will_do() -> None:
    collections: list[Any] = [np.array(["a", "b"]), ("a", "b"), []]
    for texts in collections:
        check_texts(texts)
    with pytest.raises(TypeError, match=r"lines\[0\] is None"):
        check_texts([None], "lines")
