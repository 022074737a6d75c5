"""What decoding step by step keeps: keys and values of earlier positions, and of the encoder output."""

from collections.abc import Iterable

import torch
from torch import Tensor

from ..model.attention import KeysValues
from ..model.transformer import Transformer
from .search import SearchState, Step


class LayerKeysValues:
    """The cache of one decoder layer.

    Args:
        memory: Keys (R, H, S, d_k) and values (R, H, S, d_v) of the encoder output, projected once per sentence.
    """

    def __init__(self, memory: KeysValues) -> None:
        self.memory = memory
        self.past: KeysValues | None = None

    def append(self, keys_values: KeysValues) -> KeysValues:
        """Adds the newest position, (R, H, 1, d), and returns all positions so far, (R, H, T, d)."""
        if self.past is not None:
            keys_values = (
                torch.cat([self.past[0], keys_values[0]], dim=2),
                torch.cat([self.past[1], keys_values[1]], dim=2),
            )
        self.past = keys_values
        return keys_values


class DecoderCache:
    """The caches of all decoder layers for one batch; a `SearchState`.

    Args:
        model: In evaluation mode.
        src: (B, S) source ids.
    """

    def __init__(self, model: Transformer, src: Tensor) -> None:
        self.src_mask = model.src_mask(src)
        memory = model.encoder(model.src_embedding(src), self.src_mask)
        self.layers = [LayerKeysValues(projected) for projected in model.decoder.memory_keys_values(memory)]

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Row i continues what row `rows[i]` has generated. Without `sentences` each keeps its sentence."""
        if sentences is not None or len(rows) != len(self.src_mask):
            self.src_mask = self.src_mask[rows]
            for layer in self.layers:
                layer.memory = (layer.memory[0][rows], layer.memory[1][rows])
        for layer in self.layers:
            if layer.past is not None:
                layer.past = (layer.past[0][rows], layer.past[1][rows])


def decoding_step(model: Transformer, forbidden_ids: Iterable[int] = ()) -> Step:
    """The model as a search sees it.

    Args:
        model: In evaluation mode.
        forbidden_ids: Tokens that are never to be generated: padding, bos, reserved pieces.

    Returns:
        A step over a `DecoderCache`.
    """
    forbidden = torch.tensor(sorted(set(forbidden_ids)), dtype=torch.long)

    def step(last: Tensor, position: int, state: SearchState) -> Tensor:
        assert isinstance(state, DecoderCache)
        logits = model.decode_step(last, position, state.layers, state.src_mask)
        logits[:, forbidden.to(logits.device)] = float("-inf")
        return logits

    return step
