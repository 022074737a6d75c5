"""The Transformer written out for decoding: what `encode` and `decode_step` compute, in fewer and larger operations.

`cache` says what decoding step by step means; here the same numbers come out several times faster. A decoding step is
a hundred small operations, so what costs time is their number, and memory that is moved:

* weights are prepared once: transposed, 1 / sqrt(d_k) multiplied into the queries', those of one input put together;
* the keys and values of a source exist once per sentence, and its hypotheses attend to them together;
* past keys of all layers lie in one tensor, first by position, and past values in another: a new position is written in
  place, and reordering is two operations.

Shapes as in `model`; K hypotheses per sentence, R = B * K rows, L decoder layers, T positions so far.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..model.attention import MultiHeadAttention
from ..model.feed_forward import FeedForward
from ..model.layers import DecoderLayer, EncoderLayer, Residual
from ..model.transformer import Transformer
from .search import SearchState

_MIN_KEYS = 16
"""Sources are given at least so many keys, masked ones if need be: torch's softmax over fewer is not vectorised."""
_ENCODED_TOGETHER = 64
"""Sources, neighbours in the batch, that are encoded at once."""
_FIRST_CAPACITY = 32
"""Target positions to make room for at first; doubled when they are full."""


class _Linear(NamedTuple):
    """x W + b, W stored as it is multiplied: a single row times it takes half the time."""

    weight: Tensor
    bias: Tensor | None

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """(N, in) to (N, out), written where `out` says."""
        if self.bias is None:
            return torch.mm(x, self.weight, out=out)
        return torch.addmm(self.bias, x, self.weight, out=out)


def _concatenated(*linears: nn.Linear) -> _Linear:
    """Several projections of one input as one."""
    biases = tuple(linear.bias for linear in linears if linear.bias is not None)
    weight = torch.cat(tuple(linear.weight for linear in linears)).t().contiguous()
    return _Linear(weight, torch.cat(biases) if biases else None)


class _Norm(NamedTuple):
    """LayerNorm, before or after a sub-layer."""

    weight: Tensor
    bias: Tensor
    eps: float
    pre_norm: bool

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)

    def before(self, x: Tensor) -> Tensor:
        """What the sub-layer reads."""
        return self(x) if self.pre_norm else x

    def after(self, x: Tensor) -> Tensor:
        """What the residual sum becomes."""
        return x if self.pre_norm else self(x)


def _norm(residual: Residual) -> _Norm:
    norm = residual.norm
    return _Norm(norm.weight, norm.bias, norm.eps, residual.pre_norm)


class _Attention(NamedTuple):
    norm: _Norm
    q: _Linear
    k: _Linear
    v: _Linear
    out: _Linear


class _FeedForward(NamedTuple):
    norm: _Norm
    linear_1: _Linear
    linear_2: _Linear
    activation: str

    def __call__(self, x: Tensor) -> Tensor:
        """The whole sub-layer, (N, D) to (N, D)."""
        hidden = self.linear_1(self.norm.before(x))
        if self.activation == "swiglu":
            gate, hidden = hidden.chunk(2, dim=1)
            hidden = F.silu(gate) * hidden
        else:
            hidden = F.gelu(hidden) if self.activation == "gelu" else hidden.relu_()
        return self.norm.after(x + self.linear_2(hidden))


