"""Encoder and decoder layers: sub-layers, each wrapped in a residual connection and LayerNorm.

post-norm (the paper)               pre-norm

x ──┬──────────────┐                x ──┬─────────────────────────┐
    └─ sub-layer ─(+)─ LayerNorm        └─ LayerNorm ─ sub-layer ─(+)
"""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor, nn

from .attention import KeysValues, MultiHeadAttention
from .config import ModelConfig
from .dropout import Dropout
from .feed_forward import FeedForward
from .precision import LayerNorm


class LayerCache(Protocol):
    """What a decoder layer keeps between two decoding steps."""

    memory: KeysValues
    """Keys and values of the encoder output, projected once per sentence."""

    def append(self, keys_values: KeysValues) -> KeysValues:
        """Adds the newest position's keys and values and returns those of all positions so far."""
        ...


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
        self.pre_norm = config.norm_order == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre_norm:
            return self.dropout.add_to(x, sublayer(self.norm(x)))
        return self.norm(self.dropout.add_to(x, sublayer(x)))


def build_attention(config: ModelConfig) -> MultiHeadAttention:
    """Multi-head attention of the configured sizes."""
    return MultiHeadAttention(
        d_model=config.d_model,
        num_heads=config.num_heads,
        d_k=config.key_size,
        d_v=config.value_size,
        bias=config.attention_bias,
        output_bias=config.output_projection_bias,
        dropout=config.attention_dropout,
    )


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward (paper section 3.1; [Yang 2024a], encoder block; [Zhou n.d.], encoder)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attn = build_attention(config)
        self.feed_forward = FeedForward(config)
        self.self_attn_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(self, x: Tensor, src_mask: Tensor | None) -> Tensor:
        """(B, S, D) to (B, S, D)."""

        def attend_to_source(x: Tensor) -> Tensor:
            return self.self_attn.attend(*self.self_attn.queries_keys_values(x), src_mask)

        x = self.self_attn_residual(x, attend_to_source)
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Causal self-attention, cross-attention to the encoder output, feed-forward ([Yang 2024a], decoder block).

    In cross-attention the queries are the decoder's. Keys and values are projected from the output of the last encoder
    layer, which all decoder layers read ([Zhou n.d.], decoder).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.self_attn = build_attention(config)
        self.cross_attn = build_attention(config)
        self.feed_forward = FeedForward(config)
        self.self_attn_residual = Residual(config)
        self.cross_attn_residual = Residual(config)
        self.feed_forward_residual = Residual(config)

    def forward(
        self,
        y: Tensor,
        memory: KeysValues,
        tgt_mask: Tensor | None,
        src_mask: Tensor | None,
        cache: LayerCache | None = None,
    ) -> Tensor:
        """One layer over the whole target, or over its newest position with a cache.

        Args:
            y: (B, T, D).
            memory: This layer's projected keys and values of the encoder output, from `cross_attn.keys_values`.
            tgt_mask: Which target positions a target position may see; None with a cache, which holds only the past.
            src_mask: Which source positions may be seen.
            cache: Keeps the keys and values of earlier positions.

        Returns:
            (B, T, D).
        """

        def attend_to_target(y: Tensor) -> Tensor:
            q, new = self.self_attn.queries_keys_values(y)
            return self.self_attn.attend(q, new if cache is None else cache.append(new), tgt_mask)

        y = self.self_attn_residual(y, attend_to_target)
        y = self.cross_attn_residual(y, lambda y: self.cross_attn(y, memory, src_mask))
        return self.feed_forward_residual(y, self.feed_forward)
