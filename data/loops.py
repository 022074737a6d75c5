"""Texts that say the same again and again, as a model does that has learned little.

Counted in letters of the text, not in pieces of a vocabulary: a char vocabulary and a word vocabulary are judged alike.
"""

import re
from collections import Counter

from .scripts import wide_characters

MIN_TIMES = 3
"""Repetitions in a row that are a loop ..."""
MIN_LETTERS = 12
"""... if they have at least this many letters in all; a wide character counts as three."""

_REPEATED = [re.compile(rf"(.{{{least},{most}}}?)\1{{{MIN_TIMES - 1},}}") for least, most in ((1, 3), (4, 100))]
"""Two patterns, so that three equal letters do not hide a longer repetition that begins with them."""


USUAL_LIMIT, HIGHEST_LIMIT = 3, 6
"""Three words in a row that stand in a text this many times are a loop; in some corpora only if they do more often."""


def is_loop(text: str, source: str, limit: int = USUAL_LIMIT) -> bool:
    """Whether a text repeats itself, more often than its source does: `very, very, very` may be right.

    Args:
        limit: Three words in a row that stand so often anywhere in the text are a loop, too.
    """
    return says_in_a_row(text, source) or words_again(text, source) >= limit


def says_in_a_row(text: str, source: str) -> bool:
    """Whether a text says the same several times in a row, more often than its source."""
    times = _most_repeated(text)
    return times >= MIN_TIMES and times > _most_repeated(source)


def words_again(text: str, source: str) -> int:
    """How often a text says the three words in a row that it says most often; 0 if its source does so as often."""
    times = _most_frequent(text)
    return times if times > _most_frequent(source) else 0


def _most_frequent(text: str) -> int:
    words = text.split()
    return max(Counter(zip(words, words[1:], words[2:], strict=False)).values(), default=0)


def _most_repeated(text: str) -> int:
    """How many times in a row a text says what it says most often in a row."""
    text += " "  # the last word repeats the others with their spaces
    runs = (found for pattern in _REPEATED for found in pattern.finditer(text))
    return max((len(run[0]) // len(run[1]) for run in runs if count_letters(run[0]) >= MIN_LETTERS), default=0)


def count_letters(text: str) -> int:
    """Letters and digits of a text, a wide character counted as three."""
    return sum(map(str.isalnum, text)) + 2 * wide_characters(text)
