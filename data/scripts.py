"""Scripts that differ from the Latin one in what a program counts: letters without spaces, and wide characters."""

import re

UNSPACED = r"[\p{lb=SA}\p{Han}\p{Hiragana}\p{Katakana}ー\p{Bopomofo}\p{Yi}]"
"""A letter of a script without spaces, for the library `regex`. SA are the scripts of South East Asia, for which line
breaks need a dictionary."""
_WIDE = re.compile("[\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+")


def wide_characters(text: str) -> int:
    """How many Chinese, Japanese and Korean characters a text has."""
    return sum(map(len, _WIDE.findall(text)))
