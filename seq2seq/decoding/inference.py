"""The Transformer written out for decoding: what `encode` and `decode_step` compute, in fewer and larger operations.

`cache` says what decoding step by step means; here the same numbers come out several times faster. A decoding step is
a hundred small operations, so what costs time is their number, and memory that is moved:

* weights are prepared once: transposed, 1 / sqrt(d_k) multiplied into the queries', those of one input put together;
* the keys and values of a source exist once per sentence, and its hypotheses attend to them together;
* past keys and values of all layers lie in one tensor, first by position: keys, values and queries of a new position
  are one product, written in place, and reordering is one operation;
* for a short source that is alone, where the number of operations is all that counts, the projections before and
  after cross-attention are multiplied into its keys and values.

Shapes as in `model`; K hypotheses per sentence, R = B * K rows, L decoder layers, T positions so far; d is the larger
of d_k and d_v, with zeros to fill up the other.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..model.attention import MultiHeadAttention
from ..model.embedding import Embedding
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
    bias: Tensor

    def __call__(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """(N, in) to (N, out), written where `out` says."""
        return torch.addmm(self.bias, x, self.weight, out=out)

    def add_to(self, residual: Tensor, x: Tensor) -> Tensor:
        """The residual sum, in place: (N, out) and x (N, in) to (N, out)."""
        return residual.addmm_(x, self.weight).add_(self.bias)


def _bias(linear: nn.Linear) -> Tensor:
    """Its bias, zeros if it has none."""
    return linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias.detach()


def _concatenated(*linears: nn.Linear) -> _Linear:
    """Several projections of one input as one."""
    weight = torch.cat([linear.weight for linear in linears]).t().contiguous()
    return _Linear(weight, torch.cat([_bias(linear) for linear in linears]))


class _Norm(NamedTuple):
    """LayerNorm, before or after a sub-layer."""

    shape: tuple[int, ...]
    weight: Tensor
    bias: Tensor
    eps: float
    pre_norm: bool

    def __call__(self, x: Tensor) -> Tensor:
        return torch.layer_norm(x, self.shape, self.weight, self.bias, self.eps)

    def before(self, x: Tensor) -> Tensor:
        """What the sub-layer reads."""
        return self(x) if self.pre_norm else x

    def after(self, x: Tensor) -> Tensor:
        """What the residual sum becomes."""
        return x if self.pre_norm else self(x)


def _norm(norm: nn.LayerNorm, pre_norm: bool) -> _Norm:
    return _Norm(norm.normalized_shape, norm.weight.detach(), norm.bias.detach(), norm.eps, pre_norm)


def _final_norm(norm: nn.Module) -> _Norm | None:
    """What a stack of layers ends in; None for post-norm layers, which need nothing more."""
    return _norm(norm, pre_norm=True) if isinstance(norm, nn.LayerNorm) else None


class _Embedding(NamedTuple):
    """Vectors of tokens (V, D), to be multiplied by `scale`, and of positions (max_seq_len, D)."""

    tokens: Tensor
    scale: float
    positions: Tensor

    def __call__(self, ids: Tensor) -> Tensor:
        """Sentences (B, S) to (B, S, D)."""
        size, length = ids.shape
        tokens = self.tokens.index_select(0, ids.flatten()).view(size, length, -1)
        return torch.add(self.positions[:length], tokens, alpha=self.scale)


def _embedding(embedding: Embedding) -> _Embedding:
    tokens, length = embedding.tokens.weight.detach(), embedding.max_seq_len
    positions = embedding.positions
    none = tokens.new_zeros(1, 1).expand(length, tokens.size(1))
    return _Embedding(tokens, embedding.scale, none if positions is None else positions(0, length).detach())


class _SelfAttention(NamedTuple):
    """Weights (3, D, H * d) and biases (3, 1, H * d) of keys, values and queries, in this order."""

    norm: _Norm
    weight: Tensor
    bias: Tensor
    out: _Linear

    def project(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """Keys, values and queries of x (N, D), (3, N, H * d), written where `out` says."""
        return torch.baddbmm(self.bias, x.expand(3, -1, -1), self.weight, out=out)


class _CrossAttention(NamedTuple):
    norm: _Norm
    q: _Linear
    out: _Linear


class _FeedForward(NamedTuple):
    norm: _Norm
    linear_1: _Linear
    linear_2: _Linear
    activation: str

    def __call__(self, x: Tensor) -> Tensor:
        """The whole sub-layer, (N, D) to (N, D), in place before a norm."""
        hidden = self.linear_1(self.norm.before(x))
        if self.activation == "swiglu":
            gate, hidden = hidden.chunk(2, dim=1)
            hidden = F.silu(gate) * hidden
        else:
            hidden = F.gelu(hidden) if self.activation == "gelu" else hidden.relu_()
        return self.norm.after(self.linear_2.add_to(x, hidden))


_LayerMemory = tuple[Tensor, Tensor, Tensor]
"""What cross-attention of one layer reads: keys, values, and what is added to the scores."""


def _heads_widened(x: Tensor, heads: int, width: int) -> Tensor:
    """(.., H * narrow) to (.., H * width), each head filled up with zeros."""
    x = x.unflatten(-1, (heads, -1))
    return F.pad(x, (0, width - x.size(-1))).flatten(-2)


def _scaled_queries(attn: MultiHeadAttention) -> _Linear:
    """The projection of queries with 1 / sqrt(d_k) multiplied in."""
    q, scale = _concatenated(attn.q_proj), math.sqrt(attn.q_proj.out_features // attn.num_heads)
    return _Linear(q.weight / scale, q.bias / scale)


def _self_attention(attn: MultiHeadAttention, residual: Residual) -> _SelfAttention:
    heads = attn.num_heads
    width = max(attn.q_proj.out_features, attn.v_proj.out_features) // heads
    k, v, q = _concatenated(attn.k_proj), _concatenated(attn.v_proj), _scaled_queries(attn)
    return _SelfAttention(
        _norm(residual.norm, residual.pre_norm),
        torch.stack([_heads_widened(linear.weight, heads, width) for linear in (k, v, q)]),
        torch.stack([_heads_widened(linear.bias[None], heads, width) for linear in (k, v, q)]),
        _Linear(_heads_widened(attn.out_proj.weight, heads, width).t().contiguous(), _bias(attn.out_proj)),
    )


def _cross_attention(attn: MultiHeadAttention, residual: Residual) -> _CrossAttention:
    norm = _norm(residual.norm, residual.pre_norm)
    return _CrossAttention(norm, _scaled_queries(attn), _concatenated(attn.out_proj))


def _feed_forward(feed_forward: FeedForward, residual: Residual) -> _FeedForward:
    gates = [] if feed_forward.gate is None else [feed_forward.gate]
    return _FeedForward(
        _norm(residual.norm, residual.pre_norm),
        _concatenated(*gates, feed_forward.linear_1),
        _concatenated(feed_forward.linear_2),
        feed_forward.activation,
    )


class _Folding(NamedTuple):
    """What the memory's keys and values are multiplied by, for all heads of all decoder layers, see `_encode_alone`.

    The queries' weights (L * H, d_k, D) and biases (L * H, d_k, 1), the output projection's weights (L * H, d_v, D),
    and the part of its bias that is a head's, (L * H, 1, D).
    """

    q_weight: Tensor
    q_bias: Tensor
    out_weight: Tensor
    out_bias: Tensor


def _folding(layers: Sequence[_CrossAttention], heads: int) -> _Folding:
    q_weight = torch.stack([attn.q.weight.t() for attn in layers])  # (L, H * d_k, D)
    out_weight = torch.stack([attn.out.weight for attn in layers])  # (L, H * d_v, D)
    out_bias = torch.stack([attn.out.bias for attn in layers]).repeat_interleave(heads, dim=0)  # (L * H, D)
    return _Folding(
        q_weight.view(len(layers) * heads, -1, q_weight.size(2)),
        torch.stack([attn.q.bias for attn in layers]).view(len(layers) * heads, -1, 1),
        out_weight.view(len(layers) * heads, -1, out_weight.size(2)),
        out_bias[:, None] / heads,
    )


class InferenceModel:
    """A Transformer arranged for decoding; a `Step` over the states that `encode` makes.

    Args:
        model: In evaluation mode. When its weights change, make a new one: some are copied here, some are shared.
        forbidden_ids: Tokens that are never to be generated: padding, bos, reserved pieces.
    """

    @torch.no_grad()
    def __init__(self, model: Transformer, forbidden_ids: Iterable[int] = ()) -> None:
        config = model.config
        self._pad_id = model.pad_id
        self._heads, self._d_k, self._d_v = config.num_heads, config.key_size, config.value_size
        self._src_embedding, self._tgt_embedding = _embedding(model.src_embedding), _embedding(model.tgt_embedding)
        self._tgt_positions = self._tgt_embedding.positions.unbind()
        encoder_layers = [cast(EncoderLayer, layer) for layer in model.encoder.layers]
        decoder_layers = [cast(DecoderLayer, layer) for layer in model.decoder.layers]
        self._encoder = [
            (
                _self_attention(layer.self_attn, layer.self_attn_residual),
                _feed_forward(layer.feed_forward, layer.feed_forward_residual),
            )
            for layer in encoder_layers
        ]
        self._decoder = [
            (
                _self_attention(layer.self_attn, layer.self_attn_residual),
                _cross_attention(layer.cross_attn, layer.cross_attn_residual),
                _feed_forward(layer.feed_forward, layer.feed_forward_residual),
            )
            for layer in decoder_layers
        ]
        self._encoder_norm, self._decoder_norm = _final_norm(model.encoder.norm), _final_norm(model.decoder.norm)
        self._memory_keys = _concatenated(*(layer.cross_attn.k_proj for layer in decoder_layers))
        self._memory_values = _concatenated(*(layer.cross_attn.v_proj for layer in decoder_layers))
        # Folded, a source of S tokens is 2 H S D numbers for a layer; keys, values and two matrices are 2 D (S + D).
        self._longest_to_fold = config.d_model // max(config.num_heads - 1, 1)
        self._folding = _folding([cross_attn for _, cross_attn, _ in self._decoder], self._heads)
        output_layer = _concatenated(model.output_layer)
        forbidden = torch.tensor(sorted(set(forbidden_ids)), dtype=torch.long, device=output_layer.bias.device)
        self._output_layer = output_layer._replace(bias=output_layer.bias.index_fill(0, forbidden, float("-inf")))

    def encode(self, src: Tensor) -> "InferenceState":
        """Encodes sources (B, S) and projects the memory for every decoder layer.

        Neighbours are encoded together, so that sources in order of length need little padding.

        Raises:
            ValueError: A source is longer than `max_seq_len`.
        """
        size, length = src.shape
        if length > len(self._tgt_positions):
            raise ValueError(f"sequence of {length} tokens, but max_seq_len is {len(self._tgt_positions)}")
        if size == 1 and length <= self._longest_to_fold and bool((src != self._pad_id).all()):
            return self._encode_alone(src)
        mask = F.pad(src != self._pad_id, (0, max(_MIN_KEYS - length, 0)))  # (B, S)
        tokens = self._src_embedding.tokens
        bias = tokens.new_zeros(mask.shape).masked_fill_(~mask, float("-inf"))
        memory = tokens.new_zeros(*mask.shape, tokens.size(1))
        for start in range(0, size, _ENCODED_TOGETHER):
            group = slice(start, start + _ENCODED_TOGETHER)
            longest = int(mask[group].sum(dim=1).max())
            encoded = self._encode(src[group, :longest], bias[group, : max(longest, _MIN_KEYS)])
            memory[group, :longest] = encoded.view(-1, longest, memory.size(2))
        memory, layers = memory.flatten(0, 1), len(self._decoder)
        keys = self._memory_keys(memory).view(size, -1, layers, self._heads, self._d_k).permute(2, 0, 3, 4, 1)
        values = self._memory_values(memory).view(size, -1, layers, self._heads, self._d_v).permute(2, 0, 3, 1, 4)
        bias = bias[:, None, None].expand(layers, -1, self._heads, -1, -1)  # (L, B, H, 1, S)
        return InferenceState(self._room(size), (keys.contiguous(), values.contiguous(), bias.contiguous()))

    def _encode_alone(self, src: Tensor) -> "InferenceState":
        """Encodes one source without padding, (1, S), and folds projections of cross-attention into the memory.

        For a head, (x W_q + b_q) k^T = x (W_q k^T) + b_q k^T are the scores, and it adds weights (v W_o) to the output;
        b_o is added to the values of all heads in equal parts, as weights sum to 1. Keys and values become as wide as
        the model, which for a short source is no more to read, and a decoding step does with half of the operations.
        """
        memory, layers = self._encode(src, None), len(self._decoder)
        keys = self._memory_keys(memory).unflatten(1, (-1, self._d_k)).transpose(0, 1)  # (L * H, S, d_k)
        values = self._memory_values(memory).unflatten(1, (-1, self._d_v)).transpose(0, 1)  # (L * H, S, d_v)
        folding = self._folding
        folded = (
            torch.bmm(keys, folding.q_weight).view(layers, -1, memory.size(1)).transpose(1, 2),
            torch.baddbmm(folding.out_bias, values, folding.out_weight).view(layers, -1, memory.size(1)),
            torch.bmm(keys, folding.q_bias).view(layers, -1),
        )
        keys, values, bias = (tensor.unbind() for tensor in folded)
        return InferenceState(self._room(1), folded=list(zip(keys, values, bias, strict=True)))

    def _room(self, size: int) -> Tensor:
        """Where an `InferenceState` is to keep past keys and values of so many sentences."""
        planes = 2 * len(self._decoder) * _FIRST_CAPACITY + 1
        return self._memory_keys.weight.new_empty(planes, size, self._heads, max(self._d_k, self._d_v))

    def _encode(self, src: Tensor, bias: Tensor | None) -> Tensor:
        """Encodes src (B, S) to (B * S, D); bias (B, S or more) is -inf at padding, if there is any."""
        x = self._src_embedding(src).flatten(0, 1)
        for attn, feed_forward in self._encoder:
            heads = self._attend_to_source(attn, attn.norm.before(x), src.size(0), bias)
            x = attn.norm.after(attn.out.add_to(x, heads))
            x = feed_forward(x)
        return x if self._encoder_norm is None else self._encoder_norm(x)

    def _attend_to_source(self, attn: _SelfAttention, x: Tensor, size: int, bias: Tensor | None) -> Tensor:
        """Encoder self-attention: x (B * S, D), bias (B, S or more), to (B * S, H * d)."""
        projected = attn.project(x).view(3, size, -1, self._heads, attn.weight.size(2) // self._heads)
        k, v, q = projected.transpose(2, 3).unbind()  # (B, H, S, d) each
        if bias is None:
            weights = (q @ k.transpose(2, 3)).softmax(dim=-1)
        else:
            missing = bias.size(1) - q.size(2)
            if missing:
                k, v = F.pad(k, (0, 0, 0, missing)), F.pad(v, (0, 0, 0, missing))
            weights = (q @ k.transpose(2, 3)).add_(bias[:, None, None]).softmax(dim=-1)  # (B, H, S, S or more)
        return (weights @ v).transpose(1, 2).reshape(x.size(0), -1)

    def __call__(self, last: Tensor, position: int, state: SearchState) -> Tensor:
        """Takes the newest tokens (R,), standing at `position`; returns logits (R, V), for use until the next step."""
        assert isinstance(state, InferenceState)
        tokens = self._tgt_embedding.tokens.index_select(0, last)
        y = torch.add(self._tgt_positions[position], tokens, alpha=self._tgt_embedding.scale)
        attend_to_memory = self._attend_to_folded_memory if state.is_folded else self._attend_to_memory
        newest, queries, keys, values = state.next_position()
        for i, (self_attn, cross_attn, feed_forward) in enumerate(self._decoder):
            self_attn.project(self_attn.norm.before(y), out=newest[i])
            heads = _attend_to_past(queries[i], keys[i], values[i])
            y = self_attn.norm.after(self_attn.out.add_to(y, heads))
            y = cross_attn.norm.after(attend_to_memory(cross_attn, y, state.memory[i]))
            y = feed_forward(y)
        y = y if self._decoder_norm is None else self._decoder_norm(y)
        return self._output_layer(y, out=state.room_for_logits(y.size(0), self._output_layer.bias.size(0)))

    def _attend_to_memory(self, attn: _CrossAttention, y: Tensor, memory: _LayerMemory) -> Tensor:
        """Adds cross-attention to y (R, D), in place: the K hypotheses of a sentence are as many queries of its memory.

        Keys are (B * H, d_k, S), values (B * H, S, d_v), and bias (B * H, 1, S).
        """
        keys, values, bias = memory
        rows = y.size(0)
        k = rows * self._heads // keys.size(0)
        q = attn.q(attn.norm.before(y)).view(-1, k, self._heads, self._d_k).transpose(1, 2).reshape(-1, k, self._d_k)
        heads = torch.baddbmm(bias, q, keys).softmax(dim=-1) @ values  # (B * H, K, d_v)
        return attn.out.add_to(y, heads.view(-1, self._heads, k, self._d_v).transpose(1, 2).reshape(rows, -1))

    def _attend_to_folded_memory(self, attn: _CrossAttention, y: Tensor, memory: _LayerMemory) -> Tensor:
        """The same where all rows are of one source: keys (D, H * S), values (H * S, D) and bias (H * S)."""
        keys, values, bias = memory
        scores = torch.addmm(bias, attn.norm.before(y), keys)  # (R, H * S)
        weights = scores.view(y.size(0), self._heads, -1).softmax(dim=-1)
        return y.addmm_(weights.view(scores.shape), values)


def _attend_to_past(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Decoder self-attention of q (R, H, d) to keys and values (T, R, H, d), which gives (R, H * d).

    With one query per row, multiplying and summing element by element is faster than a matrix product.
    """
    weights = (q * keys).sum(dim=3, keepdim=True).softmax(dim=0)  # (T, R, H, 1)
    return (weights * values).sum(dim=0).flatten(1)


