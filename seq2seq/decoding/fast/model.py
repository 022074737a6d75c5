"""An encoder-decoder arranged for decoding: encodes sources, then takes one token after the other."""

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor

from ...model import layers
from ...model.encoder_decoder import Transformer
from ...model.masks import PAD_ID
from ..search import SearchState
from .decoder import FastDecoder, attend_to_past
from .encoder import Encoder
from .memory import MemoryProjections
from .state import FastState
from .weights import DecoderLayer


class FastTransformer(FastDecoder):
    """A `Transformer`; a `Step` over the states that `encode` makes. Arguments: see `FastDecoder`."""

    @torch.no_grad()
    def __init__(self, model: Transformer, forbidden_ids: Iterable[int] = ()) -> None:
        super().__init__(model, model.tgt_embedding, forbidden_ids)
        self._encoder, self._positions = Encoder(model), self._embedding.positions.unbind()
        self._layers = [
            DecoderLayer.of(cast(layers.DecoderLayer, layer), model.config) for layer in model.decoder.layers
        ]
        self._projections = MemoryProjections(model, [layer.cross_attn for layer in self._layers])

    def encode(self, src: Tensor) -> FastState:
        """Encodes sources (B, S), which `max_seq_len` limits, and projects the memory for every decoder layer."""
        self._check(src)
        size, length = src.shape
        if size == 1 and length <= self._projections.longest_to_fold and bool((src != PAD_ID).all()):
            memory = self._projections.fold(self._encoder.encode_rows(src))
        else:
            memory = self._projections.project(*self._encoder.encode(src))
        return FastState(memory, self._past(size))

    def __call__(self, last: Tensor, position: int, state: SearchState) -> Tensor:
        """Takes the newest tokens (R,), standing at `position`; returns logits (R, V), for use until the next step."""
        assert isinstance(state, FastState)
        y, turns = self._embed(last, self._positions[position]), self._rotary.at(position)
        newest, queries, keys, values = state.past.next_position()
        for i, (self_attn, cross_attn, feed_forward) in enumerate(self._layers):
            self_attn.project(self_attn.norm.before(y), turns, out=newest[i])
            heads = attend_to_past(queries[i], keys[i], values[i])
            y = self_attn.norm.after(self_attn.out.add_to(y, heads))
            y = cross_attn.norm.after(state.memory.attend(i, cross_attn, y))
            y = feed_forward(y)
        return self._logits(y)
