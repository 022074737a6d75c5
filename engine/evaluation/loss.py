"""How probable a model finds texts that are given: loss and perplexity of a set, forced scores of translations."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ...data.tokenizer import UNK_ID
from ...seq2seq.model.masks import PAD_ID
from ...seq2seq.out_of_memory import in_halves
from ...seq2seq.training.batch import Batch
from ..translator import Translator

_BATCH = 64
"""Pairs that are scored at a time."""


@dataclass(frozen=True)
class SetLoss:
    """Cross-entropy of a set, without label smoothing."""

    loss: float
    """Nats per target token, eos included; not a number for an empty set."""
    num_tokens: int
    """Target tokens scored."""

    @property
    def ppl(self) -> float:
        """Perplexity, exp(loss)."""
        return perplexity(self.loss)


def perplexity(loss: float) -> float:
    """exp(loss), or the largest that a number can hold."""
    return math.exp(min(loss, 700.0))


def in_figures(ppl: float, decimals: int) -> str:
    """A perplexity for people; a huge one, of a model that has diverged, as a power of ten."""
    return f"{ppl:.{decimals}f}" if ppl < 1e9 else f"{ppl:.1e}"


@torch.inference_mode()
def pair_log_probs(model: Any, batch: Batch) -> Tensor:
    """The log-probability of each target of a batch of B pairs given its source, eos included: (B,).

    The model predicts the next token, and is in evaluation mode.
    """
    logits = model(batch.src, batch.tgt_in).float()  # (B, T, V)
    losses = F.cross_entropy(logits.transpose(1, 2), batch.tgt_out, ignore_index=PAD_ID, reduction="none")
    return -losses.sum(dim=1)


@torch.inference_mode()
def evaluate_loss(model: Any, batches: Iterable[Batch]) -> SetLoss:
    """Mean cross-entropy of the references. A batch that does not fit into memory is computed in halves."""
    total, num_tokens = 0.0, 0
    for batch in batches:
        total += sum(in_halves(lambda rows, batch=batch: [_summed_loss(model, batch, rows)], range(len(batch))))
        num_tokens += batch.num_tokens
    return SetLoss(total / num_tokens if num_tokens else math.nan, num_tokens)


def _summed_loss(model: Any, batch: Batch, rows: Sequence[int]) -> float:
    """Cross-entropy of consecutive rows of a batch, summed over their tokens."""
    part = batch.rows(slice(rows[0], rows[-1] + 1))
    logits, targets = model(part.src, part.tgt_in).float(), part.tgt_out.flatten()
    return F.cross_entropy(logits.flatten(0, 1), targets, ignore_index=PAD_ID, reduction="sum").item()


@dataclass(frozen=True)
class ForcedScore:
    """The log-probability of a target given its source, in nats, and the number of its pieces, its end included."""

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
    """The forced score of each pair; None where one of its sides is longer than the model reads, or an export cannot
    write it.

    `on_done` hears the number of pairs scored so far.
    """
    tokenizer, limit = translator.tokenizer, translator.max_seq_len - 1  # eos takes one place
    masked = [tokenizer.mask_pair(src, tgt) for src, tgt in zip(sources, targets, strict=True)]
    pairs = [(tokenizer.src.encode(src), tokenizer.tgt.encode(tgt)) for src, tgt in masked]
    fitting = [row for row, pair in enumerate(pairs) if max(map(len, pair)) <= limit]
    if not translator.searcher.scores_unknown:
        fitting = [row for row in fitting if UNK_ID not in pairs[row][1]]
    fitting.sort(key=lambda row: len(pairs[row][1]))
    found: list[ForcedScore | None] = [None] * len(pairs)
    for start in range(0, len(fitting), _BATCH):
        rows = fitting[start : start + _BATCH]
        batch = [pairs[row] for row in rows]
        for row, log_prob in zip(rows, in_halves(translator.searcher.log_probs, batch), strict=True):
            found[row] = ForcedScore(log_prob, len(pairs[row][1]) + 1)
        on_done(start + len(rows))
    return found


@dataclass(frozen=True)
class BothWays:
    """Forced scores in both directions: nats per piece, of the sentences that both models read whole.

    A sentence that omits something says less of its source: the source is less probable given the output.

    Attributes:
        outputs, references: Of these given their sources.
        sources_of_outputs, sources_of_references: Of the sources given these, by the model of the opposite direction.
        less_said: Outputs with which their source is less probable than with the reference.
    """

    sentences: int
    outputs: float
    references: float
    sources_of_outputs: float
    sources_of_references: float
    less_said: int

    def __str__(self) -> str:
        return (
            f"both ways, nats per piece: outputs {self.outputs:.2f}, references {self.references:.2f}; sources given"
            f" the outputs {self.sources_of_outputs:.2f}, given the references {self.sources_of_references:.2f};"
            f" {self.less_said:,} of {self.sentences:,} outputs say less of their source than the reference"
        )


def force_both_ways(
    translator: Translator,
    opposite: Translator,
    sources: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[str],
) -> BothWays | None:
    """Scores outputs and references, and the sources given both; None where no sentence fits."""
    scored = [
        *(force(translator, sources, texts) for texts in (outputs, references)),
        *(force(opposite, texts, sources) for texts in (outputs, references)),
    ]
    fitting = [row for row in range(len(sources)) if all(each[row] is not None for each in scored)]
    if not fitting:
        return None
    ones = [[one for row in fitting if (one := each[row]) is not None] for each in scored]
    losses = [set_loss(each).loss for each in ones]
    less = sum(output.log_prob < reference.log_prob for output, reference in zip(ones[2], ones[3], strict=True))
    return BothWays(len(fitting), losses[0], losses[1], losses[2], losses[3], less)


def set_loss(scores: Sequence[ForcedScore | None]) -> SetLoss:
    """The mean over all pieces of the pairs that have a score."""
    known = [score for score in scores if score is not None]
    tokens = sum(score.tokens for score in known)
    return SetLoss(-sum(score.log_prob for score in known) / tokens if tokens else math.nan, tokens)
