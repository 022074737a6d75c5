"""Pairs as people also write them: in capitals, as a title, in small letters, with typing errors, without a full stop.

A model learns from such pairs to translate such text. What is in capitals or a title on one side is so on the other;
typing errors and small letters are in the source alone, and its translation is as it was. Scripts without capitals
have only typing errors and missing signs. Which pairs are changed, and how, depends on seed, epoch and row alone.
"""

import numpy as np
import numpy.typing as npt
import regex

from .scripts import graphemes
from .store import Ids
from .tokenizer import UNK_ID, Tokenizer
from .usual_form import capitals, open_ended, title

_KINDS = ("capitals", "title", "small", "typed", "open")
_SHARES = (0.3, 0.25, 0.1, 0.2, 0.15)
"""How many of the changed pairs have each kind of change."""
LETTERS_AN_ERROR = 25
"""There is one typing error in about so many letters."""

_IN_A_WORD = regex.compile(r"(?<=\p{L}\p{M}*)\p{L}\p{M}*(?=\p{L})")
"""A letter that is neither the first nor the last of its word, with its marks."""


class Variation:
    """Changes a share of the pairs of each epoch. Ids go in and come out."""

    def __init__(self, tokenizer: Tokenizer, rate: float, seed: int, max_pieces: int) -> None:
        self._src, self._tgt = tokenizer.src, tokenizer.tgt
        self._rate, self._seed, self._max_pieces = rate, seed, max_pieces

    def chosen(self, count: int, epoch: int) -> npt.NDArray[np.bool_]:
        """Which of the rows of an epoch are changed, shape (count,)."""
        return self._rng(epoch).random(count, np.float32) < self._rate

    def __call__(self, src: Ids, tgt: Ids, epoch: int, row: int) -> tuple[Ids, Ids]:
        """A pair as it is shown in an epoch; as it was where it has nothing to change, or would become too long."""
        if not len(src) or UNK_ID in src or UNK_ID in tgt:
            return src, tgt
        source, target = self._src.decode(src.tolist()), self._tgt.decode(tgt.tolist())
        changed, wanted = varied(source, target, self._rng(epoch, row + 1))
        if changed == source:
            return src, tgt
        ids, wanted_ids = self._src.encode(changed), self._tgt.encode(wanted)
        if not ids or not wanted_ids or max(len(ids), len(wanted_ids)) > self._max_pieces:
            return src, tgt
        return np.array(ids, np.int32), np.array(wanted_ids, np.int32)

    def _rng(self, epoch: int, place: int = 0) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=[self._seed, epoch], counter=[0, 0, 1, place]))


def varied(source: str, target: str, rng: np.random.Generator) -> tuple[str, str]:
    """A pair with one kind of change."""
    match rng.choice(_KINDS, p=_SHARES):
        case "capitals":
            return capitals(source), capitals(target)
        case "title":
            return title(source), title(target)
        case "small":
            return source.lower(), target
        case "typed":
            return typed(source, rng), target
        case _:
            return open_ended(source), open_ended(target)


def typed(text: str, rng: np.random.Generator) -> str:
    """A text with typing errors inside words: two letters exchanged, one left out, or one written twice."""
    places = [match.span() for match in _IN_A_WORD.finditer(text)]
    for place in sorted(rng.permutation(len(places))[: -(-len(places) // LETTERS_AN_ERROR)], reverse=True):
        start, end = places[place]
        letter, rest = text[start:end], text[end:]
        after = graphemes(rest[:8])[0]
        match rng.integers(3):
            case 0:
                text = text[:start] + after + letter + rest[len(after) :]
            case 1:
                text = text[:start] + rest
            case _:
                text = text[:start] + letter + letter + rest
    return text
