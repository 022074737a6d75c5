"""What the fast decoders share: they take the newest token of each row, and attend to the past."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ...model.embedding import Embedding as PlainEmbedding
from ...model.encoder_decoder import Transformer
from .state import Past
from .weights import Embedding, Rotary, final_norm, head_width, output_layer

if TYPE_CHECKING:
    from ...model.decoder_only import DecoderOnly


class FastDecoder:
    """Embedding, output layer and limits of a model arranged for decoding.

    Args:
        model: In evaluation mode. When its weights change, make a new one: some are copied here, some are shared.
        embedding: Of what is generated.
        forbidden_ids: Tokens that are never to be generated: padding, bos, reserved pieces.
    """

    def __init__(
        self, model: "Transformer | DecoderOnly", embedding: PlainEmbedding, forbidden_ids: Iterable[int]
    ) -> None:
        config = model.config
        self._max_seq_len = config.max_seq_len
        self._num_layers, self._heads, self._width = len(model.decoder.layers), config.num_heads, head_width(config)
        self._embedding, self._rotary = Embedding.of(embedding), Rotary.of(embedding, config)
        self._norm = final_norm(model.decoder.norm, config.norm_order)
        device = model.output_layer.weight.device
        forbidden = torch.tensor(sorted(set(forbidden_ids)), dtype=torch.long, device=device)
        self._output_layer = output_layer(model.output_layer, forbidden)

    def _past(self, size: int) -> Past:
        return Past(size, self._num_layers, self._heads, self._width, like=self._embedding.tokens)

    def _check(self, src: Tensor) -> None:
        if src.size(1) > self._max_seq_len:
            raise ValueError(f"sequence of {src.size(1)} tokens, but max_seq_len is {self._max_seq_len}")

    def _embed(self, last: Tensor, positions: Tensor) -> Tensor:
        """The newest tokens (R,) with vectors of their positions, (D,) or (R, D), to (R, D)."""
        return torch.add(positions, self._embedding.tokens.index_select(0, last), alpha=self._embedding.scale)

    def _logits(self, y: Tensor) -> Tensor:
        """The outputs of the last layer (R, D) to logits (R, V)."""
        return self._output_layer(y if self._norm is None else self._norm(y))


def attend_to_past(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Self-attention of q (R, H, d) to keys and values (T, R, H, d), which gives (R, H * d).

    With one query per row, multiplying and summing element by element is faster than a matrix product.
    """
    weights = (q * keys).sum(dim=3, keepdim=True).softmax(dim=0)  # (T, R, H, 1)
    return (weights * values).sum(dim=0).flatten(1)
