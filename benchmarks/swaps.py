"""Ordinary Transformers with one part swapped: each function puts something else in its place, from outside.

What the ordinary model has there, and where the paper says why, is the first line of each docstring. No key of a
ModelConfig does this: a swap is given a freshly built model, before an optimizer sees it. `parts.py` trains them.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from tfm.seq2seq.model.attention import MultiHeadAttention
from tfm.seq2seq.model.decoder_only import DecoderOnly
from tfm.seq2seq.model.dropout import Dropout
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.model.layers import DecoderLayer, Residual
from tfm.seq2seq.model.masks import Mask
from tfm.seq2seq.model.stacks import initialise

T = TypeVar("T", bound=nn.Module)
Swap = Callable[[Any], None]
"""Puts something else in the place of a part of the model that it is given."""


def base(model: Transformer) -> None:
    """The encoder-decoder as it is."""
    del model


def no_encoder_positions(model: Transformer) -> None:
    """The paper has Z = X + PE there, in the encoder (section 3.5)."""
    model.src_embedding.positions = None


def no_decoder_positions(model: Transformer) -> None:
    """The paper has Z = X + PE there, in the decoder (section 3.5)."""
    model.tgt_embedding.positions = None


def no_positions(model: Transformer) -> None:
    """The paper has Z = X + PE there, in encoder and decoder (section 3.5)."""
    no_encoder_positions(model)
    no_decoder_positions(model)


def no_scale(model: Transformer) -> None:
    """The paper has Q K^T / sqrt(d_k) there; here d_k is 32 (section 3.2.1)."""
    for attention in parts(model, MultiHeadAttention):
        attention._attend = partial(_attend_without_scale, attention._attend)


def _attend_without_scale(attend: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor, mask: Mask | None) -> Tensor:
    """softmax(Q K^T) V: sqrt(d_k) Q, which `attend` divides again."""
    return attend(q * math.sqrt(q.size(-1)), k, v, mask)


def one_head(model: Transformer) -> None:
    """The paper has Concat(head_1 .. head_H) W^O there; here H is 4 (section 3.2.2)."""
    for attention in parts(model, MultiHeadAttention):
        attention.num_heads = 1  # the same matrices: all their columns are now one head, and d_k is d_model


def one_head_no_scale(model: Transformer) -> None:
    """The paper has Q K^T / sqrt(d_k) there; with one head d_k is 128 (section 3.2.1)."""
    one_head(model)
    no_scale(model)


def no_residual(model: Transformer) -> None:
    """The paper has x + sublayer(x) there; here it is x + sublayer(LayerNorm(x)) (section 3.1)."""
    for residual in parts(model, Residual):
        residual.dropout = _DropoutAlone(residual.dropout.rate)


class _DropoutAlone(Dropout):
    """Does not add: x + dropout(sublayer(..)) becomes dropout(sublayer(..))."""

    def add_to(self, residual: Tensor, x: Tensor) -> Tensor:
        """dropout(x)."""
        del residual
        return self(x)


def no_norm(model: Transformer) -> None:
    """The paper has LayerNorm there (section 3.1); here one before each sub-layer, one after each stack."""
    for residual in parts(model, Residual):
        residual.norm = nn.Identity()  # pyright: ignore[reportAttributeAccessIssue]
    model.encoder.norm, model.decoder.norm = nn.Identity(), nn.Identity()


def all_true_mask(model: Transformer) -> None:
    """The paper has a causal mask there, in the decoder's self-attention (section 3.2.3)."""
    model.decoder.register_forward_pre_hook(_see_everything)


def _see_everything(decoder: nn.Module, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    del decoder
    y, memory, tgt_mask, src_mask = arguments
    return y, memory, torch.ones_like(tgt_mask), src_mask


def no_cross_attention(model: Transformer) -> None:
    """The paper has cross-attention to the encoder's output there (section 3.2.3)."""
    for layer in parts(model, DecoderLayer):
        layer.cross_attn_residual = _LeftOut()  # pyright: ignore[reportAttributeAccessIssue]


class _LeftOut(nn.Module):
    """In the place of a `Residual`: its sub-layer is not there."""

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        del sublayer
        return x


def causal_block(model: DecoderOnly) -> None:
    """The decoder-only model as it is."""
    del model


def literal_block(model: DecoderOnly) -> None:
    """The ordinary decoder-only block has one self-attention there, and that is masked."""
    for number, layer in enumerate(model.decoder.layers):
        model.decoder.layers[number] = _LiteralBlock(model, layer)


class _LiteralBlock(nn.Module):
    """The block of the decoder-only code of [Yang 2024b]: masked self-attention, unmasked self-attention, feed-forward.

    It is a decoder layer whose second attention reads, for want of an encoder, the output of the first. The second has
    fresh weights; all else is the layer's own. Padding stays hidden, so that a sentence does not depend on its batch.
    """

    def __init__(self, model: DecoderOnly, layer: Any) -> None:
        super().__init__()
        both = DecoderLayer(model.config)
        initialise(both, model.config)
        self.second_attn, self.second_residual = both.cross_attn, both.cross_attn_residual
        self.self_attn, self.self_attn_residual = layer.self_attn, layer.self_attn_residual
        self.feed_forward, self.feed_forward_residual = layer.feed_forward, layer.feed_forward_residual

    def forward(self, x: Tensor, mask: Tensor, positions: Tensor | None = None) -> Tensor:
        """(B, T, D) to (B, T, D); positions as in `EncoderLayer`."""
        real = mask[..., -1:, :]  # what the last position sees: all but padding
        x = self.self_attn_residual(x, lambda x: self.self_attn(x, x, mask, positions))
        x = self.second_residual(x, lambda x: self.second_attn(x, x, real, positions))
        return self.feed_forward_residual(x, self.feed_forward)


def parts(model: nn.Module, kind: type[T]) -> list[T]:
    """All modules of a kind."""
    return [module for module in model.modules() if isinstance(module, kind)]


ENCODER_DECODER: tuple[Swap, ...] = (
    base,
    no_encoder_positions,
    no_decoder_positions,
    no_positions,
    no_scale,
    one_head,
    one_head_no_scale,
    no_residual,
    no_norm,
    all_true_mask,
    no_cross_attention,
)
DECODER_ONLY: tuple[Swap, ...] = (causal_block, literal_block)
VARIANTS: dict[str, Swap] = {swap.__name__: swap for swap in (*ENCODER_DECODER, *DECODER_ONLY)}
TOGETHER: dict[str, tuple[Swap, ...]] = {
    "positions": (base, no_encoder_positions, no_decoder_positions, no_positions),
    "attention": (base, no_scale, one_head, one_head_no_scale),
    "layers": (base, no_residual, no_norm),
    "sight": (base, no_cross_attention, all_true_mask),
    "decoder-only": (causal_block, literal_block),
}
"""Which variants are drawn in one picture; the first is the ordinary model."""
