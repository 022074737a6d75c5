"""From the size of a small corpus to the settings that suit it, each with its reason; and settings for training on.

The preset `pairs` has what is the same for all of them. What was measured is in `benchmarks/journal.md`.
"""

import math
from dataclasses import dataclass
from typing import Any

from ..data.size import CorpusSize

UPDATES = 1_900
"""The largest number of updates for `PAIRS` pairs."""
PAIRS = 5_000
GROWTH = 0.55
"""With r times the pairs, there are r ** 0.55 times the updates: 3.1 times for eight times the pairs."""
BATCH_TOKENS = 2_048
"""Most tokens of a batch of the preset `pairs`: a full batch."""
PIECES_PER_UPDATE = 3_800
"""Target pieces of an update of two such batches, without padding."""
LONG_LINES = 30
"""With at least this many target pieces a line, batches are smaller."""
BATCH_TOKENS_OF_LONG_LINES = 1_536
SMALLEST_CHOSEN, LARGEST_CHOSEN = 1_000, 8_000
"""A vocabulary that nobody chose has at least, and at most, this many pieces."""
PIECES_PER_ROOT = 8
"""A corpus of n letters gets this many times the square root of n pieces, beside its characters."""
MIN_DROPOUT, MAX_DROPOUT = 0.1, 0.3
FEW_EPOCHS = 10
"""Dropout is 0.1 at twice as many epochs of full batches, and 0.1 higher for each further doubling."""
PIECES_FOR_BOTH_DIRECTIONS, EPOCHS_FOR_BOTH_DIRECTIONS = 125_000, 35
"""Up to so many pieces of target text, if seen at least so many times, teach more in both directions."""
SUBWORD_DROPOUT = 0.1
"""Where both directions are learned."""
SECONDS_FOR_BOTH_DIRECTIONS = 1_200
"""With less time, one direction is better: a model of both directions is behind after a fifth of its updates."""

FINE_TUNING_RATE = 0.1
"""In training on, the learning rates are this share of those with which the model was trained."""
FINE_TUNING_SHORTER = 2
"""In training on, updates are this many times fewer than to learn as many pairs from nothing."""
MIN_FINE_TUNING_UPDATES = 300


@dataclass(frozen=True)
class Choice:
    """A setting that follows from the corpus, and the reason in one line for people."""

    section: str
    key: str
    value: Any
    reason: str


def recipe(corpus: CorpusSize, max_steps: int | None = None, *, turns_round: bool = True) -> list[Choice]:
    """The settings for a corpus of up to some 50,000 pairs.

    Args:
        max_steps: A number of updates that was asked for.
        turns_round: Whether pairs may be learned in both directions.
    """
    updates = max_steps or max_updates(corpus.pairs)
    pieces, tokens = vocab_size(corpus), batch_tokens(corpus)
    epochs_of_full_batches = updates * PIECES_PER_UPDATE / max(corpus.tgt_pieces, 1)
    epochs = epochs_of_full_batches * tokens / BATCH_TOKENS
    rate = dropout(epochs_of_full_batches)
    size = f"{corpus.letters / 1e6:,.1f} million" if corpus.letters >= 100_000 else f"{corpus.letters:,}"
    times = "more than a hundred" if epochs > 100 else f"about {max(round(epochs), 1)}"
    choices = [
        Choice(
            "tokenizer",
            "vocab_size",
            pieces,
            f"vocabulary of up to {pieces:,}: {size} characters of text, {corpus.characters:,} different ones",
        ),
        Choice(
            "model", "dropout", rate, f"dropout {rate:g}: {updates:,} updates show each pair {times} times to the model"
        ),
        Choice(
            "training",
            "max_tokens_per_batch",
            tokens,
            f"batches of {tokens:,} tokens: a line has about {_pieces_a_line(corpus):.0f} pieces",
        ),
        Choice(
            "training",
            "max_steps",
            updates,
            f"at most {updates:,} updates for {corpus.pairs:,} pairs, fewer if the validation loss stops falling",
        ),
    ]
    if turns_round and corpus.tgt_pieces <= PIECES_FOR_BOTH_DIRECTIONS and epochs >= EPOCHS_FOR_BOTH_DIRECTIONS:
        reason = "both directions: there is little text, so each pair is turned round in every second epoch"
        choices.append(Choice("training", "both_directions", True, reason))
        reason = (
            f"subword dropout {SUBWORD_DROPOUT:g}: words come in other pieces now and then, as they are seen so often"
        )
        choices.append(Choice("training", "subword_dropout", SUBWORD_DROPOUT, reason))
    return choices


def max_updates(pairs: int) -> int:
    """The largest number of updates for a number of pairs."""
    return max(100 * round(UPDATES * (max(pairs, 1) / PAIRS) ** GROWTH / 100), 400)


def batch_tokens(corpus: CorpusSize) -> int:
    """Fewer for long lines: as many updates teach as much then, in less time. With short lines BLEU would be lower."""
    return BATCH_TOKENS if _pieces_a_line(corpus) < LONG_LINES else BATCH_TOKENS_OF_LONG_LINES


def _pieces_a_line(corpus: CorpusSize) -> float:
    return corpus.tgt_pieces / max(corpus.pairs, 1)


def dropout(epochs: float) -> float:
    """More for pairs that are seen more often: 0.1 for 20 times, 0.2 for 40, 0.3 for 80, in steps of 0.05.

    `epochs` is how often full batches would show a pair. Smaller batches leave dropout as it is.
    """
    rate = round(0.1 * math.log2(max(epochs, 1) / FEW_EPOCHS) / 0.05) * 0.05
    return round(min(max(rate, MIN_DROPOUT), MAX_DROPOUT), 2)


def vocab_size(corpus: CorpusSize) -> int:
    """One piece for each character, and more that grow with the root of the text, as the number of words does.

    So most words of a small corpus are one piece. With fewer pieces a model learns more slowly, and never catches up.
    The largest size is one of time: an update takes a tenth longer with it than with 2,500.
    """
    size = corpus.characters + PIECES_PER_ROOT * math.sqrt(corpus.letters)
    return min(max(500 * round(size / 500), SMALLEST_CHOSEN), LARGEST_CHOSEN)


_TRAINING: dict[str, Any] = {
    "max_time": None,
    "max_tokens_per_batch": 1024,
    "grad_accum_steps": 2,
    "ranks": None,
    "schedule": "trapezoid",
    "warmup_steps": 20,
    "decay_fraction": 0.5,
    "patience": 3,
    "early_stopping": 0,
    "ema_decay": 0.98,
    "subword_dropout": 0.0,
    "both_directions": False,
    "precision": "auto",
    "device": "auto",
    "validate_every": 50,
    "checkpoint_every": 50,
}


def fine_tuning(source: dict[str, Any], pairs: int) -> dict[str, Any]:
    """The settings with which a run goes on from another one on new pairs.

    `source` are all settings of that run: its model, its vocabulary and its way of decoding stay.
    """
    training = source.get("training", {})
    rates = {
        name: training[name] * FINE_TUNING_RATE for name in ("learning_rate", "muon_learning_rate") if name in training
    }
    steps = max(max_updates(pairs) // FINE_TUNING_SHORTER, MIN_FINE_TUNING_UPDATES)
    kept = {section: source[section] for section in ("model", "tokenizer", "decoding") if section in source}
    return {**kept, "training": {**training, **_TRAINING, **rates, "max_steps": steps}}
