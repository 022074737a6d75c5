"""Cutting text that is longer than a model allows, at sentence ends where there are any."""

import re
from collections.abc import Callable

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+|(?<=[。！？])")


def split_text(text: str, count_tokens: Callable[[str], int], max_tokens: int) -> tuple[list[str], bool]:
    """Splits a text into as few parts of at most `max_tokens` as its sentence ends allow.

    Args:
        text: Cleaned text.
        count_tokens: Pieces that a part would have.
        max_tokens: Most pieces in a part.

    Returns:
        The parts in order, and whether a single sentence had to be cut between words (or inside a word).
    """
    if count_tokens(text) <= max_tokens:
        return [text], False
    parts: list[str] = []
    cut = False
    for sentence in _sentences(text):
        joined = f"{parts[-1]} {sentence}" if parts else sentence
        if parts and count_tokens(joined) <= max_tokens:
            parts[-1] = joined
        elif count_tokens(sentence) <= max_tokens:
            parts.append(sentence)
        else:
            cut = True
            parts.extend(_cut_sentence(sentence, count_tokens, max_tokens))
    return parts, cut


def _sentences(text: str) -> list[str]:
    sentences: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        sentences.append(text[start : end.end()].strip())
        start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _cut_sentence(sentence: str, count_tokens: Callable[[str], int], max_tokens: int) -> list[str]:
    """Halves a sentence, at the space nearest its middle if there is one, until the pieces fit."""
    if count_tokens(sentence) <= max_tokens or len(sentence) < 2:
        return [sentence]
    middle = len(sentence) // 2
    spaces = [place for place in (sentence.rfind(" ", 1, middle), sentence.find(" ", middle)) if place > 0]
    place = min(spaces, key=lambda space: abs(space - middle)) if spaces else middle
    halves = sentence[:place].strip(), sentence[place:].strip()
    return [part for half in halves if half for part in _cut_sentence(half, count_tokens, max_tokens)]
