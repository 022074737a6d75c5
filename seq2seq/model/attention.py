"""Attention: a function, and the class around it that projects and splits heads (paper section 3.2).

Shapes: B sentences, T queries, S keys, D = d_model, H heads, d_k and d_v per head.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .dropout import Dropout
from .masks import Mask, Within
from .precision import Linear, linear
from .rotary import RotaryPositions
from .softmax import softmax


class AttentionCall(NamedTuple):
    """What one call of multi-head attention computed, for those who want to look on."""

    q: Tensor
    """(B, H, T, d_k)."""
    k: Tensor
    """(B, H, S, d_k)."""
    v: Tensor
    """(B, H, S, d_v)."""
    scores: Tensor
    """(B, H, T, S): Q K^T / sqrt(d_k), -inf where the mask forbids."""
    weights: Tensor
    """(B, H, T, S): their softmax."""
    heads: Tensor
    """(B, H, T, d_v): the weighted sums of values."""


def attention_scores(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """Q K^T / sqrt(d_k), (..., T, S), -inf where the mask forbids: what the softmax of `attention` is taken of."""
    scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.size(-1)))
    return scores if mask is None else scores.masked_fill(~mask, float("-inf"))


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: Callable[[Tensor], Tensor] | None = None
) -> tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V, with forbidden scores set to -inf (paper eq. 1).

    Args:
        q, k, v: (..., T, d_k), (..., S, d_k) and (..., S, d_v).
        mask: Broadcastable to (..., T, S), True where attending is allowed. Each query must see at least one key.
        dropout: Applied to the weights before they meet the values.

    Returns:
        The output (..., T, d_v) and the weights (..., T, S), before dropout, each row of which sums to 1.
    """
    weights = softmax(attention_scores(q, k, mask))  # (..., T, S)
    return (weights if dropout is None else dropout(weights)) @ v, weights


def attention_within(q: Tensor, k: Tensor, v: Tensor, mask: Within, dropout: float) -> Tensor:
    """Attention within packed sequences, on a GPU.

    It calls the kernel that torch calls for nested tensors in single precision. The kernel computes nothing between
    sequences. Flash attention's kernel has larger tiles: for sentences it takes three times as long.

    Args:
        q, k, v: (1, H, T, d_k), (1, H, S, d_k) and (1, H, S, d_v).
        dropout: Rate of dropout on the weights.

    Returns:
        The output, (1, H, T, d_v).
    """
    sides = [side.transpose(1, 2) for side in (q, k, v)]
    if q.size(-1) % 8 or v.size(-1) % 8:  # the kernel reads 8 numbers at once
        sides = [F.pad(side, (0, -side.size(-1) % 8)) for side in sides]
    heads: Tensor = _AttentionWithin.apply(*sides, mask, dropout, 1 / math.sqrt(q.size(-1)))  # pyright: ignore[reportAssignmentType]
    return heads[..., : v.size(-1)].transpose(1, 2)


