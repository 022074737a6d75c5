"""The contrastive loss: a sentence has to find its translation among all translations of its batch.

Sources x and targets y are unit vectors, so that x . y is the cosine of the angle between them. With a temperature t

    P(target j | source i) = softmax over j of x_i . y_j / t
    P(source i | target j) = softmax over i of x_i . y_j / t

and the loss of pair i is the mean of -log P(target i | source i) and -log P(source i | target i), as in CLIP (Radford
et al. 2021). The other pairs of the batch are its negatives: their number, and so the loss, depends on the batch.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


def equal_rows(ids: Tensor) -> Tensor:
    """Which sentences of a padded batch (B, S) are the same: (B, B), True on the diagonal, too."""
    _, number = torch.unique(ids, dim=0, return_inverse=True)  # (B,), equal for equal rows
    return number[:, None] == number[None, :]


def contrastive_loss(sources: Tensor, targets: Tensor, same: Tensor, temperature: Tensor | float) -> Tensor:
    """The loss of B pairs, summed over them.

    Args:
        sources, targets: (B, D) unit vectors; row i of both is a pair.
        same: (B, B), True where two pairs have the same source or the same target. These are not each other's
            negatives: the target of one may be a right answer for the other.
        temperature: What similarities are divided by; the lower, the more the nearest negatives count.

    Returns:
        A scalar, in nats.
    """
    partner = torch.eye(len(sources), dtype=torch.bool, device=sources.device)
    logits = sources @ targets.T / temperature  # (B, B)
    logits = logits.masked_fill(same & ~partner, float("-inf"))
    labels = torch.arange(len(sources), device=sources.device)
    from_source = F.cross_entropy(logits, labels, reduction="sum")
    from_target = F.cross_entropy(logits.T, labels, reduction="sum")
    return (from_source + from_target) / 2


@dataclass(frozen=True)
class ContrastiveLoss:
    """The contrastive loss of the pairs of a batch. A part of a batch has only its own pairs for negatives.

    Two sentences count as the same if their pieces are: subword dropout can hide that they are. Activations are in
    `dtype`, vectors and their similarities in float32.
    """

    dtype: torch.dtype = torch.float32

    def __call__(self, model: Any, batch: Any) -> tuple[Tensor, int]:
        """The loss summed over the pairs of a `Batch`, and their number."""
        sources, targets = model.embed(batch.src, self.dtype), model.embed(batch.tgt_out, self.dtype)
        same = equal_rows(batch.src) | equal_rows(batch.tgt_out)
        return contrastive_loss(sources, targets, same, model.temperature), len(sources)
