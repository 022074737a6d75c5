"""Encoder and decoder layers: sub-layers, each wrapped in a residual connection and LayerNorm.

    post-norm (the paper)               pre-norm

    x ──┬──────────────┐                x ──┬─────────────────────────┐
        └─ sub-layer ─(+)─ LayerNorm        └─ LayerNorm ─ sub-layer ─(+)

The line that goes around the sub-layer is the residual connection; (+) is addition.
"""

from collections.abc import Callable

from torch import Tensor, nn

from .attention import MultiHeadAttention
from .config import ModelConfig, NormOrder, unknown
from .dropout import Dropout
from .feed_forward import FeedForward
from .masks import Mask
from .precision import LayerNorm
from .rotary import RotaryPositions


class Residual(nn.Module):
    """The residual connection and LayerNorm around one sub-layer.

    LayerNorm(x) = gamma * (x - mean) / sqrt(variance + eps) + beta over the features of each position ([Yang 2024a],
    [Yang 2024b], [Anonymous n.d.]; without eps in [Zhou n.d.]). It stands after the addition (post-norm, as in these
    texts) or before the sub-layer (pre-norm).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = LayerNorm(config.d_model, eps=config.norm_eps)
        self.dropout = Dropout(config.dropout)
        self.norm_order: NormOrder = config.norm_order

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        match self.norm_order:
            case "post":
                return self.norm(self.dropout.add_to(x, sublayer(x)))
            case "pre":
                return self.dropout.add_to(x, sublayer(self.norm(x)))
            case _:
                raise unknown("norm_order", self.norm_order)


def build_attention(config: ModelConfig, rotary: RotaryPositions | None = None) -> MultiHeadAttention:
    """Multi-head attention of the configured sizes."""
    return MultiHeadAttention(
        d_model=config.d_model,
        num_heads=config.num_heads,
        d_k=config.key_size,
        d_v=config.value_size,
        bias=config.attention_bias,
        output_bias=config.output_projection_bias,
        dropout=config.attention_dropout,
        rotary=rotary,
    )


def build_self_attention(config: ModelConfig) -> MultiHeadAttention:
    """Attention that turns its queries and keys if positions are rotary."""
    is_rotary = config.positions == "rotary"
    return build_attention(config, RotaryPositions(config.num_positions, config.key_size) if is_rotary else None)


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward (paper section 3.1; [Yang 2024a], encoder block; [Zhou n.d.], encoder)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attn = build_self_attention(config)
        self.feed_forward = FeedForward(config)
        self.self_attn_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, src_mask: Mask | None, positions: Tensor | None = None) -> Tensor:
        """(B, S, D) to (B, S, D); positions (B, S) only where they are not 0, 1, .. in each row."""
        x = self.self_attn_residual(x, lambda x: self.self_attn(x, x, src_mask, positions))
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention to the encoder output, feed-forward ([Yang 2024a], decoder block).

    In cross-attention the queries are the decoder's. Keys and values are projected from the output of the last encoder
    layer, which all decoder layers read ([Zhou n.d.], decoder).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attn = build_self_attention(config)
        self.cross_attn = build_attention(config)
        self.feed_forward = FeedForward(config)
        self.self_attn_residual = Residual(config)
        self.cross_attn_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, y: Tensor, memory: Tensor, tgt_mask: Mask | None, src_mask: Mask | None) -> Tensor:
        """The target (B, T, D) and the encoder output (B, S, D), which is the memory, to (B, T, D)."""
        y = self.self_attn_residual(y, lambda y: self.self_attn(y, y, tgt_mask))
        y = self.cross_attn_residual(y, lambda y: self.cross_attn(y, memory, src_mask))
        return self.feed_forward_residual(y, self.feed_forward)
