"""Text that is written otherwise than the training text, read in its usual form.

A model that has met few capitals reads them letter by letter, and makes nothing of them. So a text in capitals, a title
or a text in small letters is read as the training text would have it: each word in the spelling that the vocabulary has
in the fewest pieces. Where all training text ends with a sign, a text without one is read with it. Emoji and words in
other scripts at either end, of which the vocabulary knows no character, are left out. What the model writes is then
given the form of the text: put in capitals or made a title, if the training pairs do so, left without a sign, with what
was left out.
"""

from collections.abc import Callable, Set
from typing import NamedTuple
from unicodedata import category

import regex

from .facts import CorpusFacts, is_open, style_of
from .placeholders import SYMBOLS
from .tokenizer import Vocabulary

Restore = Callable[[str], str]
"""Gives a text the form of another one; `str` leaves it as it is."""

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
        restore: What gives its output the form of the text.
        unread: The two ends that are left out, empty for most texts.
    """

    text: str
    restore: Restore = str
    unread: tuple[str, str] = ("", "")


def in_usual_form(text: str, vocabulary: Vocabulary, facts: CorpusFacts) -> UsualForm:
    """How a model reads a masked text.

    What the training pairs have often is read as it is, but for capitals and titles: they are never often enough.
    """
    begin, middle, end = _unknown_ends(text, vocabulary.characters)
    read, restore = _in_usual_letters(middle, vocabulary, facts)
    if facts.last_sign and is_open(middle):
        read, styled = read + facts.last_sign, restore
        restore = lambda output: open_ended(styled(output))  # noqa: E731
    if not begin and not end:
        return UsualForm(read, restore)
    return UsualForm(read, lambda output: begin + restore(output) + end, (begin, end))


def _unknown_ends(text: str, known: Set[str]) -> tuple[str, str, str]:
    """A text in three: words and signs at its ends of which nothing is known, and what is between them.

    A text without a known letter is an end as a whole.
    """

    def is_known(one: str) -> bool:
        return one in known or one in SYMBOLS or one.lower() in known or one.upper() in known

    def is_strange(one: str) -> bool:
        """A letter, a digit or a picture that is not known, no mere sign such as `?`."""
        return not is_known(one) and (one.isalnum() or category(one).startswith("S"))

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
    while start < picture and not is_known(text[picture - 1]) and not text[picture - 1].isalnum():
        picture -= 1
        if is_strange(text[picture]):  # what follows belongs to it: a selector of its form, say
            stop = picture
    if not any(one.isalpha() and is_known(one) for one in text[start:stop]):
        return text, "", ""
    return text[:start], text[start:stop], text[stop:]


def _in_usual_letters(text: str, vocabulary: Vocabulary, facts: CorpusFacts) -> tuple[str, Restore]:
    style = style_of(text)
    if style is None or (style == "small letters" and not facts.hardly_has_small_letters):
        return text, str
    first_words = _first_words(text) if facts.begins_with_capitals else ()
    usual = _WORD.sub(lambda found: _usual(found[0], vocabulary, found.start() in first_words), text)
    words = _WORD.findall(text)
    changed = sum(before != after for before, after in zip(words, _WORD.findall(usual), strict=False))
    if not changed or (style == "title" and 2 * changed < len(words) - 1):  # the nouns of German make no title
        return text, str
    forms = {"capitals": capitals, "title": title}
    return usual, forms[style] if style in forms and facts.keeps(style) else str


def capitals(text: str) -> str:
    """A text in capitals: `STRASSE`. Georgian, which is not written so, stays."""
    if "ı" in text:  # Turkish
        text = text.replace("i", "İ")
    return _SMALL.sub(lambda found: found[0].upper(), text)


def title(text: str) -> str:
    """A text whose words begin with capitals."""
    return _WORD_START.sub(lambda found: found[0].upper(), text)


def open_ended(text: str) -> str:
    """A text without the sign that ends its sentence, if there is more in it than that."""
    return _LAST_SIGN.sub("", text) or text


def _first_words(text: str) -> set[int]:
    """Where the sentences of a text begin, quotes and signs left out."""
    from .scripts import sentences  # most texts are in their usual form

    begin, found = 0, set[int]()
    for sentence in sentences(text):
        if word := _WORD.search(sentence):
            found.add(begin + word.start())
        begin += len(sentence)
    return found


def _usual(word: str, vocabulary: Vocabulary, begins_sentence: bool) -> str:
    """The spelling of a word that its vocabulary has in the fewest pieces; of several such ones the most frequent."""
    also = (pair for pair in _ALSO if pair[0] in word and pair[1] in vocabulary.characters)
    spellings = [word, *(word.replace(*pair) for pair in also)]
    small = min((one.replace("İ", "i").lower() for one in spellings), key=vocabulary.cost)
    capital = small[:1].upper() + small[1:]
    choices = [small, capital, word, word.upper()]
    return min((one for one in choices if not begins_sentence or one != small), key=vocabulary.cost, default=small)
