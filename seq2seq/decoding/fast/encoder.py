"""The encoder: sources to the memory that the decoder attends to."""

from typing import cast

from torch import Tensor
from torch.nn import functional as F

from ...model import layers
from ...model.encoder_decoder import Transformer
from ...model.masks import PAD_ID
from .weights import Embedding, EncoderLayer, Rotary, final_norm

_MIN_KEYS = 16
"""Sources are given at least this many keys, masked ones if need be: torch's softmax over fewer is not vectorised."""
_ENCODED_TOGETHER = 64
"""Sources, neighbours in the batch, that are encoded at once."""


class Encoder:
    """Source embedding and encoder layers."""

    def __init__(self, model: Transformer) -> None:
        config = model.config
        self._heads = config.num_heads
        self._embedding = Embedding.of(model.src_embedding)
        self._rotary = Rotary.of(model.src_embedding, config)
        self._layers = [EncoderLayer.of(cast(layers.EncoderLayer, layer), config) for layer in model.encoder.layers]
        self._norm = final_norm(model.encoder.norm, config.norm_order)

    def encode(self, src: Tensor) -> tuple[Tensor, Tensor]:
        """Sources (B, S), neighbours together, so that those in order of length need little padding.

        Returns the memory (B, S or more, D), and what is to be added to the scores of attention to it, 0 at tokens and
        -inf at padding, (B, S or more).
        """
        size, length = src.shape
        mask = F.pad(src != PAD_ID, (0, max(_MIN_KEYS - length, 0)))  # (B, S)
        tokens = self._embedding.tokens
        bias = tokens.new_zeros(mask.shape).masked_fill_(~mask, float("-inf"))
        memory = tokens.new_zeros(*mask.shape, tokens.size(1))
        for start in range(0, size, _ENCODED_TOGETHER):
            group = slice(start, start + _ENCODED_TOGETHER)
            longest = int(mask[group].sum(dim=1).max())
            encoded = self.encode_rows(src[group, :longest], bias[group, : max(longest, _MIN_KEYS)])
            memory[group, :longest] = encoded.view(-1, longest, memory.size(2))
        return memory, bias

    def encode_rows(self, src: Tensor, bias: Tensor | None = None) -> Tensor:
        """Encodes src (B, S) to (B * S, D); bias (B, S or more) is -inf at padding, if there is any."""
        x = self._embedding(src).flatten(0, 1)
        turns = self._rotary.of_sentences(*src.shape)
        for attn, feed_forward in self._layers:
            projected = attn.project(attn.norm.before(x), turns)
            heads = self._attend(projected.unflatten(1, src.shape), bias)
            x = attn.norm.after(attn.out.add_to(x, heads))
            x = feed_forward(x)
        return x if self._norm is None else self._norm(x)

    def _attend(self, projected: Tensor, bias: Tensor | None) -> Tensor:
        """Keys, values and queries (3, B, S, H * d), bias (B, S or more), to (B * S, H * d)."""
        k, v, q = projected.unflatten(3, (self._heads, -1)).transpose(2, 3).unbind()  # (B, H, S, d) each
        if bias is None:
            weights = (q @ k.transpose(2, 3)).softmax(dim=-1)
        else:
            missing = bias.size(1) - q.size(2)
            if missing:
                k, v = F.pad(k, (0, 0, 0, missing)), F.pad(v, (0, 0, 0, missing))
            weights = (q @ k.transpose(2, 3)).add_(bias[:, None, None]).softmax(dim=-1)  # (B, H, S, S or more)
        return (weights @ v).transpose(1, 2).flatten(2).flatten(0, 1)
