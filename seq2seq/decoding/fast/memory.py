"""What cross-attention reads: keys and values of the encoded sources, for all decoder layers, once per sentence.

`MemoryProjections` makes a memory, of either kind: `PlainMemory`, or `FoldedMemory` for a short source that is alone.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

import torch
from torch import Tensor

from ...model.encoder_decoder import Transformer
from ...model.layers import DecoderLayer
from .weights import CrossAttention, Linear


class Memory(Protocol):
    """Keys and values of the sources of a batch."""

    def attend(self, layer: int, attn: CrossAttention, y: Tensor) -> Tensor:
        """Adds cross-attention of one layer to y (R, D), in place; K rows for each sentence, side by side."""
        ...

    def select(self, sentences: Tensor) -> None:
        """Sentence j becomes what sentence `sentences[j]` was."""
        ...


_Attended = tuple[Tensor, Tensor, Tensor]
"""What a layer reads: keys, values, and what is added to the scores."""


class PlainMemory:
    """Keys (L, B, H, d_k, S) and values (L, B, H, S, d_v) as the formula has them.

    The bias (L, B, H, 1, S), added to the scores, is 0 where attending is allowed and -inf where not.
    """

    def __init__(self, keys: Tensor, values: Tensor, bias: Tensor) -> None:
        self._all = keys, values, bias
        self._layers = self._view_layers()

    def _view_layers(self) -> list[_Attended]:
        """For each layer keys (B * H, d_k, S), values (B * H, S, d_v) and bias (B * H, 1, S)."""
        keys, values, bias = (tensor.flatten(1, 2).unbind() for tensor in self._all)
        return list(zip(keys, values, bias, strict=True))

    def attend(self, layer: int, attn: CrossAttention, y: Tensor) -> Tensor:
        """See `Memory`. The K hypotheses of a sentence are as many queries of its keys."""
        keys, values, bias = self._layers[layer]
        rows, heads, d_k = y.size(0), self._all[0].size(2), keys.size(1)
        k = rows * heads // keys.size(0)
        q = attn.q(attn.norm.before(y)).view(-1, k, heads, d_k).transpose(1, 2).reshape(-1, k, d_k)
        attended = torch.baddbmm(bias, q, keys).softmax(dim=-1) @ values  # (B * H, K, d_v)
        return attn.out.add_to(y, attended.view(-1, heads, k, attended.size(2)).transpose(1, 2).reshape(rows, -1))

    def select(self, sentences: Tensor) -> None:
        """See `Memory`."""
        keys, values, bias = (tensor.index_select(1, sentences) for tensor in self._all)
        self._all = keys, values, bias
        self._layers = self._view_layers()


class FoldedMemory:
    """Keys and values of a single source, with the projections of queries and outputs multiplied into them.

    For a head, (x W_q + b_q) k^T = x (W_q k^T) + b_q k^T are the scores, and it adds weights (v W_o) to the output;
    b_o is added to the values of all heads in equal parts, as weights sum to 1. Keys and values become as wide as
    the model, which for a short source is no more to read, and a decoding step does with half of the operations.

    Keys are (L, D, H * S), values (L, H * S, D), the bias (L, H * S).
    """

    def __init__(self, keys: Tensor, values: Tensor, bias: Tensor, heads: int) -> None:
        self._layers: list[_Attended] = list(zip(keys.unbind(), values.unbind(), bias.unbind(), strict=True))
        self._heads = heads

    def attend(self, layer: int, attn: CrossAttention, y: Tensor) -> Tensor:
        """See `Memory`. All rows are of the one source."""
        keys, values, bias = self._layers[layer]
        scores = torch.addmm(bias, attn.norm.before(y), keys)  # (R, H * S)
        weights = scores.view(y.size(0), self._heads, -1).softmax(dim=-1)
        return y.addmm_(weights.view(scores.shape), values)

    def select(self, sentences: Tensor) -> None:
        """Nothing changes: all sentences are the same."""


class _Folding(NamedTuple):
    """What keys and values are multiplied by, for all heads of all decoder layers, see `FoldedMemory`.

    The queries' weights (L * H, d_k, D) and biases (L * H, d_k, 1), the output projection's weights (L * H, d_v, D),
    and the part of its bias that is a head's, (L * H, 1, D).
    """

    q_weight: Tensor
    q_bias: Tensor
    out_weight: Tensor
    out_bias: Tensor

    @classmethod
    def of(cls, cross_attns: Sequence[CrossAttention], heads: int) -> "_Folding":
        count = len(cross_attns) * heads
        q_weight = torch.stack([attn.q.weight.t() for attn in cross_attns])  # (L, H * d_k, D)
        out_weight = torch.stack([attn.out.weight for attn in cross_attns])  # (L, H * d_v, D)
        out_bias = torch.stack([attn.out.bias for attn in cross_attns]).repeat_interleave(heads, dim=0)  # (L * H, D)
        return cls(
            q_weight.view(count, -1, q_weight.size(2)),
            torch.stack([attn.q.bias for attn in cross_attns]).view(count, -1, 1),
            out_weight.view(count, -1, out_weight.size(2)),
            out_bias[:, None] / heads,
        )


class MemoryProjections:
    """The projections of the memory to keys and values, of all decoder layers as one."""

    def __init__(self, model: Transformer, cross_attns: Sequence[CrossAttention]) -> None:
        config = model.config
        modules = [cast(DecoderLayer, layer).cross_attn for layer in model.decoder.layers]
        self._num_layers, self._heads = len(modules), config.num_heads
        self._d_k, self._d_v = config.key_size, config.value_size
        self._keys = Linear.of(*(attn.k_proj for attn in modules))
        self._values = Linear.of(*(attn.v_proj for attn in modules))
        self._folding = _Folding.of(cross_attns, self._heads)
        # Folded, a source of S tokens is 2 H S D numbers for a layer; keys, values and two matrices are 2 D (S + D).
        self.longest_to_fold = config.d_model // max(config.num_heads - 1, 1)

    def project(self, memory: Tensor, bias: Tensor) -> PlainMemory:
        """The memory (B, S, D) and what is added to the scores (B, S), as the decoder layers read them."""
        size, num_layers, heads = memory.size(0), self._num_layers, self._heads
        memory = memory.flatten(0, 1)
        keys = self._keys(memory).view(size, -1, num_layers, heads, self._d_k).permute(2, 0, 3, 4, 1)
        values = self._values(memory).view(size, -1, num_layers, heads, self._d_v).permute(2, 0, 3, 1, 4)
        bias = bias[:, None, None].expand(num_layers, -1, heads, -1, -1)  # (L, B, H, 1, S)
        return PlainMemory(keys.contiguous(), values.contiguous(), bias.contiguous())

    def fold(self, memory: Tensor) -> FoldedMemory:
        """The memory (S, D) of a single source without padding, of at most `longest_to_fold` tokens."""
        keys = self._keys(memory).unflatten(1, (-1, self._d_k)).transpose(0, 1)  # (L * H, S, d_k)
        values = self._values(memory).unflatten(1, (-1, self._d_v)).transpose(0, 1)  # (L * H, S, d_v)
        folding, num_layers = self._folding, self._num_layers
        return FoldedMemory(
            torch.bmm(keys, folding.q_weight).view(num_layers, -1, memory.size(1)).transpose(1, 2),
            torch.baddbmm(folding.out_bias, values, folding.out_weight).view(num_layers, -1, memory.size(1)),
            torch.bmm(keys, folding.q_bias).view(num_layers, -1),
            self._heads,
        )
