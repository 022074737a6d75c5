"""Texts that a model is given: several, never one alone; cut where they are longer than it allows, and joined again."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import regex

from .scripts import MARK, SIGN, grapheme_ends, sentences

_SPACE = regex.compile(rf" (?!{MARK})")
_AFTER_A_SIGN = regex.compile(r"(?<=\p{P})(?<![\p{Ps}\p{Pi}])(?!\p{P})")
_BETWEEN_WORDS = regex.compile(
    r"(?w)\b(?<![\p{Ps}\p{Pi}\p{Logical_Order_Exception}\p{InSC=Virama}\p{InSC=Invisible_Stacker}])"
    r"(?!\p{P}|.(?:(?![\u102b\u102c])\p{M})*\p{InSC=Pure_Killer})"
)
"""Between words as far as no dictionary is needed; never inside a syllable of South-East Asia. There a consonant with a
killer ends one; a Burmese vowel may have a killer, too."""
_REACH = 50
"""A cut without a space may fall this many characters from the middle, to fall in a better place."""

_SCRIPTS = ("Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Tai_Tham")
_UNSPACED = "[" + "".join(rf"\p{{Script_Extensions={script}}}" for script in _SCRIPTS) + r"\uff01-\uff9f]"
"""Characters of scripts that put no spaces between words, their punctuation included."""
_UNSPACED_LAST = regex.compile(rf"(?r){_UNSPACED}[\p{{Pe}}\p{{Pf}}\p{{Pi}}\p{{Pd}}\p{{Nd}}{MARK[1:-1]}\"'…]*$")
_UNSPACED_FIRST = regex.compile(rf"[\p{{Ps}}\p{{Pf}}\p{{Pi}}\p{{Pd}}\p{{Nd}}\"'…]*{_UNSPACED}")
_DIVIDED = 0.1
"""Share of spaces from which an unspaced script counts as divided into words."""
_SPACED_AFTER = regex.compile(
    rf"(?r)(?=[{SIGN}])[\p{{Khmer}}\p{{Myanmar}}\p{{Tibetan}}\p{{Tai_Tham}}]"
    rf"[\p{{Pe}}\p{{Pf}}\p{{Pi}}{MARK[1:-1]}\"']*$"
)
_SPACED_SENTENCES = regex.compile(rf"(?r)[\p{{Thai}}\p{{Lao}}][\p{{Pe}}\p{{Pf}}\p{{Pi}}{MARK[1:-1]}\"'…]*$")
"""The ends of texts after which a script without spaces between words has one: after a sign of its own; in Thai and
Lao, which have no such sign, after each sentence."""


def split_text(text: str, count_tokens: Callable[[str], int], max_tokens: int) -> tuple[list[str], bool]:
    """Splits a text into as few parts of at most `max_tokens` as its sentence ends allow.

    Returns the parts in order, and whether a single sentence had to be cut: between words, else between characters, and
    inside what a reader takes for one character only where that does not fit.
    """
    parts: list[str] = []
    cut = False
    for sentence in sentences(text):
        for part in [sentence] if _fits(sentence, count_tokens, max_tokens) else sentences(sentence, possible=True):
            if parts and _fits(parts[-1] + part, count_tokens, max_tokens):
                parts[-1] += part
            elif _fits(part, count_tokens, max_tokens):
                parts.append(part)
            else:
                cut = True
                parts.extend(_cut_sentence(part, count_tokens, max_tokens))
    return [part.strip() for part in parts if part.strip()] or [text], cut


def join_texts(texts: Sequence[str], *, are_lines: bool = False) -> str:
    """Joins the parts of a text as its script does: with a space, or without one between characters of a script that
    has none, such as Japanese, unless the parts are divided into words by spaces all the same.

    With `are_lines`, the parts are lines of a paragraph, which end anywhere, and not sentences.
    """
    parts = [text for text in texts if text]
    divided = sum(part.count(" ") for part in parts) > _DIVIDED * sum(map(len, parts))
    joined = "".join(parts[:1])
    for before, after in pairwise(parts):
        unspaced = not divided and _UNSPACED_LAST.search(before) and _UNSPACED_FIRST.match(after)
        if unspaced and (_SPACED_AFTER.search(before) or (not are_lines and _SPACED_SENTENCES.search(before))):
            unspaced = False
        joined += after if unspaced else f" {after}"
    return joined


def _fits(part: str, count_tokens: Callable[[str], int], max_tokens: int) -> bool:
    return count_tokens(part.strip()) <= max_tokens


def _cut_sentence(sentence: str, count_tokens: Callable[[str], int], max_tokens: int) -> list[str]:
    """Halves a sentence until the slices fit."""
    if _fits(sentence, count_tokens, max_tokens) or len(sentence) < 2:
        return [sentence]
    place = _near_the_middle(sentence)
    return [
        part for half in (sentence[:place], sentence[place:]) for part in _cut_sentence(half, count_tokens, max_tokens)
    ]


def _near_the_middle(sentence: str) -> int:
    """Where to cut: at the space nearest the middle; without one after a sign, between words, or between characters."""
    middle = len(sentence) // 2

    def distance(place: int) -> int:
        return abs(place - middle)

    if spaces := [match.start() for match in _SPACE.finditer(sentence, 1)]:
        return min(spaces, key=distance)
    for reach in (min(_REACH, len(sentence) // 4), min(_REACH, middle - 1)):  # the wider one so as to spare a word
        near = grapheme_ends(sentence, middle - reach, middle + reach)
        best = min(near, key=lambda place: (_roughness(sentence, place), distance(place)), default=0)
        if best and _roughness(sentence, best) < 2:
            return best
    return min(grapheme_ends(sentence, 1, len(sentence) - 1) or range(1, len(sentence)), key=distance)


def _roughness(sentence: str, place: int) -> int:
    """0 after a sign, 1 between words, 2 inside a word."""
    if _AFTER_A_SIGN.match(sentence, place):
        return 0
    return 1 if _BETWEEN_WORDS.match(sentence, place) else 2
