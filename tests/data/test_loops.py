"""What counts as a loop: against the definition, counted in letters whatever the vocabulary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.data.loops import MIN_LETTERS, MIN_TIMES, count_letters, is_loop, says_in_a_row, words_again


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
