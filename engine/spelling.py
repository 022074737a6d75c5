"""From a term or a placeholder to the phrase that an output must contain: how a vocabulary spells it, and where."""

from collections.abc import Iterable
from functools import cached_property

import regex

from ..data.cleaning import clean
from ..data.scripts import is_unspaced
from ..data.tokenizer import BOS_ID, PLACEHOLDER_IDS, UNK_ID, Vocabulary
from ..data.words import begins_word, ends_word
from ..seq2seq.decoding.phrases import Phrase, Spelling

_LETTER = "a"
"""Stands for what no letter may touch."""
_CLOSED = regex.compile(r"[[\p{Terminal_Punctuation}\p{Pe}%…]--[\p{EA=W}\p{EA=F}]]$", regex.V1)
"""The end of what a space follows. Chinese and Japanese marks bring their own space."""


class Speller:
    """Spells for one vocabulary.

    A spelling without a space before it stands where a word may begin, as after an apostrophe, a hyphen or a bracket
    (`l'` + `eau`, but neither `bat` + `eau` nor `.` + `eau`). No spelling goes on as a longer word. In scripts without
    spaces only the first word of an output has a space before it.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._terms: dict[str, Phrase | None] = {}
        self._sets: dict[tuple[str, bool | None], frozenset[int] | None] = {}

    def term(self, term: str) -> Phrase | None:
        """The translation of a term as a word of its own; None where the vocabulary cannot write it.

        A token that has more than the term is a spelling, too: `東京に`, or `l'eau,` in a vocabulary of words.
        """
        if term not in self._terms:
            term = clean(term)
            written = {tuple(self._vocabulary.encode(term)): " " + term}
            written.setdefault(tuple(self._vocabulary.encode_inside(term)), term)
            written |= {(token,): text for token, text in enumerate(self._texts) if _has_word(text, term)}
            unspaced = is_unspaced(term) and not self._puts_spaces
            first = frozenset({BOS_ID}) if unspaced else None
            self._terms[term] = _phrase(
                Spelling(tokens, first if text[0] == " " else self._after(text, closed=unspaced), self._before(text))
                for tokens, text in written.items()
            )
        return self._terms[term]

    def placeholders(self, values: Iterable[str], source: str) -> tuple[Phrase, ...]:
        """The placeholders of a source in order, or their symbols, as an output must contain them: with spaces."""
        found: list[Phrase | None] = []
        place = 0
        for value in values:
            place = source.index(value, place)
            found.append(self.placeholder(value, glued=source[place - 1 : place] != " "))
            place += len(value)
        return tuple(filter(None, found))

    def placeholder(self, value: str, *, glued: bool) -> Phrase | None:
        """A placeholder, or the symbol of one, that no letters touch; None where the vocabulary cannot write it.

        Args:
            glued: Whether it may stand without a space before it, after a bracket, a quote or another placeholder.
                Between letters of a script without spaces it always may.
        """
        before = self._before(_LETTER)
        spelling = Spelling(tuple(self._vocabulary.encode(value)), None, before)
        if not glued and not self._is_unspaced:
            return _phrase([spelling])
        after = self._after(_LETTER, closed=True)
        if after is not None and self._vocabulary.has_placeholders:
            after |= frozenset(PLACEHOLDER_IDS)
        return _phrase([spelling, Spelling(tuple(self._vocabulary.encode_inside(value)), after, before)])

    @cached_property
    def _texts(self) -> list[str]:
        """What each token writes, as far as words are concerned: a letter for a symbol and for a part of a letter."""
        vocabulary = self._vocabulary
        texts = [vocabulary.text(token) for token in range(len(vocabulary))]
        if vocabulary.has_placeholders:
            texts[PLACEHOLDER_IDS.start : PLACEHOLDER_IDS.stop] = _LETTER * len(PLACEHOLDER_IDS)
        return [_LETTER if text is None else text for text in texts]

    @cached_property
    def _puts_spaces(self) -> bool:
        """Whether text of scripts without spaces has spaces nevertheless, as a corpus split into words has."""
        # Longer pieces may be whole beginnings of sentences.
        words = [text for text in self._texts if 2 <= len(text.strip()) <= 4 and is_unspaced(text.strip())]
        return sum(text[0] == " " for text in words) > len(words) / 2

    @cached_property
    def _is_unspaced(self) -> bool:
        """Whether much of the vocabulary is for text without spaces."""
        letters = [text.strip() for text in self._texts if text.strip()[:1].isalpha()]
        return not self._puts_spaces and sum(map(is_unspaced, letters)) > len(letters) / 4

    def _after(self, text: str, *, closed: bool) -> frozenset[int] | None:
        """The tokens after which a word may begin that is written so; None: all.

        Args:
            text: Without a space before it.
            closed: Whether it may also follow a full stop and the like.
        """
        key = text[:4], closed
        if key not in self._sets:
            possible = [i for i, one in enumerate(self._texts) if begins_word(one + key[0], len(one))]
            self._sets[key] = self._shared([i for i in possible if closed or not _CLOSED.search(self._texts[i])])
        return self._sets[key]

    def _before(self, text: str) -> frozenset[int] | None:
        """The tokens before which a word may end that is written so; None: all."""
        key = text[-1], None
        if key not in self._sets:
            self._sets[key] = self._shared([i for i, one in enumerate(self._texts) if ends_word(key[0] + one, 1)])
        return self._sets[key]

    def _shared(self, allowed: list[int]) -> frozenset[int] | None:
        """A set of tokens, the same object for equal ones: they are large."""
        found = frozenset(allowed)
        if len(found) == len(self._texts):
            return None
        return next((known for known in self._sets.values() if known == found), found)


def _phrase(spellings: Iterable[Spelling]) -> Phrase | None:
    possible = tuple(one for one in spellings if one.tokens and UNK_ID not in one.tokens)
    return Phrase(possible) if possible else None


def _has_word(text: str, term: str) -> bool:
    place = text.find(term)
    return place >= 0 and begins_word(text, place) and ends_word(text, place + len(term))
