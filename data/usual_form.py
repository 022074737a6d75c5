"""Text that is written otherwise than the training text, read in its usual form.

A model that has met few capitals reads them letter by letter, and makes nothing of them. So a text in capitals, a title
or a text in small letters is read as the training text would have it: each word in the spelling that the vocabulary has
in the fewest pieces. Where all training text ends with a sign, a text without one is read with it. Emoji and words in
other scripts at either end, of which the vocabulary knows no character, are left out. What the model writes is then
given the form of the text: put in capitals or made a title, if the training pairs do so, left without a sign, with what
was left out. A word with a slip of typing is read as the word that is meant.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence, Set
from functools import partial
from itertools import accumulate, groupby
from typing import NamedTuple

import regex

from .facts import CorpusFacts, is_open, style_of
from .placeholders import SYMBOLS, placeholder_spans, span_around
from .slips import slips, without_slips
from .tokenizer import Vocabulary

Restore = Callable[[str], str]
"""A function that gives an output the form of the original text: capitals, say. `str` changes nothing."""

_PICTURE = regex.compile(r"[\p{So}\U0001f3fb-\U0001f3ff--[°©®™№℗℠]]", regex.V1)
"""Emoji, with their colours, and other signs that are no part of a language."""
_SPACED = regex.compile(r"[^ ]+")
_WORD = regex.compile(r"[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}'’]*")
_WORD_START = regex.compile(r"(?<![\p{L}\p{M}\p{N}'’])(?!\p{Georgian})\p{Ll}")
_SMALL = regex.compile(r"(?!\p{Georgian})\p{Ll}")
_LAST_SIGN = regex.compile(r"\s*\p{Sentence_Terminal}+$")
_ALSO = (("SS", "ß"), ("I", "ı"))
"""What capitals may stand for besides their own small letters, where a vocabulary has those: German, Turkish."""


class UsualForm(NamedTuple):
    """How a text is read.

    Attributes:
        text: What a model reads.
        restore: A function that gives the output the form of the original text.
        unread: The two ends that are left out, empty for most texts.
        slips: Words as they are written, each with the word that is read.
    """

    text: str
    restore: Restore = str
    unread: tuple[str, str] = ("", "")
    slips: tuple[tuple[str, str], ...] = ()


def in_usual_form(text: str, vocabulary: Vocabulary, facts: CorpusFacts, *, mends: bool = True) -> UsualForm:
    """How a model reads a masked text; `mends` says whether words with a slip are read as those that are meant.

    A text stays as it is if its style is none of `facts.unusual_styles`, if it ends as training text does, if the
    vocabulary knows its ends, and if no word has a slip.
    """
    begin, middle, end = _unknown_ends(text, vocabulary.characters)
    read, restore = _in_usual_letters(middle, vocabulary, facts)
    found = slips(read, vocabulary) if mends else []
    read, meant = without_slips(read, found), tuple(one[1:] for one in found)
    if facts.last_sign and is_open(middle):
        read, styled = read + facts.last_sign, restore
        restore = lambda output: open_ended(styled(output))  # noqa: E731
    if not begin and not end:
        return UsualForm(read, restore, slips=meant)
    return UsualForm(read, lambda output: begin + restore(output) + end, (begin, end), meant)


def _unknown_ends(text: str, known: Set[str]) -> tuple[str, str, str]:
    """A text in three: words and signs at its ends of which nothing is known, and what is between them.

    A text without a known letter is an end as a whole.
    """

    def is_known(one: str) -> bool:
        return one in known or one in SYMBOLS or one.lower() in known or one.upper() in known

    def is_strange(one: str) -> bool:
        """Whether a character is a letter, a digit or a picture that is not known; a sign such as `?` or `€` is not."""
        return not is_known(one) and (one.isalnum() or _PICTURE.match(one) is not None)

    if not any(map(is_strange, text)) or not any(map(str.isalpha, text)):
        return "", text, ""
    kept = [
        found.span()
        for found in _SPACED.finditer(text)
        if not any(is_strange(one) for one in found[0])
        or any(is_known(one) and (one.isalnum() or one in SYMBOLS) for one in found[0])
    ]
    start, stop = (kept[0][0], kept[-1][1]) if kept else (0, 0)
    while start < stop and is_strange(text[start]) and not text[start].isalnum():
        start += 1
    picture = stop
    while start < picture and not (
        is_known(text[picture - 1]) or text[picture - 1].isalnum() or text[picture - 1] == " "
    ):
        picture -= 1
        if is_strange(text[picture]):  # what follows belongs to it: a selector of its form, say
            stop = picture
    if not any(one.isalpha() and is_known(one) for one in text[start:stop]):
        return text, "", ""
    return text[:start], text[start:stop], text[stop:]


def _in_usual_letters(text: str, vocabulary: Vocabulary, facts: CorpusFacts) -> tuple[str, Restore]:
    style = style_of(text)
    if style is None or style not in facts.unusual_styles:
        return text, str
    spans = placeholder_spans(text)
    words = [found for found in _WORD.finditer(text) if span_around(spans, found.start()) is None]
    first_words = _first_words(text, words) if facts.begins_with_capitals else ()
    usual, done, changed = "", 0, 0
    for found in words:
        word = found[0]
        if not any(map(str.isdecimal, word)) and (style != "title" or word[1:].islower() or len(word) == 1):
            word = _usual(word, vocabulary, found.start() in first_words)
        usual += text[done : found.start()] + word
        done, changed = found.end(), changed + (word != found[0])
    if not changed or (style == "title" and (changed < 2 or 2 * changed < len(words) - 1)):  # nouns of German, names
        return text, str
    forms = {"capitals": partial(capitals, turkish=facts.is_turkish), "title": partial(title, turkish=facts.is_turkish)}
    return usual + text[done:], forms[style] if style in forms and facts.keeps(style) else str


def capitals(text: str, *, turkish: bool = False) -> str:
    """A text in capitals: `STRASSE`. Georgian, which is not written so, stays."""
    return _SMALL.sub(lambda found: _capital(found[0], turkish), text)


def title(text: str, *, turkish: bool = False) -> str:
    """A text whose words begin with capitals."""
    return _WORD_START.sub(lambda found: _capital(found[0], turkish), text)


def _capital(letter: str, turkish: bool) -> str:
    return "İ" if turkish and letter == "i" else letter.upper()


def open_ended(text: str) -> str:
    """A text without the sign that ends its sentence, if there is more in it than that."""
    return _LAST_SIGN.sub("", text) or text


def _first_words(text: str, words: Sequence[regex.Match[str]]) -> set[int]:
    """Where the first of the words of each sentence of a text begins."""
    from .scripts import sentences  # most texts are in their usual form

    ends = list(accumulate(map(len, sentences(text))))
    return {next(group).start() for _, group in groupby(words, lambda word: bisect_right(ends, word.start()))}


def _usual(word: str, vocabulary: Vocabulary, begins_sentence: bool) -> str:
    """The spelling of a word that its vocabulary has in the fewest pieces; of several such ones the most frequent."""
    also = (pair for pair in _ALSO if pair[0] in word and pair[1] in vocabulary.characters)
    spellings = [word, *(word.replace(*pair) for pair in also)]
    small = min((one.replace("İ", "i").lower() for one in spellings), key=vocabulary.cost)
    capital = small[:1].upper() + small[1:]
    choices = [small, capital, word, word.upper()]
    if small[:1] == "i" and "İ" in vocabulary.characters:  # Turkish
        choices.append("İ" + small[1:])
    return min((one for one in choices if not begins_sentence or one != small), key=vocabulary.cost, default=small)