class InferenceState:
    """What decoding step by step keeps of one batch; a `SearchState`.

    Args:
        past: Where past keys and values are to be written, (2 * L * positions + 1, R, H, d), see `next_position`.
        memory: For all decoder layers keys (L, B, H, d_k, S) and values (L, B, H, S, d_v) of the memory, and what is
            added to the scores, 0 where attending is allowed and -inf where not, (L, B, H, 1, S).
        folded: Instead, for a single source, what `_attend_to_folded_memory` reads for each layer.
    """

    def __init__(
        self,
        past: Tensor,
        memory: tuple[Tensor, Tensor, Tensor] | None = None,
        folded: list[_LayerMemory] | None = None,
    ) -> None:
        self.is_folded = folded is not None
        self.memory: list[_LayerMemory] = folded or []
        """For each layer; if not folded, keys (B * H, d_k, S), values (B * H, S, d_v) and bias (B * H, 1, S)."""
        self._past, self._length = past, 0
        # Large tensors that come and go cost as much time as what is written to them.
        self._former_past = self._logits = past.new_empty(0)
        self._all_memory = memory
        self._view_memory()
        self._planes_per_position = 2 * len(self.memory)  # of a position: keys and values for each layer

    def _view_memory(self) -> None:
        if self._all_memory is not None:
            keys, values, bias = (tensor.flatten(1, 2).unbind() for tensor in self._all_memory)
            self.memory = list(zip(keys, values, bias, strict=True))

    def room_for_logits(self, rows: int, vocabulary: int) -> Tensor:
        """The tensor (R, V) to write logits to, over those of an earlier step."""
        if self._logits.numel() < rows * vocabulary:
            self._logits = self._logits.new_empty(rows * vocabulary)
        return self._logits[: rows * vocabulary].view(rows, vocabulary)

    def next_position(self) -> tuple[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]]:
        """Makes room for one more position.

        Past keys and values are planes (R, H, d) of one tensor: keys and values of the first layer, of the second, ..
        at the first position, then the same at the second. A layer's queries are written where the next layer's keys
        will be: so keys, values and queries are neighbours, and the result of one product.

        Returns:
            For each layer where its keys, values and queries (3, R, H * d) are to be written; then, to be read,
            the queries (R, H, d), past keys (T, R, H, d) and past values (T, R, H, d).
        """
        start = self._length * self._planes_per_position
        end = start + self._planes_per_position
        if start + 1 == self._past.size(0):
            self._past = torch.cat([self._past, torch.empty_like(self._past[1:])])
        self._length += 1
        newest = self._past[start : end + 1]
        past = self._past[:end].view(self._length, self._planes_per_position, *self._past.shape[1:]).unbind(1)
        _, rows, heads, width = newest.shape
        plane = rows * heads * width
        overlapping = ((self._planes_per_position // 2, 3, rows, heads * width), (2 * plane, plane, heads * width, 1))
        return newest.as_strided(*overlapping).unbind(), newest[2::2].unbind(), past[0::2], past[1::2]

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Row i continues what row `rows[i]` has generated, sentence j what sentence `sentences[j]` was."""
        if sentences is not None and self._all_memory is not None:
            keys, values, bias = self._all_memory
            self._all_memory = (
                keys.index_select(1, sentences),
                values.index_select(1, sentences),
                bias.index_select(1, sentences),
            )
            self._view_memory()
        shape = (self._past.size(0), rows.size(0), *self._past.shape[2:])
        size, written = math.prod(shape), self._length * self._planes_per_position
        if self._former_past.numel() < size:
            self._former_past = self._past.new_empty(size)
        moved = self._former_past[:size].view(shape)
        torch.index_select(self._past[:written], 1, rows, out=moved[:written])
        self._past, self._former_past = moved, self._past.view(-1)
