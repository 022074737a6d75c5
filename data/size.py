"""How large a corpus is: what a recipe for training on it needs to know."""

from dataclasses import dataclass

from .corpus import Corpus

BYTES_PER_PIECE = 3.0
"""About so many bytes of UTF-8 are a piece of a small vocabulary, in any script: 3 English letters, one kanji."""


@dataclass(frozen=True)
class CorpusSize:
    """Pairs and text of a corpus.

    Attributes:
        pairs: How many.
        src_bytes, tgt_bytes: Of UTF-8, line ends not counted.
        characters: Different ones, of both sides.
    """

    pairs: int
    src_bytes: int
    tgt_bytes: int
    characters: int

    @property
    def bytes(self) -> int:
        """Of both sides."""
        return self.src_bytes + self.tgt_bytes

    @property
    def tgt_pieces(self) -> int:
        """About how many pieces the target side has; known before there is a vocabulary."""
        return round(self.tgt_bytes / BYTES_PER_PIECE)


def measure(corpus: Corpus) -> CorpusSize:
    """Reads a corpus once, in constant memory.

    Raises:
        DataError: A file cannot be read.
    """
    pairs = src_bytes = tgt_bytes = 0
    characters: set[str] = set()
    for src, tgt in corpus.pairs():
        pairs += 1
        src_bytes += len(src.encode("utf-8", "surrogatepass"))
        tgt_bytes += len(tgt.encode("utf-8", "surrogatepass"))
        characters.update(src, tgt)
    return CorpusSize(pairs, src_bytes, tgt_bytes, len(characters))
