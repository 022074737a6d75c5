"""Numbers: equal ones are equal in every script, and what a translation has lost or added is told as it is spelt."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.numbers import differences_in_numbers, numbers

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
    ],
)
def test_what_a_translation_has_lost_and_added(
    source: str, translation: str, lost: list[str], added: list[str]
) -> None:
    assert differences_in_numbers(source, translation) == (lost, added)


@given(st.text(), st.text())
def test_nothing_is_lost_from_a_text_to_itself_and_sides_are_alike(a: str, b: str) -> None:
    assert differences_in_numbers(a, a) == ([], [])
    assert differences_in_numbers(a, b) == differences_in_numbers(b, a)[::-1]
