"""The plain form of decoding step by step: the model computes the whole target anew for each new token."""

from collections.abc import Iterable

import torch
from torch import Tensor

from tfm.seq2seq.decoding.search import SearchState
from tfm.seq2seq.model.decoder_only import DecoderOnly
from tfm.seq2seq.model.encoder_decoder import Transformer


class FullPass:
    """A `Step` that keeps nothing but ids; `encode` makes the state that it extends."""

    def __init__(self, model: Transformer | DecoderOnly, forbidden_ids: Iterable[int] = ()) -> None:
        self._model, self._forbidden = model, list(forbidden_ids)

    def encode(self, src: Tensor) -> "FullPassState":
        return FullPassState(src)

    def __call__(self, last: Tensor, position: int, state: SearchState) -> Tensor:
        assert isinstance(state, FullPassState)
        state.tgt = torch.cat([state.tgt, last[:, None]], dim=1)
        assert state.tgt.size(1) == position + 1
        logits = self._model(state.src, state.tgt)[:, -1].contiguous()
        logits[:, self._forbidden] = float("-inf")
        return logits


class FullPassState:
    """For each row its source and what it has read."""

    def __init__(self, src: Tensor) -> None:
        self.src, self.tgt = src, torch.empty(len(src), 0, dtype=torch.long)

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        del sentences  # each row carries its own
        self.src, self.tgt = self.src[rows], self.tgt[rows]
