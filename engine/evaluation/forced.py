"""Forced scores: how probable a model finds translations that are given, without translating anything itself."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ...data.batching import training_rows
from ...seq2seq.out_of_memory import in_halves
from ...seq2seq.training.batch import Batch
from ..translator import Translator
from .loss import SetLoss, pair_log_probs

_BATCH = 64
"""Pairs that are scored at a time."""


@dataclass(frozen=True)
class ForcedScore:
    """The log-probability of a target given its source, in nats, over so many pieces, its end included."""

    log_prob: float
    tokens: int

    @property
    def confidence(self) -> float:
        """From 0 to 1: the geometric mean of the probabilities of the pieces, as of a translation of its own."""
        return math.exp(self.log_prob / self.tokens)


def force(
    translator: Translator,
    sources: Sequence[str],
    targets: Sequence[str],
    *,
    on_done: Callable[[int], None] = lambda done: None,
) -> list[ForcedScore | None]:
    """The forced score of each pair; None where one of its sides is longer than the model reads.

    `on_done` hears the number of pairs scored so far.
    """
    tokenizer, limit = translator.tokenizer, translator.model.config.max_seq_len - 1  # eos takes one place
    masked = [tokenizer.mask_pair(src, tgt) for src, tgt in zip(sources, targets, strict=True)]
    pairs = [(tokenizer.src.encode(src), tokenizer.tgt.encode(tgt)) for src, tgt in masked]
    fitting = [row for row, pair in enumerate(pairs) if max(map(len, pair)) <= limit]
    fitting.sort(key=lambda row: len(pairs[row][1]))
    found: list[ForcedScore | None] = [None] * len(pairs)
    for start in range(0, len(fitting), _BATCH):
        rows = fitting[start : start + _BATCH]
        batch = [pairs[row] for row in rows]
        for row, log_prob in zip(rows, in_halves(partial(_log_probs, translator), batch), strict=True):
            found[row] = ForcedScore(log_prob, len(pairs[row][1]) + 1)
        on_done(start + len(rows))
    return found


def _log_probs(translator: Translator, pairs: Sequence[tuple[list[int], list[int]]]) -> list[float]:
    batch = Batch.of(training_rows(pairs), device=translator.device)
    return pair_log_probs(translator.model, batch).tolist()


def set_loss(scores: Sequence[ForcedScore | None]) -> SetLoss:
    """The mean over all pieces of the pairs that have a score."""
    known = [score for score in scores if score is not None]
    tokens = sum(score.tokens for score in known)
    return SetLoss(-sum(score.log_prob for score in known) / tokens if tokens else math.nan, tokens)
