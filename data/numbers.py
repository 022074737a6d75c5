"""The numbers of a text, in the digits of any script, and what a translation has other than its source."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

_NUMBER = re.compile(r"\d{1,3}(?:['’\u00a0\u2009\u202f ]\d{3})+(?!\d)(?:[.,٫]\d+)?|\d+(?:[.,:٫٬．，：]\d+)*")
_GROUPS = re.compile(r"(\D)")
_HAN = {str(value): signs for value, signs in enumerate(["〇零", "一", "二两兩", *"三四五六七八九十"])}
"""Small numbers as Chinese and Japanese may write them."""


def numbers(text: str) -> list[str]:
    """The numbers of a text, in order, in ASCII digits: `1,000`, `1.000`, `1 000` are all `1000`.

    What stands before three last digits, or more than once, divides groups; another separator counts as a decimal
    point: `1,5` is `1.5`, and `17:45` is `17.45`. Superscripts, circled digits and Chinese numerals are no digits.
    """
    return [_normal(number) for number in _NUMBER.findall(text)]


def differences_in_numbers(source: str, translation: str) -> tuple[list[str], list[str]]:
    """The numbers that a translation has lost, and those that it has added, as they are spelt.

    A hint: a number may be a word on the other side, which is seen of Chinese numerals up to ten alone. Numbers that
    are only divided in another way, as dates are, do not count.
    """
    spelt = _NUMBER.findall(source), _NUMBER.findall(translation)
    src, tgt = (Counter(map(_normal, side)) for side in spelt)
    lost = _surplus(spelt[0], _without_words(src - tgt, translation))
    added = _surplus(spelt[1], _without_words(tgt - src, source))
    divided = len(lost) != len(added) and _digits(lost) == _digits(added)
    return ([], []) if divided else (lost, added)


def _normal(number: str) -> str:
    groups = _GROUPS.split("".join(_ascii(character) for character in number))
    *others, last = groups[1::2] or [""]
    is_point = last and last not in others and len(groups[-1]) != 3
    return "".join(groups[:-1:2]) + ("." if is_point else "") + groups[-1]


def _ascii(character: str) -> str:
    return str(unicodedata.decimal(character, character))


def _without_words(more: Counter[str], other: str) -> Counter[str]:
    """What one side has more of, without what the other one says in Chinese numerals."""
    return more - Counter({number: sum(map(other.count, signs)) for number, signs in _HAN.items()})


def _surplus(spelt: list[str], more: Counter[str]) -> list[str]:
    """As they are spelt, the last ones of each number of which there are more."""
    left, found = more.copy(), list[str]()
    for number in reversed(spelt):
        if left[_normal(number)] > 0:
            left[_normal(number)] -= 1
            found.append(number)
    return found[::-1]


def _digits(spelt: Iterable[str]) -> list[str]:
    return sorted(filter(str.isdecimal, map(_ascii, "".join(spelt))))