class _AttentionWithin(torch.autograd.Function):
    """The kernel and its backward pass, which sums in one order: torch's own may split the keys of a sequence, and add
    the gradients of the parts as they come."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Within, dropout: float, scale: float) -> Tensor:
        ctx.mask, ctx.dropout, ctx.scale = mask, dropout, scale
        starts = mask.queries.starts, mask.keys.starts
        output, log_sums, seed, offset, *_ = torch.ops.aten._efficient_attention_forward(
            q, k, v, None, *starts, mask.queries.longest, mask.keys.longest, dropout, mask.causal, True, scale=scale
        )
        ctx.save_for_backward(q, k, v, output, log_sums, seed, offset)
        return output

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (grad,), (q, k, v, output, log_sums, seed, offset) = grad_outputs, ctx.saved_tensors
        queries, keys = ctx.mask.queries, ctx.mask.keys
        sizes = queries.starts, keys.starts, queries.longest, keys.longest
        drawn = ctx.dropout, seed, offset
        grads = torch.ops.aten._efficient_attention_backward(
            *(grad.contiguous(), q, k, v, None, output, *sizes, log_sums, *drawn, ctx.mask.causal, False),
            scale=ctx.scale,
            num_splits_key=1,
        )
        return *grads[:3], None, None, None


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1 .. head_H) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    Equal to the sum over heads of head_h W_h^O, where W_h^O is the h-th block of d_v rows of W^O. torch stores the
    transpose: in `out_proj.weight` it is the h-th block of columns. [Zhou n.d.], whose vectors are columns, writes the
    sum as W_O^(h) head_h with these columns.

    Args:
        d_model, num_heads, d_k, d_v: D and H; the width of one head's queries and keys, and of its values.
        bias, output_bias: Whether the projections to queries, keys and values have biases, and whether W^O has one.
        dropout: Rate of dropout on the attention weights.
        rotary: Turns queries and keys, if given; x and source must then be of one length: self-attention.
    """

    def __init__(
        self,
        *,
        d_model: int,
        num_heads: int,
        d_k: int,
        d_v: int,
        bias: bool,
        output_bias: bool,
        dropout: float,
        rotary: RotaryPositions | None = None,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = Linear(d_model, num_heads * d_k, bias=bias)
        self.k_proj = Linear(d_model, num_heads * d_k, bias=bias)
        self.v_proj = Linear(d_model, num_heads * d_v, bias=bias)
        self.out_proj = Linear(num_heads * d_v, d_model, bias=output_bias)
        self.dropout = Dropout(dropout)
        self.rotary = rotary
        self.on_attention: Callable[[AttentionCall], None] | None = None
        """Receives what each call computes; set by `recording`."""

    def forward(self, x: Tensor, source: Tensor, mask: Mask | None = None, positions: Tensor | None = None) -> Tensor:
        """MultiHead(x, source, source), (B, T, D): each position of x looks at all positions of the source.

        Args:
            x: (B, T, D), where the queries come from.
            source: (B, S, D), where keys and values come from: x itself (self-attention), or the encoder output
                (cross-attention).
            mask: Broadcastable to (B, H, T, S), True where attending is allowed; or that of packed sequences.
            positions: (B, T) where each vector of x stands, for rotary positions; 0, 1, .. in each row, or in each
                packed sequence, if not given.
        """
        q, k, v = self._project(x, source)
        if self.rotary is not None:
            places = mask.queries if isinstance(mask, Within) else positions
            q, k = self.rotary(torch.cat([q, k], dim=1), places).chunk(2, dim=1)  # (B, 2 H, T, d_k)
        heads = self._attend(q, k, v, mask)  # (B, H, T, d_v)
        return self.out_proj(heads.transpose(1, 2).flatten(start_dim=2))  # (B, T, H * d_v) -> (B, T, D)

    def _project(self, x: Tensor, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """x W^Q, source W^K and source W^V, split into heads: (B, H, T or S, d_k or d_v)."""
        projections = self.q_proj, self.k_proj, self.v_proj
        if source is x:  # one product of the three matrices side by side is faster
            weight = torch.cat(tuple(projection.weight for projection in projections))
            biases = tuple(projection.bias for projection in projections if projection.bias is not None)
            projected = linear(x, weight, torch.cat(biases) if biases else None)
            q, k, v = projected.split([projection.out_features for projection in projections], dim=-1)
        else:
            q, k, v = self.q_proj(x), self.k_proj(source), self.v_proj(source)
        return self._split(q), self._split(k), self._split(v)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask | None) -> Tensor:
        # On a GPU the fused kernel never writes the weights to memory. On a CPU, at sentence length, it is several
        # times slower than two matrix products, so the formula itself runs there.
        if q.is_cuda and self.on_attention is None:
            from torch.nn.attention import SDPBackend, sdpa_kernel

            rate = self.dropout.rate if self.training else 0.0
            if isinstance(mask, Within):
                return attention_within(q, k, v, mask, rate)
            # cuDNN would build a kernel for each shape, 2 s each on an H100, which is no faster than this one then.
            with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
                return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate)
        mask = mask.dense() if isinstance(mask, Within) else mask
        heads, weights = attention(q, k, v, mask, self.dropout)
        if self.on_attention is not None:
            self.on_attention(AttentionCall(q, k, v, attention_scores(q, k, mask), weights, heads))
        return heads

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)  # (B, T, H * d) -> (B, H, T, d)


def attention_modules(model: nn.Module) -> dict[str, MultiHeadAttention]:
    """The attentions of a model by name, in the order in which they compute."""
    return {name: module for name, module in model.named_modules() if isinstance(module, MultiHeadAttention)}


Kept = TypeVar("Kept")


@contextmanager
def recording(model: nn.Module, take: Callable[[AttentionCall], Kept]) -> Iterator[dict[str, list[Kept]]]:
    """Records something of everything that the model's attentions compute inside the block. Blocks do not nest.

    Yields module name (`decoder.layers.0.cross_attn`, say) to a list that grows by what `take` gives for each call.
    """
    kept: dict[str, list[Kept]] = {}
    modules = attention_modules(model)
    for name, module in modules.items():
        calls = kept.setdefault(name, [])
        module.on_attention = lambda call, calls=calls: calls.append(take(call))
    try:
        yield kept
    finally:
        for module in modules.values():
            module.on_attention = None


def attention_maps(model: nn.Module, *, scores: bool = False) -> AbstractContextManager[dict[str, list[Tensor]]]:
    """Records the attention weights (B, H, T, S) of everything the model computes inside the block; see `recording`.

    With `scores` it records Q K^T / sqrt(d_k) instead, which [Yang 2024b] prints beside the weights; -inf where a mask
    forbids. Their softmax is the weights.
    """
    return recording(model, (lambda call: call.scores) if scores else (lambda call: call.weights))
