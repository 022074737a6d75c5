"""Cleaning: one line in, one line out, and nothing left for a second pass."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.cleaning import clean

ANY_TEXT = st.text(alphabet=st.characters() | st.characters(categories=["Cs"]))
SPACES = "\u2028\u2029\u0085\v\f\x00\x1c\x1f\x7f\x80\x9f\u00a0\u3000\r\n\t"
INVISIBLE = "\u200b\u00ad\ufeff\u200e\u200f\u202a\u202e\u2066\u2069\u2060"
JOINERS = "\u200c\u200d"
TROUBLE = st.text(
    alphabet=st.sampled_from("a e\u0301\u0327\u1112\u1161\u11ab\ud800\udfff" + SPACES + INVISIBLE + JOINERS)
)


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
    kept = {unicodedata.category(character) for character in cleaned if character not in JOINERS + " "}
    assert not kept & {"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"}


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
        elif category == "Cf" and character not in JOINERS:
            assert clean(f"a{character}b") == "ab", hex(code)
        elif category == "Cs":
            assert clean(f"a{character}b") == "a\ufffdb", hex(code)


@pytest.mark.parametrize("character", SPACES)
def test_white_space_and_controls_become_a_space(character: str) -> None:
    assert clean(f"a{character}b") == "a b"
    assert clean(f"{character}a{character}{character}b{character}") == "a b"


@pytest.mark.parametrize("character", INVISIBLE)
def test_invisible_characters_are_dropped(character: str) -> None:
    assert clean(f"{character}a{character}b") == "ab"


def test_joiners_are_kept() -> None:
    assert clean("می\u200cخواهم") == "می\u200cخواهم"
    assert clean("👩\u200d🚀") == "👩\u200d🚀"


def test_letters_and_accents_are_composed_even_across_a_dropped_character() -> None:
    assert clean("e\u0301") == "é"
    assert clean("e\u200b\u0301") == "é"


def test_half_characters_become_the_replacement_character() -> None:
    assert clean("a\ud83db") == "a\ufffdb"
