"""Tokens to vectors, and where in the sentence they stand."""

import math

import torch
from torch import Tensor, nn

from .config import ModelConfig, unknown
from .dropout import Dropout


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """The positional encoding of the paper, section 3.5, interleaved (seed documents 000, 002, 003, 004).

        PE(pos, 2i)     = sin(pos / 10000^(2i / D))
        PE(pos, 2i + 1) = cos(pos / 10000^(2i / D))

    Args:
        length: Number of positions, counted from 0.
        d_model: D, even.

    Returns:
        (length, D), float32, each element in [-1, 1].
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = position * frequency  # (length, D/2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(start_dim=1).float()


class SinusoidalPositions(nn.Module):
    """Looks positions up in a fixed table; nothing is learned and nothing is stored in checkpoints."""

    table: Tensor

    def __init__(self, max_seq_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_positions(max_seq_len, d_model), persistent=False)

    def forward(self, length: int) -> Tensor:
        """Vectors of the first positions, (length, D)."""
        return self.table[:length]


class LearnedPositions(nn.Module):
    """A learned vector for each position up to `max_seq_len`."""

    def __init__(self, max_seq_len: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_seq_len, d_model))

    def forward(self, length: int) -> Tensor:
        """Vectors of the first positions, (length, D)."""
        return self.weight[:length]


def build_positions(config: ModelConfig) -> nn.Module | None:
    """The position vectors that the configuration names, or None for a model blind to order."""
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(config.max_seq_len, config.d_model)
        case "learned":
            return LearnedPositions(config.max_seq_len, config.d_model)
        case "none":
            return None
        case _:
            raise unknown("positions", config.positions)


class Embedding(nn.Module):
    """x = dropout(E[ids] * sqrt(D) + PE): token vectors (equal to one-hot rows times E), scaled, plus positions.

    Args:
        tokens: The (V, D) table; shared with other modules if tied.
        config: Says whether to scale, and which positions to add.
    """

    def __init__(self, tokens: nn.Embedding, config: ModelConfig) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = build_positions(config)
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.max_seq_len = config.max_seq_len
        self.dropout = Dropout(config.dropout)

    def forward(self, ids: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Embeds sentences.

        Args:
            ids: (B, T) token ids.
            dtype: Precision of the result, and with it of every layer that follows; the weights' own if not given.

        Returns:
            (B, T, D).

        Raises:
            ValueError: T is more than `max_seq_len`.
        """
        length = ids.size(1)
        if length > self.max_seq_len:
            raise ValueError(f"sequence of {length} tokens, but max_seq_len is {self.max_seq_len}")
        x = self.tokens(ids).to(dtype or self.tokens.weight.dtype) * self.scale
        if self.positions is not None:
            x = x + self.positions(length).to(x.dtype)
        return self.dropout(x)
