"""Tokens to vectors, and where in the sentence they stand."""

import math

import torch
from torch import Tensor, nn

from .config import ModelConfig, unknown
from .dropout import Dropout
from .masks import Packed


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """The positional encoding of the paper, section 3.5, sines and cosines in turn.

    [Yang 2024a], [Yang 2024b], [Anonymous n.d.] and [Zhou n.d.] have the same formula.

        PE(pos, 2i)     = sin(pos / 10000^(2i / D))
        PE(pos, 2i + 1) = cos(pos / 10000^(2i / D))

    (length, D), float32.
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    frequency = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = position * frequency  # (length, D/2)
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(start_dim=1).float()


class SinusoidalPositions(nn.Module):
    """Looks positions up in a fixed table; nothing is learned and nothing is stored in checkpoints.

    The formula has no last position: what lies beyond the table is computed when it is asked for.
    """

    table: Tensor

    def __init__(self, max_seq_len: int, d_model: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoidal_positions(max_seq_len, d_model), persistent=False)

    def forward(self, length: int) -> Tensor:
        """Vectors of the first positions, (length, D)."""
        known, d_model = self.table.shape
        table = self.table if length <= known else sinusoidal_positions(length, d_model).to(self.table)
        return table[:length]


class LearnedPositions(nn.Module):
    """A learned vector for each position up to `max_seq_len`."""

    def __init__(self, max_seq_len: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_seq_len, d_model))

    def forward(self, length: int) -> Tensor:
        """Vectors of the first positions, (length, D); ValueError if there are fewer."""
        if length > len(self.weight):
            raise ValueError(f"sequence of {length} tokens, but max_seq_len is {len(self.weight)}")
        return self.weight[:length]


def build_positions(config: ModelConfig, length: int) -> nn.Module | None:
    """Vectors of `length` positions, of the kind that the configuration names; None if nothing is added."""
    match config.positions:
        case "sinusoidal":
            return SinusoidalPositions(length, config.d_model)
        case "learned":
            return LearnedPositions(length, config.d_model)
        case "rotary" | "none":
            return None  # rotary positions are part of self-attention
        case _:
            raise unknown("positions", config.positions)


class Embedding(nn.Module):
    """x = dropout(E[ids] * sqrt(D) + PE): token vectors, scaled, plus positions.

    A token vector is a one-hot row times E ([Zhou n.d.]). E is the (V, D) table of `tokens`, which other modules may
    share.
    """

    def __init__(self, tokens: nn.Embedding, config: ModelConfig) -> None:
        super().__init__()
        self.tokens = tokens
        self.num_positions = config.num_positions
        self.positions = build_positions(config, self.num_positions)
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.dropout = Dropout(config.dropout)

    def forward(
        self, ids: Tensor, positions: Tensor | Packed | None = None, dtype: torch.dtype | None = None
    ) -> Tensor:
        """Token ids (B, T) to (B, T, D); ValueError if positions are learned, and T is more than there are.

        Args:
            positions: (B, T) where each token stands, or how sequences are packed, none of them longer than
                `num_positions`; 0, 1, .. in each row if not given.
            dtype: Precision of the result, and with it of every layer that follows; the weights' own if not given.
        """
        x = self.tokens(ids).to(dtype or self.tokens.weight.dtype) * self.scale
        if self.positions is not None:
            length = ids.size(1)
            if isinstance(positions, Packed):
                length, positions = min(positions.longest, self.num_positions), positions.positions
            vectors = self.positions(length)  # (length, D)
            x = x + (vectors if positions is None else vectors[positions]).to(x.dtype)
        return self.dropout(x)


def embedding_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that are looked up: vectors of tokens, though tied to the output layer, and of positions."""
    tables = {module for module in model.modules() if isinstance(module, nn.Embedding | LearnedPositions)}
    looked_up = {id(table.weight) for table in tables}
    return [parameter for parameter in model.parameters() if id(parameter) in looked_up]
