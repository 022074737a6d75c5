"""Loss and perplexity of a model on a set of pairs."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from ..memory import in_halves


@dataclass(frozen=True)
class TensorBatch:
    """A padded batch on its device; see `data.batching.Batch` for the fields."""

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    num_tokens: int

    def __len__(self) -> int:
        return len(self.tgt_out)

    @property
    def positions(self) -> int:
        """Of both sides, padding included: what it takes of memory goes by them."""
        return self.src.numel() + self.tgt_out.numel()

    def rows(self, chosen: slice, pad_id: int) -> "TensorBatch":
        """Some of its sentences."""
        src, tgt_in, tgt_out = (tensor[chosen] for tensor in (self.src, self.tgt_in, self.tgt_out))
        return TensorBatch(src, tgt_in, tgt_out, int((tgt_out != pad_id).sum()))


class ArrayBatch(Protocol):
    """The same as arrays, as `data.batching` makes it."""

    @property
    def src(self) -> npt.NDArray[np.int64]: ...
    @property
    def tgt_in(self) -> npt.NDArray[np.int64]: ...
    @property
    def tgt_out(self) -> npt.NDArray[np.int64]: ...
    @property
    def num_tokens(self) -> int: ...


def to_tensors(batch: ArrayBatch, device: torch.device) -> TensorBatch:
    """A batch of arrays as tensors on a device; to a GPU they are on their way when this returns."""
    tensors = [torch.from_numpy(array) for array in (batch.src, batch.tgt_in, batch.tgt_out)]
    pinned = device.type == "cuda"  # a copy from pinned memory does not make the host wait for what was queued before
    if pinned:
        tensors = [tensor.pin_memory() for tensor in tensors]
    src, tgt_in, tgt_out = (tensor.to(device, non_blocking=pinned) for tensor in tensors)
    return TensorBatch(src, tgt_in, tgt_out, batch.num_tokens)


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
def pair_log_probs(model: Any, batch: TensorBatch) -> Tensor:
    """The log-probability of each target of a batch given its source, eos included: (B,).

    Args:
        model: One that predicts the next token, in evaluation mode.
        batch: Of B pairs.
    """
    logits = model(batch.src, batch.tgt_in).float()  # (B, T, V)
    losses = F.cross_entropy(logits.transpose(1, 2), batch.tgt_out, ignore_index=model.pad_id, reduction="none")
    return -losses.sum(dim=1)


@torch.inference_mode()
def evaluate_loss(model: Any, batches: Iterable[TensorBatch]) -> SetLoss:
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


def _summed_loss(model: Any, batch: TensorBatch, rows: Sequence[int]) -> float:
    """Cross-entropy of consecutive rows of a batch, summed over their tokens."""
    chosen = slice(rows[0], rows[-1] + 1)
    logits = model(batch.src[chosen], batch.tgt_in[chosen]).float()
    targets = batch.tgt_out[chosen].flatten()
    return F.cross_entropy(logits.flatten(0, 1), targets, ignore_index=model.pad_id, reduction="sum").item()
