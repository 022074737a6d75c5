"""Texts that a model is given: several, never one alone; cut where they are longer than it allows."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？])")


def refuse_one_text(texts: Sequence[str]) -> None:
    """A string is a sequence of strings, too: of its letters.

    Raises:
        TypeError: Texts were wanted, and one came.
    """
    if isinstance(texts, str):
        raise TypeError(f"give a list of texts, not one text: [{texts[:20]!r}{' ..' if len(texts) > 20 else ''}]")


def split_text(text: str, count_tokens: Callable[[str], int], max_tokens: int) -> tuple[list[str], bool]:
    """Splits a text into as few parts of at most `max_tokens` as its sentence ends allow.

    Args:
        text: Cleaned text.
        count_tokens: Pieces that a part would have.
        max_tokens: Most pieces in a part.

    Returns:
        The parts in order, and whether a single sentence had to be cut between words (or inside a word).
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


def _fits(part: str, count_tokens: Callable[[str], int], max_tokens: int) -> bool:
    return count_tokens(part.strip()) <= max_tokens


def _sentences(text: str) -> list[str]:
    """Slices that together are the text: a space stays with the sentence before it, and none is made where none was."""
    ends = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(ends) if start < end]


def _cut_sentence(sentence: str, count_tokens: Callable[[str], int], max_tokens: int) -> list[str]:
    """Halves a sentence, at the space nearest its middle if there is one, until the slices fit."""
    if _fits(sentence, count_tokens, max_tokens) or len(sentence) < 2:
        return [sentence]
    middle = len(sentence) // 2
    spaces = [place for place in (sentence.rfind(" ", 1, middle), sentence.find(" ", middle)) if place > 0]
    place = min(spaces, key=lambda space: abs(space - middle)) if spaces else middle
    halves = sentence[:place], sentence[place:]
    return [part for half in halves for part in _cut_sentence(half, count_tokens, max_tokens)]
