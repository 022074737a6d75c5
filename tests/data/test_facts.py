"""What a corpus is like, texts that repeat themselves, and numbers."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.facts import (
    MIN_LETTERS,
    MIN_TIMES,
    CorpusFacts,
    count_letters,
    differences_in_numbers,
    is_loop,
    look_at,
    numbers,
    says_in_a_row,
    words_again,
)
from tfm.data.placeholders import KINDS

LOOP, PLAIN = ("jump thrice", "JUMP JUMP JUMP"), ("jump", "JUMP")


def test_repetition_is_right_where_targets_repeat_themselves() -> None:
    facts = look_at([PLAIN] * 999 + [LOOP], KINDS)
    assert (facts.pairs, facts.loops) == (1000, 1) and facts.loops_are_faults
    facts = look_at([PLAIN] * 998 + [LOOP] * 2, KINDS)
    assert not facts.loops_are_faults and facts.remark == "off (0.20 % of the training targets repeat themselves)"
    assert CorpusFacts().loops_are_faults, "of an older checkpoint nothing is known"


def test_a_line_without_letters_is_its_own_translation_unless_the_corpus_shows_otherwise() -> None:
    kept, changed = ("12:30 %s", "12:30 %s"), ("1 2 3", "3 2 1")
    assert look_at([kept] * 18 + [changed] * 2, KINDS).keeps_letterless
    assert not look_at([kept] * 17 + [changed] * 3, KINDS).keeps_letterless
    assert look_at([changed] * 19, KINDS).keeps_letterless, "too few to show it"
    assert look_at([("", "a text")] * 30, KINDS) == CorpusFacts(pairs=30, in_small_letters=0)
    assert look_at([("%s", "%s")] * 30, {"tag"}).letterless == 0


def test_the_limit_of_a_loop_is_what_hardly_any_target_reaches() -> None:
    def said(times: int) -> tuple[str, str]:
        return "a text", " and ".join(["of the house"] * times)

    thrice = ("a text", "of the house not of the house but of the house")
    assert look_at([PLAIN] * 999 + [thrice], KINDS).limit == 3
    assert look_at([PLAIN] * 998 + [thrice] * 2, KINDS).limit == 4
    assert look_at([PLAIN] * 90 + [said(9)] * 10, KINDS).limit > 9, "no limit"


def test_other_numbers_are_a_fault_unless_the_corpus_spells_them() -> None:
    kept, spelt = ("3 cats", "3 chats"), ("3 cats", "trois chats")
    assert look_at([kept] * 10 + [spelt] * 10, KINDS).keeps_numbers
    assert not look_at([kept] * 9 + [spelt] * 11, KINDS).keeps_numbers
    assert look_at([spelt] * 19, KINDS).keeps_numbers, "too few to show it"


@given(st.lists(st.tuples(st.sampled_from(["a", "1", "?", "%s"]), st.sampled_from(["a", "1", "?"]))))
def test_counts(pairs: list[tuple[str, str]]) -> None:
    facts = look_at(pairs, KINDS)
    assert facts.letterless == sum(src != "a" for src, _ in pairs)
    assert facts.unchanged == sum(src == tgt != "a" for src, tgt in pairs)


def repeats(text: str) -> bool:
    """By trying each beginning and each length."""
    text += " "
    for start in range(len(text)):
        for size in range(1, 101):
            times, unit = 1, text[start : start + size]
            while len(unit) == size and text.startswith(unit, start + times * size):
                times += 1
            if times >= MIN_TIMES and count_letters(unit * times) >= MIN_LETTERS:
                return True
    return False


Texts = st.lists(st.sampled_from(["ab", "abc ", "ax", "the cat ", "x"]), max_size=14).map("".join)


@given(Texts, Texts)
def test_a_loop_is_what_a_text_says_in_a_row_more_often_than_its_source(text: str, source: str) -> None:
    assert says_in_a_row(text, "") == repeats(text)
    assert not is_loop(text, text)
    if not repeats(source):
        assert says_in_a_row(text, source) == repeats(text)


Words = st.lists(st.sampled_from(["a", "b", "c"]), max_size=20)


@given(Words, Words)
def test_three_words_that_come_again_are_a_loop_from_the_limit_on(words: list[str], source: list[str]) -> None:
    def most(said: list[str]) -> int:
        threes = [tuple(said[i : i + 3]) for i in range(len(said) - 2)]
        return max(map(threes.count, threes), default=0)

    expected = most(words) if most(words) > most(source) else 0
    text, other = " ".join(words), " ".join(source)
    assert words_again(text, other) == expected
    assert is_loop(text, other, 4) == (expected >= 4 or says_in_a_row(text, other))


@pytest.mark.parametrize(
    ("text", "source", "expected"),
    [
        ("the cat the cat the cat", "a dog", True),
        ("the cat sees the cat and the cat", "a dog", False),
        ("hahahahahahahaha", "a dog", True),
        ("no no no", "a dog", False),
        ("muy muy muy muy largo", "very very very very long", False),
        ("muy muy muy muy muy largo", "very very very very long", True),
        ("..............................", "a dog", False),
        ("\u3067\u3059\u3067\u3059\u3067\u3059", "a dog", True),
        ("", "", False),
    ],
)
def test_examples(text: str, source: str, expected: bool) -> None:
    assert is_loop(text, source) == expected


def test_a_loop_inside_a_loop_does_not_hide_it() -> None:
    assert is_loop("aaab cdef " * 3, "x") and is_loop("x " + "aaa bbbb " * 4, "x")


def test_long_texts_take_no_time() -> None:
    assert is_loop("a" * 100_000, "x") and not is_loop("".join(map(chr, range(0x4E00, 0x9000))), "x")


ZEROS = [
    chr(code)
    for code in range(sys.maxunicode)
    if unicodedata.category(chr(code)) == "Nd" and unicodedata.decimal(chr(code)) == 0
]


def in_script(digits: str, zero: str) -> str:
    return "".join(chr(ord(zero) + int(digit)) if digit.isdigit() else digit for digit in digits)


@given(st.integers(0, 10**12), st.sampled_from(ZEROS), st.sampled_from([*",.'’٬٫，", "\u00a0", "\u202f", " "]))
def test_a_number_is_the_same_in_all_digits_however_it_is_divided(value: int, zero: str, separator: str) -> None:
    divided = in_script(f"{value:,}".replace(",", separator), zero)
    assert numbers(f"a {divided} b") == numbers(f"a{in_script(str(value), zero)}b") == [str(value)]


@given(st.integers(1, 999), st.sampled_from(["5", "25", "1234"]), st.sampled_from(ZEROS), st.sampled_from(".,٫"))
def test_a_decimal_point_is_one_in_all_scripts(whole: int, part: str, zero: str, point: str) -> None:
    assert numbers(in_script(f"{whole}{point}{part}", zero)) == [f"{whole}.{part}"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("no number, not even x² or ① or 三", []),
        ("1,234.56 and 1.234,56 and 1 234,56 and 12,34,567.8", ["1234.56"] * 3 + ["1234567.8"]),
        ("1, 2 and 3.", ["1", "2", "3"]),
        ("in 1999 500 people", ["1999", "500"]),
        ("at 17:45 on 14.03.1987", ["17.45", "14031987"]),
        ("COVID-19, B2B", ["19", "2"]),
        ("۱٬۲۳۴٫۵ ３．５ १२", ["1234.5", "3.5", "12"]),
    ],
)
def test_numbers_of_a_text(text: str, found: list[str]) -> None:
    assert numbers(text) == found


@pytest.mark.parametrize(
    ("source", "translation", "lost", "added"),
    [
        ("I have 3 cats.", "J'ai des chats.", ["3"], []),
        ("I have three cats.", "J'ai 3 chats.", [], ["3"]),
        ("It costs 1,234.56 dollars.", "Il coûte 1 234,56 dollars.", [], []),
        ("It costs 1,234.56 dollars.", "Il coûte 1 234,65 dollars.", ["1,234.56"], ["1 234,65"]),
        ("1.5 litres", "15 Liter", ["1.5"], ["15"]),
        ("in 1987", "in 1978", ["1987"], ["1978"]),
        ("on 14/03/1987 at 8:30", "am 14.03.1987 um 8h30", [], []),
        ("2 of 2", "2", ["2"], []),
        ("۸۷۴ کتاب", "874 books", [], []),
        ("۸۷۴ کتاب", "784 books", ["۸۷۴"], ["784"]),
        ("3 cats, 2 dogs and 10 birds", "三只猫、两只狗和十只鸟", [], []),
        ("三只猫", "3 cats", [], []),
        ("3 cats", "猫", ["3"], []),
        ("7 cats and 7 dogs", "七只猫和狗", ["7"], []),
        ("", "", [], []),
        ("<b2> %5.2f of 10", "10", [], []),  # lost as placeholders
        ("see https://a.org/12/3", "siehe 12", [], ["12"]),
        ("Size 10<br/>100 pages", "Größe 10, 100 Seiten", [], []),
    ],
)
def test_what_a_translation_has_lost_and_added(
    source: str, translation: str, lost: list[str], added: list[str]
) -> None:
    assert differences_in_numbers(source, translation) == (lost, added)


def test_a_sign_of_placeholders_before_a_number_is_text_where_the_corpus_has_no_placeholders() -> None:
    assert differences_in_numbers("a 20% discount", "%20 indirim", {"tag"}) == ([], [])
    assert look_at([("a 20% discount", "%20 indirim")] * 20, {"tag"}).keeps_numbers


@given(st.text(), st.text())
def test_nothing_is_lost_from_a_text_to_itself_and_sides_are_alike(a: str, b: str) -> None:
    assert differences_in_numbers(a, a) == ([], [])
    assert differences_in_numbers(a, b) == differences_in_numbers(b, a)[::-1]
