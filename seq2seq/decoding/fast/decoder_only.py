"""A decoder-only Transformer arranged for decoding: reads prompts at once, then takes one token after the other.

The keys and values of a prompt, the source of a translation, exist once per sentence, as those of an encoder's memory
do; its hypotheses attend to them together. In one softmax with them are the keys of what a hypothesis has generated.
"""

from collections.abc import Iterable
from typing import cast

import torch
from torch import Tensor

from ...model import layers
from ...model.decoder_only import DecoderOnly
from ...model.masks import PAD_ID
from ..search import SearchState
from .decoder import FastDecoder, attend_to_past
from .state import FastState
from .weights import EncoderLayer


class Prompt:
    """Keys (L, B, H, d, S) and values (L, B, H, S, d) of the prompts of a batch, for all layers; their lengths (B,).

    The bias (B, S) is added to the scores, 0 at tokens and -inf at padding.
    """

    def __init__(self, keys: Tensor, values: Tensor, bias: Tensor, lengths: Tensor) -> None:
        self.keys, self.values, self.bias, self.lengths = keys, values, bias, lengths

    def select(self, sentences: Tensor) -> None:
        """Sentence j becomes what sentence `sentences[j]` was."""
        self.keys, self.values = self.keys.index_select(1, sentences), self.values.index_select(1, sentences)
        self.bias, self.lengths = self.bias.index_select(0, sentences), self.lengths.index_select(0, sentences)

    def attend(self, layer: int, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Attention of q (R, H, d) to the prompt and to what came after it, in one softmax: (R, H * d).

        R = B * K, the K rows of a sentence side by side. Keys and values of what came after the prompt: (T, R, H, d).
        """
        rows, heads, width = q.shape
        size, length = self.bias.shape
        k = rows // size
        queries = q.view(size, k, heads, width).transpose(1, 2)  # (B, H, K, d)
        to_prompt = torch.matmul(queries, self.keys[layer]) + self.bias[:, None, None]  # (B, H, K, S)
        to_prompt = to_prompt.transpose(1, 2).reshape(rows, heads, length)  # (R, H, S)
        to_past = (q * keys).sum(dim=3).permute(1, 2, 0)  # (R, H, T)
        weights = torch.cat([to_prompt, to_past], dim=2).softmax(dim=2)
        of_prompt = weights[:, :, :length].view(size, k, heads, length).transpose(1, 2)  # (B, H, K, S)
        from_prompt = torch.matmul(of_prompt, self.values[layer]).transpose(1, 2).reshape(rows, -1)  # (R, H * d)
        of_past = weights[:, :, length:].permute(2, 0, 1)[..., None]  # (T, R, H, 1)
        return from_prompt + (of_past * values).sum(dim=0).flatten(1)


class FastDecoderOnly(FastDecoder):
    """A `DecoderOnly`; a `Step` over the states that `encode` and `begin` make. Arguments: see `FastDecoder`."""

    @torch.no_grad()
    def __init__(self, model: DecoderOnly, forbidden_ids: Iterable[int] = ()) -> None:
        super().__init__(model, model.embedding, forbidden_ids)
        self._layers = [
            EncoderLayer.of(cast(layers.EncoderLayer, layer), model.config) for layer in model.decoder.layers
        ]

    def encode(self, src: Tensor) -> FastState:
        """Reads sources (B, S) as prompts, none where S is 0; ValueError for one longer than `max_seq_len`."""
        self._check(src)
        size, length = src.shape
        if length == 0:
            return FastState(None, self._past(size))
        real = src != PAD_ID  # (B, S), padding at the end
        tokens = self._embedding.tokens
        bias = tokens.new_zeros(real.shape).masked_fill_(~real, float("-inf"))
        later = torch.ones(length, length, dtype=torch.bool, device=src.device).triu(1)
        causal = tokens.new_zeros(length, length).masked_fill_(later, float("-inf"))
        x = self._embedding(src).flatten(0, 1)  # (B * S, D)
        turns = self._rotary.of_sentences(size, length)
        kept: list[tuple[Tensor, Tensor]] = []
        for attn, feed_forward in self._layers:
            projected = attn.project(attn.norm.before(x), turns).view(3, size, length, self._heads, self._width)
            k, v, q = projected.transpose(2, 3).unbind()  # (B, H, S, d) each
            kept.append((k.transpose(2, 3), v))
            weights = (q @ k.transpose(2, 3) + causal).softmax(dim=-1)  # (B, H, S, S)
            x = attn.norm.after(attn.out.add_to(x, (weights @ v).transpose(1, 2).reshape(x.size(0), -1)))
            x = feed_forward(x)
        keys, values = (torch.stack(tensors) for tensors in zip(*kept, strict=True))
        return FastState(Prompt(keys.contiguous(), values, bias, real.sum(dim=1)), self._past(size))

    def __call__(self, last: Tensor, position: int, state: SearchState) -> Tensor:
        """Takes the newest tokens (R,), the `position`-th after their prompts; returns logits (R, V)."""
        assert isinstance(state, FastState)
        prompt: Prompt | None = state.memory
        places = self._places(prompt, position, last.size(0))
        y, turns = self._embed(last, self._embedding.positions[places]), self._rotary.at(places)
        newest, queries, keys, values = state.past.next_position()
        for i, (self_attn, feed_forward) in enumerate(self._layers):
            self_attn.project(self_attn.norm.before(y), turns, out=newest[i])
            past = queries[i], keys[i], values[i]
            heads = attend_to_past(*past) if prompt is None else prompt.attend(i, *past)
            y = self_attn.norm.after(self_attn.out.add_to(y, heads))
            y = feed_forward(y)
        return self._logits(y)

    def _places(self, prompt: Prompt | None, position: int, rows: int) -> int | Tensor:
        """Where the newest tokens stand, (R,) if they have prompts, which are of unequal lengths."""
        if prompt is None:
            return position
        return (prompt.lengths + position).repeat_interleave(rows // prompt.lengths.size(0))
