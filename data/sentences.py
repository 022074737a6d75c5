"""Texts that a model is given: several, never one alone; cut where they are longer than it allows, and joined again."""

import itertools
from collections.abc import Callable, Sequence
from itertools import pairwise

import regex

_END = r"[\p{Sentence_Terminal}…\u0f0d-\u0f12\u17d4\u17d5\u17d9\u17da]"
"""Signs that end a sentence: Unicode's, and those that Tibetan and Khmer have besides."""
_ALSO_INSIDE = "[.!?…․‼‽⁇⁈⁉]"
"""Those that end one only before a space: they stand in numbers, names and addresses, too."""
_MARK = r"[\p{M}\u200d]"
"""What belongs to the character before it."""
_MORE = rf"\s*{_END}(?:(?<!{_ALSO_INSIDE})|(?!\w))|{_MARK}|[\p{{Pe}}\p{{Pf}}]"
"""What may follow on a sign that ends a sentence: another one, or a quote or a bracket that closes."""
_SPACED_END = rf"{_END}(?:{_MORE}|['\p{{Pi}}]|\s+[\p{{Pe}}\p{{Pf}}](?=\s|$)){{0,8}}+\s++"
_UNSPACED_END = rf"{_END}(?<!{_ALSO_INSIDE})(?:(?<!\d.)|(?!\d))(?:{_MORE}){{0,8}}+(?![\p{{Pe}}\p{{Pf}}])\s*+"
_SENTENCE_END = regex.compile(rf"(?:{_SPACED_END}|{_UNSPACED_END})(?!{_MARK})")
"""The signs that end a sentence, the quotes and brackets that close with it, and the space that follows."""

_SPACE = regex.compile(rf" (?!{_MARK})")
_CLUSTER = regex.compile(rf"\X(?!{_MARK})")
_AFTER_A_SIGN = regex.compile(r"(?<=\p{P})(?<![\p{Ps}\p{Pi}])(?!\p{P})")
_BETWEEN_WORDS = regex.compile(
    r"(?w)\b(?<![\p{Ps}\p{Pi}\p{Logical_Order_Exception}\p{InSC=Virama}\p{InSC=Invisible_Stacker}])"
    r"(?!\p{P}|.\p{M}*\p{InSC=Pure_Killer})"
)
"""Between words as far as no dictionary is needed; never inside a syllable of South-East Asia."""
_REACH = 50
"""A cut without a space may fall so many characters from the middle to fall in a better place."""

_SCRIPTS = ("Han", "Hiragana", "Katakana", "Bopomofo", "Yi", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan", "Tai_Tham")
_UNSPACED = "[" + "".join(rf"\p{{Script_Extensions={script}}}" for script in _SCRIPTS) + r"\uff01-\uff9f]"
"""Characters of scripts that put no spaces between words, their punctuation included."""
_UNSPACED_LAST = regex.compile(rf"(?r){_UNSPACED}[\p{{Pe}}\p{{Pf}}\p{{Pi}}\p{{Pd}}\p{{Nd}}{_MARK[1:-1]}\"'…]*$")
_UNSPACED_FIRST = regex.compile(rf"[\p{{Ps}}\p{{Pf}}\p{{Pi}}\p{{Pd}}\p{{Nd}}\"'…]*{_UNSPACED}")
_DIVIDED = 0.1
"""Share of spaces from which an unspaced script counts as divided into words."""


def check_texts(texts: Sequence[object], name: str = "texts") -> None:
    """Refuses what is no sequence of strings: one text, an iterator, a table's empty cells, which are None or nan.

    The TypeError names the first by its position from 0.
    """
    if isinstance(texts, str):  # it is a sequence of strings, too: of its letters
        raise TypeError(f"give a list of texts, not one text: [{texts[:20]!r}{' ..' if len(texts) > 20 else ''}]")
    if isinstance(texts, bytes) or not hasattr(texts, "__len__"):
        raise TypeError(f"{name} must be a list of strings, not of type {type(texts).__name__}")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            found = "None" if text is None else f"of type {type(text).__name__}"
            raise TypeError(f"{name}[{position}] is {found}, not a string")


def split_text(text: str, count_tokens: Callable[[str], int], max_tokens: int) -> tuple[list[str], bool]:
    """Splits a text into as few parts of at most `max_tokens` as its sentence ends allow.

    Returns the parts in order, and whether a single sentence had to be cut: between words, else between characters, and
    inside what a reader takes for one character only where that does not fit.
    """
    parts: list[str] = []
    cut = False
    for sentence in _sentences(text):
        if parts and _fits(parts[-1] + sentence, count_tokens, max_tokens):
            parts[-1] += sentence
        elif _fits(sentence, count_tokens, max_tokens):
            parts.append(sentence)
        else:
            cut = True
            parts.extend(_cut_sentence(sentence, count_tokens, max_tokens))
    return [part.strip() for part in parts if part.strip()] or [text], cut


def join_texts(texts: Sequence[str]) -> str:
    """Joins the parts of a text as its script does: with a space, or without one between characters of a script that
    has none, such as Japanese, unless the parts are divided into words by spaces all the same.
    """
    parts = [text for text in texts if text]
    divided = sum(part.count(" ") for part in parts) > _DIVIDED * sum(map(len, parts))
    joined = "".join(parts[:1])
    for before, after in pairwise(parts):
        unspaced = not divided and _UNSPACED_LAST.search(before) and _UNSPACED_FIRST.match(after)
        joined += after if unspaced else f" {after}"
    return joined


def _fits(part: str, count_tokens: Callable[[str], int], max_tokens: int) -> bool:
    return count_tokens(part.strip()) <= max_tokens


def _sentences(text: str) -> list[str]:
    """Slices that together are the text: a space stays with the sentence before it, and none is made where none was."""
    ends = [0, *(match.end() for match in _SENTENCE_END.finditer(_with_directed_quotes(text))), len(text)]
    return [text[start:end] for start, end in pairwise(ends) if start < end]


def _with_directed_quotes(text: str) -> str:
    """A text in which straight quotes open and close in turn."""
    if '"' not in text:
        return text
    quotes = itertools.cycle("“”")
    return "".join(next(quotes) if character == '"' else character for character in text)


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
    reach = min(_REACH, len(sentence) // 4)
    if near := _character_ends(sentence, middle - reach, middle + reach):
        return min(near, key=lambda place: (_roughness(sentence, place), distance(place)))
    return min(_character_ends(sentence, 0, len(sentence)) or range(1, len(sentence)), key=distance)


def _character_ends(sentence: str, first: int, last: int) -> list[int]:
    """Where the characters end that a reader sees, from `first` to `last`."""
    ends = (match.end() for match in _CLUSTER.finditer(sentence, max(first - 1, 0), last + 1))
    return [end for end in ends if first <= end <= last and end < len(sentence)]


def _roughness(sentence: str, place: int) -> int:
    """0 after a sign, 1 between words, 2 inside a word."""
    if _AFTER_A_SIGN.match(sentence, place):
        return 0
    return 1 if _BETWEEN_WORDS.match(sentence, place) else 2
