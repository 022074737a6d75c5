"""The whole model: encodes sources, then takes one token after the other."""

from collections.abc import Iterable

import torch
from torch import Tensor

from ...model.encoder_decoder import Transformer
from ..search import SearchState
from .decoder import Decoder
from .encoder import Encoder
from .memory import MemoryProjections
from .state import FastState, Past
from .weights import Embedding, Linear, head_width


class FastTransformer:
    """A Transformer arranged for decoding; a `Step` over the states that `encode` makes.

    Args:
        model: In evaluation mode. When its weights change, make a new one: some are copied here, some are shared.
        forbidden_ids: Tokens that are never to be generated: padding, bos, reserved pieces.

    Raises:
        NotImplementedError: The configuration has a value that is not known here.
    """

    @torch.no_grad()
    def __init__(self, model: Transformer, forbidden_ids: Iterable[int] = ()) -> None:
        config = model.config
        self._pad_id, self._max_seq_len = model.pad_id, config.max_seq_len
        self._heads, self._width = config.num_heads, head_width(config)
        self._encoder, self._decoder = Encoder(model), Decoder(model)
        self._projections = MemoryProjections(model, [layer.cross_attn for layer in self._decoder.layers])
        self._embedding = Embedding.of(model.tgt_embedding, config.positions)
        self._positions = self._embedding.positions.unbind()
        output_layer = Linear.of(model.output_layer)
        forbidden = torch.tensor(sorted(set(forbidden_ids)), dtype=torch.long, device=output_layer.bias.device)
        self._output_layer = output_layer._replace(bias=output_layer.bias.index_fill(0, forbidden, float("-inf")))

    def encode(self, src: Tensor) -> FastState:
        """Encodes sources (B, S) and projects the memory for every decoder layer.

        Raises:
            ValueError: A source is longer than `max_seq_len`.
        """
        size, length = src.shape
        if length > self._max_seq_len:
            raise ValueError(f"sequence of {length} tokens, but max_seq_len is {self._max_seq_len}")
        if size == 1 and length <= self._projections.longest_to_fold and bool((src != self._pad_id).all()):
            memory = self._projections.fold(self._encoder.encode_alone(src))
        else:
            memory = self._projections.project(*self._encoder.encode(src))
        past = Past(size, len(self._decoder.layers), self._heads, self._width, like=self._embedding.tokens)
        return FastState(memory, past)

    def __call__(self, last: Tensor, position: int, state: SearchState) -> Tensor:
        """Takes the newest tokens (R,), standing at `position`; returns logits (R, V), for use until the next step."""
        assert isinstance(state, FastState)
        tokens = self._embedding.tokens.index_select(0, last)
        y = torch.add(self._positions[position], tokens, alpha=self._embedding.scale)
        y = self._decoder(y, position, state.past, state.memory)
        return self._output_layer(y, out=state.room_for_logits(y.size(0), self._output_layer.bias.size(0), like=y))
