"""From the size of a small corpus to the settings that suit it, each with its reason.

The preset `pairs` has what is the same for all of them. What was measured is in `benchmarks/ablations.md`.
"""

import math
from dataclasses import dataclass
from typing import Any

from ..data.size import CorpusSize

UPDATES = 2_400
"""Largest number of updates for `PAIRS` pairs."""
PAIRS = 5_000
GROWTH = 0.6
"""With r times the pairs, there are r ** 0.6 times the updates: 3.5 times for eight times the pairs."""
PIECES_PER_UPDATE = 1_900
"""Target pieces of an update of the preset `pairs`, without padding."""
MIN_VOCAB_SIZE, MAX_VOCAB_SIZE = 1_000, 8_000
MIN_DROPOUT, MAX_DROPOUT = 0.1, 0.3


@dataclass(frozen=True)
class Choice:
    """A setting that follows from the corpus.

    Attributes:
        section, key: Which one.
        value: What it becomes.
        reason: One line for people.
    """

    section: str
    key: str
    value: Any
    reason: str


def recipe(corpus: CorpusSize, max_steps: int | None = None) -> list[Choice]:
    """The settings for a corpus of up to some 50,000 pairs.

    Args:
        corpus: How large it is.
        max_steps: The number of updates, where somebody has asked for one.
    """
    updates = max_steps or max_updates(corpus.pairs)
    epochs = updates * PIECES_PER_UPDATE / max(corpus.tgt_pieces, 1)
    pieces, rate = vocab_size(corpus), dropout(epochs)
    times = "more than a hundred" if epochs > 100 else f"about {max(round(epochs), 1)}"
    return [
        Choice(
            "tokenizer",
            "vocab_size",
            pieces,
            f"vocabulary of {pieces:,}: {_amount(corpus.letters)} of text, {corpus.characters:,} different ones",
        ),
        Choice(
            "model", "dropout", rate, f"dropout {rate:g}: {updates:,} updates show each pair {times} times to the model"
        ),
        Choice(
            "training",
            "max_steps",
            updates,
            f"at most {updates:,} updates for {corpus.pairs:,} pairs, fewer if the validation loss stops falling",
        ),
    ]


def _amount(letters: int) -> str:
    return f"{letters / 1e6:,.1f} million characters" if letters >= 100_000 else f"{letters:,} characters"


def max_updates(pairs: int) -> int:
    """The largest number of updates for so many pairs."""
    return max(100 * round(UPDATES * (max(pairs, 1) / PAIRS) ** GROWTH / 100), 400)


def dropout(epochs: float) -> float:
    """More for pairs that are seen more often: 0.1 for 16 times, 0.2 for 32, 0.3 for 64, in steps of 0.05."""
    rate = round(0.1 * math.log2(max(epochs, 1) / 8) / 0.05) * 0.05
    return round(min(max(rate, MIN_DROPOUT), MAX_DROPOUT), 2)


def vocab_size(corpus: CorpusSize) -> int:
    """Grows with the root of the text, as the number of different words does, and is a multiple of 500.

    About half as many more as there are characters at the least, so that Japanese has some words, too.
    """
    size = max(2 * math.sqrt(corpus.letters), 1.5 * corpus.characters)
    return min(max(500 * round(size / 500), MIN_VOCAB_SIZE), MAX_VOCAB_SIZE)
