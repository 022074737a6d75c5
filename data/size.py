"""How large a corpus is: what a recipe for training on it needs to know."""

from dataclasses import dataclass

from .corpus import Corpus
from .facts import wide_characters

WIDE_LETTERS = 3
"""A wide character says about as much as this many letters."""
LETTERS_PER_PIECE = 4
"""A piece of a small vocabulary has about this many letters."""


@dataclass(frozen=True)
class CorpusSize:
    """Pairs with text on both sides, and text of a corpus.

    Letters are characters, a wide one counted as `WIDE_LETTERS`; spaces count, line ends do not. `characters` are
    different ones, of both sides.
    """

    pairs: int
    src_letters: int
    tgt_letters: int
    characters: int

    @property
    def letters(self) -> int:
        """Letters of both sides."""
        return self.src_letters + self.tgt_letters

    @property
    def tgt_pieces(self) -> int:
        """About how many pieces the target side has; known before there is a vocabulary."""
        return round(self.tgt_letters / LETTERS_PER_PIECE)


def measure(corpus: Corpus) -> CorpusSize:
    """Reads a corpus once, in constant memory."""
    pairs = src_letters = tgt_letters = 0
    characters: set[str] = set()
    for src, tgt in corpus.pairs():
        pairs += bool(src and tgt)
        src_letters += _letters(src)
        tgt_letters += _letters(tgt)
        characters.update(src, tgt)
    return CorpusSize(pairs, src_letters, tgt_letters, len(characters))


def _letters(text: str) -> int:
    return len(text) + (WIDE_LETTERS - 1) * wide_characters(text)
