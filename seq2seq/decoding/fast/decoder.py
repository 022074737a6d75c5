"""The decoder: the newest position of all rows through all layers."""

from typing import cast

from torch import Tensor

from ...model import layers
from ...model.encoder_decoder import Transformer
from .memory import Memory
from .state import Past
from .weights import DecoderLayer, Rotary, final_norm


class Decoder:
    """The decoder layers.

    Args:
        model: The model.
    """

    def __init__(self, model: Transformer) -> None:
        config = model.config
        self.layers = [DecoderLayer.of(cast(layers.DecoderLayer, layer), config) for layer in model.decoder.layers]
        self._norm = final_norm(model.decoder.norm, config.norm_order)
        self._rotary = Rotary.of(model.tgt_embedding, config)

    def __call__(self, y: Tensor, position: int, past: Past, memory: Memory) -> Tensor:
        """Embedded tokens (R, D), which stand at `position`, to hidden states (R, D).

        Their keys and values are added to the past.
        """
        turns = self._rotary.at(position)
        newest, queries, keys, values = past.next_position()
        for i, (self_attn, cross_attn, feed_forward) in enumerate(self.layers):
            self_attn.project(self_attn.norm.before(y), turns, out=newest[i])
            heads = attend_to_past(queries[i], keys[i], values[i])
            y = self_attn.norm.after(self_attn.out.add_to(y, heads))
            y = cross_attn.norm.after(memory.attend(i, cross_attn, y))
            y = feed_forward(y)
        return y if self._norm is None else self._norm(y)


def attend_to_past(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Self-attention of q (R, H, d) to keys and values (T, R, H, d), which gives (R, H * d).

    With one query per row, multiplying and summing element by element is faster than a matrix product.
    """
    weights = (q * keys).sum(dim=3, keepdim=True).softmax(dim=0)  # (T, R, H, 1)
    return (weights * values).sum(dim=0).flatten(1)
