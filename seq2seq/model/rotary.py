"""Rotary positions: queries and keys are turned by an angle that grows with the position (RoFormer, section 3.2).

RoFormer is Su et al. (2021), "RoFormer: Enhanced Transformer with Rotary Position Embedding".
"""

import torch
from torch import Tensor, nn

from .embedding import sinusoidal_positions
from .masks import Packed


def rotations(length: int, d_k: int) -> Tensor:
    """Cosine and sine of the angle pos / 10000^(2i / d_k), by which the i-th pair of columns is turned.

    (length, d_k/2, 2), float32. The paper's positional encoding has the same angles, with D in place of d_k.
    """
    return sinusoidal_positions(length, d_k).unflatten(1, (-1, 2)).flip(-1)


class RotaryPositions(nn.Module):
    """Turns the pairs of columns (2i, 2i + 1) of queries and keys by the angle m / 10000^(2i / d_k), m the position.

    A pair is a complex number, and to turn it is to multiply it by e^(i angle). The product of a query that is turned
    by m and a key that is turned by n depends on m - n, not on m and n themselves. Nothing is learned and nothing is
    stored in checkpoints. A sequence that is longer than the table has its angles computed at each call.
    """

    table: Tensor

    def __init__(self, num_positions: int, d_k: int) -> None:
        super().__init__()
        self.register_buffer("table", rotations(num_positions, d_k), persistent=False)

    def forward(self, x: Tensor, positions: Tensor | Packed | None = None) -> Tensor:
        """Turns queries or keys (B, H, T, d_k).

        Args:
            positions: (B, T) where they stand, or how they are packed, no sequence longer than the table; 0, 1, .. in
                each row if not given.
        """
        length = x.size(2)
        if isinstance(positions, Packed):
            length, positions = min(positions.longest, len(self.table)), positions.positions
        known, pairs, _ = self.table.shape
        table = self.table if length <= known else rotations(length, 2 * pairs).to(self.table)
        turns = table[:length] if positions is None else table[positions][:, None]  # (T, d_k/2, 2) or (B, 1, ..)
        # In float32 at least: torch has no complex numbers of bfloat16.
        wide = x.to(torch.promote_types(x.dtype, torch.float32)).unflatten(-1, (-1, 2)).contiguous()
        turned = torch.view_as_complex(wide) * torch.view_as_complex(turns)  # (B, H, T, d_k/2)
        return torch.view_as_real(turned).flatten(3).to(x.dtype)
