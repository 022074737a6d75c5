"""The masked-token loss (Devlin et al. 2019, BERT): some tokens of a sentence are hidden, and to be guessed.

Of the pieces of each sentence 15 % are chosen, at least one. Of those 80 % become the mask piece, 10 % a random piece,
and 10 % stay: so the model cannot tell which pieces it may trust, and has to have an opinion about all of them.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..model.masks import PAD_ID
from .loss import training_loss

CHOSEN = 0.15
"""Share of the pieces of a sentence that are to be guessed."""
HIDDEN, REPLACED = 0.8, 0.1
"""Shares of the chosen ones that become the mask piece, and a random piece."""


@dataclass(frozen=True)
class Masking:
    """How tokens are hidden.

    Args:
        mask_id: The piece that stands where one is hidden.
        first_piece: Ids from here on are pieces of text.
        vocab_size: Pieces of the vocabulary, and the end of those ids.
        eos_id: Never chosen, as padding is not.
    """

    mask_id: int
    first_piece: int
    vocab_size: int
    eos_id: int

    def __call__(self, ids: Tensor, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Hides tokens of ids (B, S) at random; by torch's own generator if none is given.

        Returns:
            (B, S) ids with some of them hidden or replaced, and (B, S) the ids to be guessed, padding elsewhere.
        """
        chosen = self._choose(ids, generator)
        fate = torch.rand(ids.shape, generator=generator, device=ids.device)
        pieces = torch.randint(
            self.first_piece, self.vocab_size, ids.shape, generator=generator, device=ids.device, dtype=ids.dtype
        )
        hidden = ids.masked_fill(chosen & (fate < HIDDEN), self.mask_id)
        replaced = chosen & (fate >= HIDDEN) & (fate < HIDDEN + REPLACED)
        return torch.where(replaced, pieces, hidden), ids.masked_fill(~chosen, PAD_ID)

    def _choose(self, ids: Tensor, generator: torch.Generator | None) -> Tensor:
        """(B, S), True at the tokens to be guessed: those of each row that draw the lowest numbers."""
        pieces = (ids != PAD_ID) & (ids != self.eos_id)
        lots = torch.rand(ids.shape, generator=generator, device=ids.device).masked_fill(~pieces, 2.0)
        ranks = lots.argsort(dim=1).argsort(dim=1)  # (B, S), 0 for the lowest of a row
        counts = (CHOSEN * pieces.sum(dim=1)).round().clamp(min=1)  # (B,)
        return pieces & (ranks < counts[:, None])


@dataclass(frozen=True)
class MaskedTokenLoss:
    """The loss of guessing hidden tokens, in sources and in targets.

    Args:
        masking: How tokens are hidden. Which, torch's generator says, and the trainer seeds it for each micro-batch.
        label_smoothing, dtype: See `NextTokenLoss`.
    """

    masking: Masking
    label_smoothing: float
    dtype: torch.dtype = torch.float32

    def __call__(self, model: Any, batch: Any) -> tuple[Tensor, int]:
        """The loss summed over the tokens to be guessed of a `Batch`, and their number."""
        losses: list[Tensor] = []
        count = 0
        for ids in sides(batch):
            hidden_ids, wanted = self.masking(ids)
            hidden = model.hidden_states(hidden_ids, self.dtype)  # (B, S, D)
            losses.append(training_loss(hidden, model.output_layer, wanted, self.label_smoothing))
            count += int((wanted != PAD_ID).sum())
        return torch.stack(losses).sum(), count


def sides(batch: Any) -> list[Tensor]:
    """The sentences of a `Batch`, source and target; texts alone have no source."""
    return [ids for ids in (batch.src, batch.tgt_out) if ids.size(1)]
