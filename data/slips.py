"""Slips of typing: words that the vocabulary spells in several pieces, each one slip away from a word that it knows.

A slip exchanges two letters, leaves one out before the last, or doubles one; the first letter is right. Three letters
then stand together as in no word of the vocabulary: a new word seldom looks like that. Other errors are not looked for:
a word with another letter, or with another ending, is more often a word that is meant. A text of one or two words stays
as it is, because no other words show what is meant.
"""

from functools import lru_cache

import regex

from .placeholders import placeholder_spans, span_around
from .tokenizer import UNK_ID, Vocabulary

LETTERS, MOST_LETTERS, PIECES = 5, 40, 3
"""A word with a slip has at least, and at most, so many letters, in at least so many pieces."""
_WORD = regex.compile(
    rf"""
    (?<! [\p{{L}}\p{{M}}\p{{N}}_'’.:\#@&$%/\\=<{{~+] )  # a part of a name, an address or code is no word
    \p{{L}}{{{LETTERS},{MOST_LETTERS}}}
    (?! [\p{{L}}\p{{M}}\p{{N}}_'’(@/\\=>}}] | [.:] [\p{{L}}\p{{N}}] )
    """,
    regex.VERBOSE,
)


def slips(text: str, vocabulary: Vocabulary) -> list[tuple[int, str, str]]:
    """The words of a masked text that have a slip: where each begins, how it is written, and the word that is meant."""
    if text.count(" ") < 2:
        return []
    found = [
        (match.start(), match[0], meant)
        for match in _WORD.finditer(text)
        if match[0] not in vocabulary.words and (meant := _meant(match[0], vocabulary))
    ]
    spans = placeholder_spans(text) if found else []
    return [one for one in found if span_around(spans, one[0]) is None]


def without_slips(text: str, found: list[tuple[int, str, str]]) -> str:
    """A text with the words that are meant."""
    done, read = 0, ""
    for begin, written, meant in found:
        read, done = read + text[done:begin] + meant, begin + len(written)
    return read + text[done:]


@lru_cache(maxsize=20_000)
def _meant(word: str, vocabulary: Vocabulary) -> str | None:
    """The one word of the vocabulary that a slip has made this of; None where there is none, or several."""
    pieces = vocabulary.encode(word)
    if not word[1:].islower() or (len(pieces) < PIECES and pieces != [UNK_ID]):
        return None
    letters, triples = _known(vocabulary)
    if triples.issuperset(_triples(word)):
        return None
    places = range(1, len(word))
    exchanged = {word[: i - 1] + word[i] + word[i - 1] + word[i + 1 :] for i in places[1:]}
    doubled = {word[:i] + word[i + 1 :] for i in places if word[i] == word[i - 1]}
    left_out = {word[:i] + letter + word[i:] for i in places for letter in letters}
    meant = (exchanged | doubled | left_out) & vocabulary.words
    return meant.pop() if len(meant) == 1 else None


@lru_cache(maxsize=8)
def _known(vocabulary: Vocabulary) -> tuple[frozenset[str], frozenset[str]]:
    """The letters of the words of a vocabulary, and its triples of letters."""
    return frozenset("".join(vocabulary.words)), frozenset().union(*map(_triples, vocabulary.words))


def _triples(word: str) -> set[str]:
    """Three letters in a row each; the beginning and the end of the word count as letters."""
    letters = f" {word.lower()} "
    return {letters[i : i + 3] for i in range(len(letters) - 2)}
