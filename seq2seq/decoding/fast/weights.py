"""The weights of a `Transformer`, arranged for decoding: small tuples of tensors that know how to be applied.

Each is made by its `of` from the module of the model that has the same name. Some tensors are copies, some are the
model's own.
"""

import math
import platform
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...model import embedding, feed_forward, layers
from ...model.attention import MultiHeadAttention
from ...model.config import ModelConfig, NormOrder, unknown
from ...model.rotary import rotations

FEW_ROWS = 4
"""torch's own BLAS, which is MKL on most processors, multiplies fewer rows than this; oneDNN multiplies the others."""
_ROWS_AT_ONCE = 16
"""More rows than this are filled up to a multiple of it, because oneDNN takes half a millisecond to prepare for a new
number of rows."""


class Linear:
    """x W + b. The weight (in, out) is stored as it is multiplied: a single row times it takes half the time."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.weight, self.bias = weight, bias
        self._fewest_rows = FEW_ROWS if _is_for_onednn(weight) else math.inf

    @classmethod
    def of(cls, *linears: nn.Linear) -> "Linear":
        """Several projections of one input as one, zeros for a bias that is missing."""
        weight = torch.cat([linear.weight for linear in linears]).t().contiguous()
        return cls(weight, torch.cat([_bias(linear) for linear in linears]))

    def __call__(self, x: Tensor) -> Tensor:
        """(N, in) to (N, out)."""
        if x.size(0) < self._fewest_rows:
            return torch.addmm(self.bias, x, self.weight)
        rows = x.size(0)
        if rows > _ROWS_AT_ONCE and (missing := -rows % _ROWS_AT_ONCE):
            x = F.pad(x, (0, 0, 0, missing))
        return torch.ops.mkldnn._linear_pointwise(x, self._packed, self.bias, "none", [], "")[:rows]

    def add_to(self, residual: Tensor, x: Tensor) -> Tensor:
        """The residual sum, in place: (N, out) and x (N, in) to (N, out)."""
        if x.size(0) < self._fewest_rows:
            return residual.addmm_(x, self.weight).add_(self.bias)
        return residual.add_(self(x))

    @cached_property
    def _packed(self) -> Tensor:
        """The weight in the order in which oneDNN reads it."""
        return torch.ops.mkldnn._reorder_linear_weight(self.weight.t().contiguous(), 64)


def _is_for_onednn(weight: Tensor) -> bool:
    """Whether oneDNN, which comes with torch, multiplies by this matrix. On AMD it takes half the time of MKL.

    Its operators are those that `torch.compile` uses: the public ones copy what goes in and what comes out.
    """
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()
        and platform.machine() in ("x86_64", "AMD64")
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def output_layer(linear: nn.Linear, forbidden: Tensor) -> Linear:
    """The logits of all tokens, by far the largest product of a step; -inf for `forbidden`, (n,) ids."""
    whole = Linear.of(linear)
    return Linear(whole.weight, whole.bias.index_fill(0, forbidden, float("-inf")))


def _bias(linear: nn.Linear) -> Tensor:
    return linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias.detach()


class Norm(NamedTuple):
    """LayerNorm, before or after a sub-layer."""

    weight: Tensor
    bias: Tensor
    eps: float
    pre_norm: bool

    @classmethod
    def of(cls, norm: nn.LayerNorm, order: NormOrder) -> "Norm":
        return cls(norm.weight.detach(), norm.bias.detach(), norm.eps, _is_before(order))

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)

    def before(self, x: Tensor) -> Tensor:
        """What the sub-layer reads."""
        return self(x) if self.pre_norm else x

    def after(self, x: Tensor) -> Tensor:
        """What the residual sum becomes."""
        return x if self.pre_norm else self(x)


def _is_before(order: NormOrder) -> bool:
    match order:
        case "pre":
            return True
        case "post":
            return False
        case _:
            raise unknown("norm_order", order)


def final_norm(norm: nn.Module, order: NormOrder) -> Norm | None:
    """What a stack of layers ends in; None for post-norm layers, which need nothing more."""
    if not _is_before(order):
        return None
    assert isinstance(norm, nn.LayerNorm)
    return Norm.of(norm, order)


class Embedding(NamedTuple):
    """Vectors of tokens (V, D), to be multiplied by `scale`, and of positions (as many as there are, D)."""

    tokens: Tensor
    scale: float
    positions: Tensor

    @classmethod
    def of(cls, module: embedding.Embedding) -> "Embedding":
        """The embedding of one side; the vectors of positions are zeros where nothing is added."""
        tokens = module.tokens.weight.detach()
        if module.positions is None:
            positions = tokens.new_zeros(1, 1).expand(module.num_positions, tokens.size(1))
        else:
            positions = module.positions(module.num_positions).detach()
        return cls(tokens, module.scale, positions)

    def __call__(self, ids: Tensor) -> Tensor:
        """Sentences (B, S) to (B, S, D)."""
        size, length = ids.shape
        tokens = self.tokens.index_select(0, ids.flatten()).view(size, length, -1)
        return torch.add(self.positions[:length], tokens, alpha=self.scale)


class Rotary(NamedTuple):
    """Complex numbers (positions, 1, d/2) that turn keys and queries by multiplication; None if nothing is turned."""

    table: Tensor | None

    @classmethod
    def of(cls, module: embedding.Embedding, config: ModelConfig) -> "Rotary":
        """The numbers of all positions of the module."""
        if config.positions != "rotary":
            return cls(None)
        table = torch.view_as_complex(rotations(module.num_positions, config.key_size).to(module.tokens.weight))
        filled_up = (head_width(config) - config.key_size) // 2  # columns that hold zeros
        return cls(F.pad(table, (0, filled_up), value=1)[:, None])

    def at(self, positions: int | Tensor) -> Tensor | None:
        """The numbers of one position, (1, d/2), or of the positions (R,), (R, 1, d/2)."""
        return None if self.table is None else self.table[positions]

    def of_sentences(self, size: int, length: int) -> Tensor | None:
        """The numbers of all tokens of `size` sentences, each of `length` tokens, (B * S, 1, d/2)."""
        return None if self.table is None else self.table[:length].repeat(size, 1, 1)


def head_width(config: ModelConfig) -> int:
    """d, the larger of d_k and d_v; even if positions are rotary, which turn pairs of columns."""
    width = max(config.key_size, config.value_size)
    return width + width % 2 if config.positions == "rotary" else width


class SelfAttention(NamedTuple):
    """The projection to keys, values and queries, in this order, each H * d wide; and that of what was attended to."""

    norm: Norm
    projection: Linear
    out: Linear

    @classmethod
    def of(cls, attn: MultiHeadAttention, residual: layers.Residual, config: ModelConfig) -> "SelfAttention":
        """Self-attention of a layer, its narrower heads filled up with zeros."""
        heads, width = attn.num_heads, head_width(config)
        k, v, q = Linear.of(attn.k_proj), Linear.of(attn.v_proj), _scaled_queries(attn)
        return cls(
            Norm.of(residual.norm, config.norm_order),
            Linear(
                torch.cat([_heads_widened(linear.weight, heads, width) for linear in (k, v, q)], dim=1),
                torch.cat([_heads_widened(linear.bias, heads, width) for linear in (k, v, q)]),
            ),
            Linear(_heads_widened(attn.out_proj.weight, heads, width).t().contiguous(), _bias(attn.out_proj)),
        )

    def project(self, x: Tensor, turns: Tensor | None, out: Tensor | None = None) -> Tensor:
        """Keys, values and queries of x (N, D), (3, N, H * d), written where `out` says.

        Keys and queries are turned, if positions are rotary: `turns` is (N or 1, 1, d/2).
        """
        projected = self.projection(x).unflatten(1, (3, -1)).transpose(0, 1)
        if out is not None:
            projected = out.copy_(projected)
        if turns is not None:
            pairs = projected[::2].unflatten(2, (-1, turns.size(-1), 2))  # (2, N, H, d/2, 2)
            torch.view_as_complex(pairs).mul_(turns)
        return projected


class CrossAttention(NamedTuple):
    """What a decoder layer does itself; keys and values of the source are in `memory`."""

    norm: Norm
    q: Linear
    out: Linear

    @classmethod
    def of(cls, attn: MultiHeadAttention, residual: layers.Residual, order: NormOrder) -> "CrossAttention":
        return cls(Norm.of(residual.norm, order), _scaled_queries(attn), Linear.of(attn.out_proj))


def _scaled_queries(attn: MultiHeadAttention) -> Linear:
    """The projection of queries with 1 / sqrt(d_k) multiplied in."""
    q, scale = Linear.of(attn.q_proj), math.sqrt(attn.q_proj.out_features // attn.num_heads)
    return Linear(q.weight / scale, q.bias / scale)


def _heads_widened(x: Tensor, heads: int, width: int) -> Tensor:
    """(.., H * narrow) to (.., H * width), each head filled up with zeros."""
    x = x.unflatten(-1, (heads, -1))
    return F.pad(x, (0, width - x.size(-1))).flatten(-2)


class FeedForward(NamedTuple):
    """The feed-forward network; if it has a gate, that is the first half of `linear_1`."""

    norm: Norm
    linear_1: Linear
    linear_2: Linear
    activation: Callable[[Tensor], Tensor]
    is_gated: bool

    @classmethod
    def of(cls, module: feed_forward.FeedForward, residual: layers.Residual, config: ModelConfig) -> "FeedForward":
        gates = [] if module.gate is None else [module.gate]
        linear_1, linear_2 = Linear.of(*gates, module.linear_1), Linear.of(module.linear_2)
        return cls(Norm.of(residual.norm, config.norm_order), linear_1, linear_2, module.activation, bool(gates))

    def __call__(self, x: Tensor) -> Tensor:
        """The whole sub-layer, (N, D) to (N, D), in place before a norm."""
        hidden = self.linear_1(self.norm.before(x))
        if self.is_gated:
            gate, hidden = hidden.chunk(2, dim=1)
            hidden = self.activation(gate) * hidden
        else:
            hidden = self.activation(hidden)
        return self.norm.after(self.linear_2.add_to(x, hidden))


class EncoderLayer(NamedTuple):
    """The sub-layers, in order."""

    self_attn: SelfAttention
    feed_forward: FeedForward

    @classmethod
    def of(cls, layer: layers.EncoderLayer, config: ModelConfig) -> "EncoderLayer":
        return cls(
            SelfAttention.of(layer.self_attn, layer.self_attn_residual, config),
            FeedForward.of(layer.feed_forward, layer.feed_forward_residual, config),
        )


class DecoderLayer(NamedTuple):
    """The sub-layers, in order."""

    self_attn: SelfAttention
    cross_attn: CrossAttention
    feed_forward: FeedForward

    @classmethod
    def of(cls, layer: layers.DecoderLayer, config: ModelConfig) -> "DecoderLayer":
        return cls(
            SelfAttention.of(layer.self_attn, layer.self_attn_residual, config),
            CrossAttention.of(layer.cross_attn, layer.cross_attn_residual, config.norm_order),
            FeedForward.of(layer.feed_forward, layer.feed_forward_residual, config),
        )