def _attention(attn: MultiHeadAttention, residual: Residual) -> _Attention:
    scale = 1 / math.sqrt(attn.q_proj.out_features // attn.num_heads)
    q, *others = (_concatenated(linear) for linear in (attn.q_proj, attn.k_proj, attn.v_proj, attn.out_proj))
    scaled = _Linear(q.weight * scale, None if q.bias is None else q.bias * scale)
    return _Attention(_norm(residual), scaled, *others)


def _feed_forward(feed_forward: FeedForward, residual: Residual) -> _FeedForward:
    gates = [] if feed_forward.gate is None else [feed_forward.gate]
    return _FeedForward(
        _norm(residual),
        _concatenated(*gates, feed_forward.linear_1),
        _concatenated(feed_forward.linear_2),
        feed_forward.activation,
    )


class InferenceModel:
    """A Transformer arranged for decoding; a `Step` over the states that `encode` makes.

    Args:
        model: In evaluation mode. Its weights are read now: later changes to them are not seen.
        forbidden_ids: Tokens that are never to be generated: padding, bos, reserved pieces.
    """

    @torch.no_grad()
    def __init__(self, model: Transformer, forbidden_ids: Iterable[int] = ()) -> None:
        config = model.config
        self._pad_id = model.pad_id
        self._heads, self._d_k, self._d_v = config.num_heads, config.key_size, config.value_size
        self._src_embedding, self._tgt_tokens = model.src_embedding, model.tgt_embedding.tokens.weight
        self._tgt_scale = model.tgt_embedding.scale
        positions = model.tgt_embedding.positions
        zeros = self._tgt_tokens.new_zeros(config.max_seq_len, config.d_model)
        self._tgt_positions = zeros if positions is None else positions(0, config.max_seq_len)
        encoder_layers = [cast(EncoderLayer, layer) for layer in model.encoder.layers]
        decoder_layers = [cast(DecoderLayer, layer) for layer in model.decoder.layers]
        self._encoder = [
            (
                _attention(layer.self_attn, layer.self_attn_residual),
                _feed_forward(layer.feed_forward, layer.feed_forward_residual),
            )
            for layer in encoder_layers
        ]
        self._decoder = [
            (
                _attention(layer.self_attn, layer.self_attn_residual),
                _attention(layer.cross_attn, layer.cross_attn_residual),
                _feed_forward(layer.feed_forward, layer.feed_forward_residual),
            )
            for layer in decoder_layers
        ]
        self._encoder_norm, self._decoder_norm = model.encoder.norm, model.decoder.norm
        self._memory_keys = _concatenated(*(layer.cross_attn.k_proj for layer in decoder_layers))
        self._memory_values = _concatenated(*(layer.cross_attn.v_proj for layer in decoder_layers))
        self._output_layer = _concatenated(model.output_layer)
        self._forbidden = torch.tensor(sorted(set(forbidden_ids)), dtype=torch.long, device=zeros.device)

    def encode(self, src: Tensor) -> "InferenceState":
        """Encodes sources (B, S) and projects the memory for every decoder layer.

        Neighbours are encoded together, so that sources in order of length need little padding.
        """
        size, width = src.size(0), self._tgt_tokens.size(1)
        mask = F.pad(src != self._pad_id, (0, max(_MIN_KEYS - src.size(1), 0)))  # (B, S)
        bias = torch.zeros_like(mask, dtype=self._tgt_tokens.dtype).masked_fill_(~mask, float("-inf"))
        memory = self._tgt_tokens.new_zeros(*mask.shape, width)
        for start in range(0, size, _ENCODED_TOGETHER):
            group = slice(start, start + _ENCODED_TOGETHER)
            longest = int(mask[group].sum(dim=1).max())
            memory[group, :longest] = self._encode(src[group, :longest], bias[group, : max(longest, _MIN_KEYS)])
        memory, layers = memory.view(-1, width), len(self._decoder)
        keys = self._memory_keys(memory).view(size, -1, layers, self._heads, self._d_k)
        values = self._memory_values(memory).view(size, -1, layers, self._heads, self._d_v)
        return InferenceState(
            keys.permute(2, 0, 3, 4, 1).contiguous(),
            values.permute(2, 0, 3, 1, 4).contiguous(),
            bias[:, None].repeat(1, self._heads, 1),
        )

    def _encode(self, src: Tensor, bias: Tensor) -> Tensor:
        """Encodes src (B, S) to (B, S, D); bias (B, S or more) is -inf at padding."""
        x = self._src_embedding(src)
        shape, x = x.shape, x.flatten(0, 1)
        for attn, feed_forward in self._encoder:
            x = attn.norm.after(x + self._attend_to_source(attn, attn.norm.before(x), bias))
            x = feed_forward(x)
        return self._encoder_norm(x).view(shape)

    def _attend_to_source(self, attn: _Attention, x: Tensor, bias: Tensor) -> Tensor:
        """Encoder self-attention: x (B * S, D), bias (B, S + padding)."""
        size, keys = bias.shape
        q, k, v = (
            linear(x).view(size, -1, self._heads, width)
            for linear, width in ((attn.q, self._d_k), (attn.k, self._d_k), (attn.v, self._d_v))
        )
        missing = keys - q.size(1)
        if missing:
            k, v = F.pad(k, (0, 0, 0, 0, 0, missing)), F.pad(v, (0, 0, 0, 0, 0, missing))
        scores = q.transpose(1, 2) @ k.permute(0, 2, 3, 1)  # (B, H, S, S + padding)
        heads = scores.add_(bias[:, None, None]).softmax(dim=-1) @ v.transpose(1, 2)
        return attn.out(heads.transpose(1, 2).reshape(len(x), -1))

    def __call__(self, last: Tensor, position: int, state: SearchState) -> Tensor:
        """Takes the newest tokens (R,), standing at `position`; returns logits (R, V)."""
        assert isinstance(state, InferenceState)
        y = torch.add(self._tgt_positions[position], F.embedding(last, self._tgt_tokens), alpha=self._tgt_scale)
        past = state.next_position()
        for i, (self_attn, cross_attn, feed_forward) in enumerate(self._decoder):
            new = self_attn.norm.before(y)
            y = self_attn.norm.after(y + self._attend_to_past(self_attn, new, *past[i]))
            new = cross_attn.norm.before(y)
            y = cross_attn.norm.after(y + self._attend_to_memory(cross_attn, new, state.src_bias, *state.memory[i]))
            y = feed_forward(y)
        return self._output_layer(self._decoder_norm(y)).index_fill_(1, self._forbidden, float("-inf"))

    def _attend_to_past(self, attn: _Attention, y: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Decoder self-attention of y (R, D), whose keys and values become the newest of the past ones, (T, R, H, d).

        One query per row: a matrix product would be a row of dot products, which are quicker said so.
        """
        attn.k(y, out=keys[-1].flatten(1))
        attn.v(y, out=values[-1].flatten(1))
        q = attn.q(y).view(keys.shape[1:])
        weights = (q * keys).sum(dim=3).softmax(dim=0)  # (T, R, H)
        heads = (weights.unsqueeze(3) * values).sum(dim=0)  # (R, H, d_v)
        return attn.out(heads.flatten(1))

    def _attend_to_memory(self, attn: _Attention, y: Tensor, bias: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Cross-attention of y (R, D): the K hypotheses of a sentence are as many queries of its memory.

        Keys are (B * H, d_k, S), values (B * H, S, d_v), and bias (B * H, 1, S).
        """
        k = len(y) * self._heads // len(keys)
        q = attn.q(y).view(-1, k, self._heads, self._d_k).transpose(1, 2).reshape(-1, k, self._d_k)
        heads = torch.baddbmm(bias, q, keys).softmax(dim=-1) @ values  # (B * H, K, d_v)
        return attn.out(heads.view(-1, self._heads, k, self._d_v).transpose(1, 2).reshape(len(y), -1))


class InferenceState:
    """What decoding step by step keeps of one batch; a `SearchState`.

    Args:
        keys: Of the memory, for all decoder layers, (L, B, H, d_k, S).
        values: (L, B, H, S, d_v).
        src_bias: (B, H, S), 0 where attending is allowed and -inf where not.
    """

    def __init__(self, keys: Tensor, values: Tensor, src_bias: Tensor) -> None:
        layers, size, heads, d_k, _ = keys.shape
        self._keys, self._values, self._bias = keys, values, src_bias
        self._past_keys = keys.new_empty(_FIRST_CAPACITY, layers, size, heads, d_k)
        self._past_values = keys.new_empty(_FIRST_CAPACITY, layers, size, heads, values.size(4))
        self._length = 0
        self._view_memory()

    def _view_memory(self) -> None:
        keys, values = self._keys.flatten(1, 2), self._values.flatten(1, 2)
        self.memory = list(zip(keys.unbind(), values.unbind(), strict=True))
        """For each layer keys (B * H, d_k, S) and values (B * H, S, d_v)."""
        self.src_bias = self._bias.flatten(0, 1).unsqueeze(1)
        """(B * H, 1, S)."""

    def next_position(self) -> list[tuple[Tensor, Tensor]]:
        """Makes room for one more position.

        Returns:
            For each layer past keys (T, R, H, d_k) and values (T, R, H, d_v), the last of which are to be written.
        """
        if self._length == len(self._past_keys):
            self._past_keys = torch.cat([self._past_keys, torch.empty_like(self._past_keys)])
            self._past_values = torch.cat([self._past_values, torch.empty_like(self._past_values)])
        self._length += 1
        keys, values = self._past_keys[: self._length], self._past_values[: self._length]
        return list(zip(keys.unbind(1), values.unbind(1), strict=True))

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Row i continues what row `rows[i]` has generated, sentence j what sentence `sentences[j]` was."""
        if sentences is not None:
            self._keys = self._keys.index_select(1, sentences)
            self._values = self._values.index_select(1, sentences)
            self._bias = self._bias.index_select(0, sentences)
            self._view_memory()
        self._past_keys = _rows_of(self._past_keys, rows, self._length)
        self._past_values = _rows_of(self._past_values, rows, self._length)


def _rows_of(past: Tensor, rows: Tensor, length: int) -> Tensor:
    """The rows (dimension 2) of `length` positions, with room for as many as `past` has."""
    moved = past.new_empty(*past.shape[:2], len(rows), *past.shape[3:])
    torch.index_select(past[:length], 2, rows, out=moved[:length])
    return moved
