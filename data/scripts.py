"""Scripts that differ from the Latin one in what a program counts: letters without spaces, and wide characters."""

import re

UNSPACED = r"[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
"""A letter of a script that puts no spaces between words, as a regular expression: Thai, Lao, Tibetan, Burmese, Khmer,
Japanese, Chinese."""
_WIDE = re.compile("[\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]+")


def wide_characters(text: str) -> int:
    """How many Chinese, Japanese and Korean characters a text has."""
    return sum(map(len, _WIDE.findall(text)))
