"""The encoder-decoder Transformer, the whole model of the paper: an encoder, a decoder, an output layer (figure 1)."""

import torch
from torch import Tensor, nn

from .config import ModelConfig
from .embedding import Embedding
from .masks import Packing, Within, causal_mask, padding_mask
from .precision import Linear
from .stacks import Decoder, Encoder, initialise


class Transformer(nn.Module):
    """Encoder-decoder from token ids to logits.

    The logits are o W + b of the decoder's output o. Their softmax gives the probability of each next token
    ([Yang 2024a], [Anonymous n.d.]; without b in [Zhou n.d.]). Which token comes next, a search decides: [Zhou n.d.]
    takes the most probable one, [Yang 2024a] draws one at random.

    Args:
        shared_vocab: Whether they are one vocabulary; then, if tied, source embedding, target embedding and output
            layer are one matrix.
    """

    def __init__(self, config: ModelConfig, *, src_vocab_size: int, tgt_vocab_size: int, shared_vocab: bool) -> None:
        super().__init__()
        if shared_vocab and src_vocab_size != tgt_vocab_size:
            raise ValueError(f"a shared vocabulary has one size, but got {src_vocab_size} and {tgt_vocab_size}")
        self.config = config
        src_tokens = nn.Embedding(src_vocab_size, config.d_model)
        share = shared_vocab and config.tie_embeddings
        tgt_tokens = src_tokens if share else nn.Embedding(tgt_vocab_size, config.d_model)
        self.src_embedding = Embedding(src_tokens, config)
        self.tgt_embedding = Embedding(tgt_tokens, config)
        self.encoder = Encoder(config, config.num_encoder_layers)
        self.decoder = Decoder(config)
        self.output_layer = Linear(config.d_model, tgt_vocab_size, bias=config.output_bias)
        if config.tie_embeddings:
            self.output_layer.weight = tgt_tokens.weight
        initialise(self, config)

    def src_mask(self, src: Tensor) -> Tensor:
        """The mask that hides the padding of a source, (B, 1, 1, S)."""
        return padding_mask(src)

    def encode(self, src: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Source ids (B, S) to the memory (B, S, D), computed in `dtype`, as all that is computed from it will be."""
        return self.encoder(self.src_embedding(src, dtype=dtype), self.src_mask(src))

    def decode(self, tgt_in: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        """Target ids (B, T) to hidden states (B, T, D), each seeing the memory and the target up to its own position.

        Padding stands at the end of a target, where no earlier position sees it: the causal mask is all it takes.
        """
        tgt_mask = causal_mask(tgt_in.size(1), tgt_in.device)
        y = self.tgt_embedding(tgt_in, dtype=memory.dtype)
        return self.decoder(y, memory, tgt_mask, src_mask)

    def hidden_states(
        self, src: Tensor, tgt_in: Tensor, dtype: torch.dtype | None = None, packing: Packing | None = None
    ) -> Tensor:
        """The decoder's output (B, T, D), before the output layer, computed in `dtype`.

        Args:
            packing: How sources and targets are packed, if they are, into one row each.
        """
        if packing is not None:
            sources, targets = packing
            x = self.src_embedding(src, sources, dtype)
            memory = self.encoder(x, Within(sources, sources))
            y = self.tgt_embedding(tgt_in, targets, dtype)
            return self.decoder(y, memory, Within(targets, targets, causal=True), Within(targets, sources))
        return self.decode(tgt_in, self.encode(src, dtype), self.src_mask(src))

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Source ids (B, S) and target ids (B, T) to logits (B, T, V): the next token at each target position."""
        return self.output_layer(self.hidden_states(src, tgt_in))
