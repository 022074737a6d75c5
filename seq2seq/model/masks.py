"""Who may attend to whom. Boolean, True = may attend; they broadcast against scores of shape (B, H, T, S)."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """Lets every query see every key that is not padding.

    Args:
        ids: (B, S) token ids of the key side.
        pad_id: The id that fills rows up.

    Returns:
        (B, 1, 1, S), True at real tokens.
    """
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Lets position i see positions 0..i: the lower triangle (paper section 3.2.3; [Yang 2024a], decoder block).

    Returns:
        (T, T), True on and below the diagonal.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def additive_mask(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The same mask as [Yang 2024a] and [Yang 2024b] write it, to be added to the scores: 0 where attending is allowed,
    -inf where not."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, float("-inf"))
