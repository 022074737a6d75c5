"""Texts that say the same again and again, as a model does that has learned little.

Counted in letters of the text, not in pieces of a vocabulary: a char vocabulary and a word vocabulary are judged alike.
"""

import re

from .scripts import wide_characters

MIN_TIMES = 3
"""Repetitions in a row that are a loop ..."""
MIN_LETTERS = 12
"""... if they have at least this many letters in all; a wide character counts as three."""

_REPEATED = [re.compile(rf"(.{{{least},{most}}}?)\1{{{MIN_TIMES - 1},}}") for least, most in ((1, 3), (4, 100))]
"""Two patterns, so that three equal letters do not hide a longer repetition that begins with them."""


def is_loop(text: str, source: str) -> bool:
    """Whether a text repeats itself in a row, more often than its source does: `very, very, very` may be right.

    Args:
        text: A translation, cleaned.
        source: What it is a translation of, cleaned.
    """
    times = _most_repeated(text)
    return times >= MIN_TIMES and times > _most_repeated(source)


def _most_repeated(text: str) -> int:
    """How many times in a row a text says what it says most often in a row."""
    text += " "  # the last word repeats the others with their spaces
    runs = (found for pattern in _REPEATED for found in pattern.finditer(text))
    return max((len(run[0]) // len(run[1]) for run in runs if count_letters(run[0]) >= MIN_LETTERS), default=0)


def count_letters(text: str) -> int:
    """Letters and digits of a text, a wide character counted as three."""
    return sum(map(str.isalnum, text)) + 2 * wide_characters(text)
