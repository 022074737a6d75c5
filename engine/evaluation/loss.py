"""Loss and perplexity of a model on a set of pairs."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ...seq2seq.out_of_memory import in_halves
from ...seq2seq.training.batch import Batch


@dataclass(frozen=True)
class SetLoss:
    """Cross-entropy of a set, without label smoothing.

    Attributes:
        loss: Nats per target token, eos included; not a number for an empty set.
        num_tokens: Target tokens scored.
    """

    loss: float
    num_tokens: int

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
    """The log-probability of each target of a batch given its source, eos included: (B,).

    Args:
        model: One that predicts the next token, in evaluation mode.
        batch: Of B pairs.
    """
    logits = model(batch.src, batch.tgt_in).float()  # (B, T, V)
    losses = F.cross_entropy(logits.transpose(1, 2), batch.tgt_out, ignore_index=model.pad_id, reduction="none")
    return -losses.sum(dim=1)


@torch.inference_mode()
def evaluate_loss(model: Any, batches: Iterable[Batch]) -> SetLoss:
    """Mean cross-entropy of the references.

    Args:
        model: One that predicts the next token, in evaluation mode.
        batches: The set. One that does not fit into memory is computed in halves.
    """
    total, num_tokens = 0.0, 0
    for batch in batches:
        total += sum(in_halves(lambda rows, batch=batch: [_summed_loss(model, batch, rows)], range(len(batch))))
        num_tokens += batch.num_tokens
    return SetLoss(total / num_tokens if num_tokens else math.nan, num_tokens)


def _summed_loss(model: Any, batch: Batch, rows: Sequence[int]) -> float:
    """Cross-entropy of consecutive rows of a batch, summed over their tokens."""
    part = batch.rows(slice(rows[0], rows[-1] + 1))
    logits, targets = model(part.src, part.tgt_in).float(), part.tgt_out.flatten()
    return F.cross_entropy(logits.flatten(0, 1), targets, ignore_index=model.pad_id, reduction="sum").item()
