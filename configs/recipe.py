"""From the size of a small corpus to the settings that suit it, each with its reason.

The preset `pairs` has what is the same for all of them. What was measured is in `benchmarks/ablations.md`.
"""

import math
from dataclasses import dataclass
from typing import Any

from ..data.size import CorpusSize

UPDATES = 2_400
"""Most updates for `PAIRS` pairs: 20 minutes on two cores with AVX512-BF16."""
PAIRS = 5_000
GROWTH = 0.6
"""Updates grow with so high a power of the pairs: eight times the pairs, 3.5 times the updates."""
TOKENS_PER_UPDATE = 1_900
"""Target pieces of an update of the preset `pairs`, padding left out."""
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


def recipe(corpus: CorpusSize) -> list[Choice]:
    """The settings for a corpus of up to some 50,000 pairs."""
    updates = max_updates(corpus.pairs)
    epochs = updates * TOKENS_PER_UPDATE / max(corpus.tgt_pieces, 1)
    pieces, rate = vocab_size(corpus), dropout(epochs)
    return [
        Choice(
            "tokenizer",
            "vocab_size",
            pieces,
            f"vocabulary of {pieces:,}: there are {corpus.bytes / 1e6:.2g} MB of text"
            f" with {corpus.characters:,} different characters",
        ),
        Choice(
            "model",
            "dropout",
            rate,
            f"dropout {rate:g}: there is time to see each pair {_times(epochs)}",
        ),
        Choice(
            "training",
            "max_steps",
            updates,
            f"at most {updates:,} updates for {corpus.pairs:,} pairs, fewer if the validation loss stops falling",
        ),
    ]


def _times(epochs: float) -> str:
    """How often, in words; of what is read by heart anyway it does not matter how often."""
    return "a hundred times and more" if epochs > 100 else f"about {max(round(epochs), 1)} times"


def max_updates(pairs: int) -> int:
    """Most updates that a corpus of so many pairs gets."""
    return max(100 * round(UPDATES * (max(pairs, 1) / PAIRS) ** GROWTH / 100), 400)


def dropout(epochs: float) -> float:
    """The more often a sentence is seen, the more dropout: 0.1 up to 16 epochs, 0.3 from 64 on."""
    rate = round(0.1 * math.log2(max(epochs, 1) / 8) / 0.05) * 0.05
    return round(min(max(rate, MIN_DROPOUT), MAX_DROPOUT), 2)


def vocab_size(corpus: CorpusSize) -> int:
    """As many pieces as a text of this size has words that come again: they grow with the root of its length.

    At least half as many more as there are characters, so that Japanese has some words, too.
    """
    size = max(2 * math.sqrt(corpus.bytes), 1.5 * corpus.characters)
    return min(max(500 * round(size / 500), MIN_VOCAB_SIZE), MAX_VOCAB_SIZE)
