"""Rotary positions: queries and keys are turned by where they stand (Su et al. 2021, "RoFormer", section 3.2)."""

import torch
from torch import Tensor, nn

from .embedding import sinusoidal_positions


def rotations(length: int, d_k: int) -> Tensor:
    """By what each pair of columns is turned: cosine and sine of pos / 10000^(2i / d_k).

    The angles are those of the paper's positional encoding, over the width of a head.

    Args:
        length: Number of positions, counted from 0.
        d_k: Width of a query or key, even.

    Returns:
        (length, d_k/2, 2), float32.
    """
    return sinusoidal_positions(length, d_k).unflatten(1, (-1, 2)).flip(-1)


class RotaryPositions(nn.Module):
    """Turns the pairs of columns (2i, 2i + 1) of queries and keys by the angle m / 10000^(2i / d_k), m the position.

    A pair is a complex number, and to turn it is to multiply it by e^(i angle). The product of a query that is turned
    by m and a key that is turned by n depends on m - n, not on m and n themselves. Nothing is learned and nothing is
    stored in checkpoints. What lies beyond the table is computed when it is asked for.
    """

    table: Tensor

    def __init__(self, max_seq_len: int, d_k: int) -> None:
        super().__init__()
        self.register_buffer("table", rotations(max_seq_len, d_k), persistent=False)

    def forward(self, x: Tensor, positions: Tensor | None = None) -> Tensor:
        """Queries or keys, turned.

        Args:
            x: (B, H, T, d_k).
            positions: (B, T) where each of them stands; 0, 1, .. in each row if not given.

        Returns:
            (B, H, T, d_k), in the precision of x.
        """
        length = x.size(2)
        known, pairs, _ = self.table.shape
        table = self.table if length <= known else rotations(length, 2 * pairs).to(self.table)
        turns = table[:length] if positions is None else table[positions][:, None]  # (T, d_k/2, 2) or (B, 1, ..)
        # Turned in float32 at least: complex numbers of half precision hardly exist.
        wide = x.to(torch.promote_types(x.dtype, torch.float32)).unflatten(-1, (-1, 2)).contiguous()
        turned = torch.view_as_complex(wide) * torch.view_as_complex(turns)  # (B, H, T, d_k/2)
        return torch.view_as_real(turned).flatten(3).to(x.dtype)
