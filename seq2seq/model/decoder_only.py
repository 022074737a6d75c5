"""The decoder-only Transformer: one causal stack that reads source and target as one sequence, or a text alone.

    source </s> <s> target        as a translator: P(target | source)
    <s> text                      as a language model: P(text)

Its block is the encoder's, self-attention and feed-forward, under a causal mask. The block in the text of [Yang 2024a]
and [Yang 2024b], and in the code of the latter, has a second self-attention without a mask, which sees the future; see
docs/sources.md.
"""

import torch
from torch import Tensor, nn

from .config import ModelConfig
from .embedding import Embedding
from .masks import PAD_ID, Packing, Within, causal_mask
from .precision import Linear
from .stacks import Encoder, initialise


class DecoderOnly(nn.Module):
    """Causal Transformer from token ids to logits.

    Its stack has `num_decoder_layers`. No position attends to padding.
    """

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        tokens = nn.Embedding(vocab_size, config.d_model)
        self.embedding = Embedding(tokens, config)
        self.decoder = Encoder(config, config.num_decoder_layers)
        self.output_layer = Linear(config.d_model, vocab_size, bias=config.output_bias)
        if config.tie_embeddings:
            self.output_layer.weight = tokens.weight
        initialise(self, config)

    def hidden_states(
        self, src: Tensor, tgt_in: Tensor, dtype: torch.dtype | None = None, packing: Packing | None = None
    ) -> Tensor:
        """The outputs at the target's positions (B, T, D), before the output layer, computed in `dtype`.

        Padding may stand at the end of a source, in the middle of the sequence: no position attends to it, and a
        target's positions are counted as if it were not there.

        Args:
            src: (B, S) source ids; S is 0 where there is a text alone.
            tgt_in: (B, T) target ids, from bos on.
            dtype: The weights' own if not given.
            packing: How they are packed, if they are, into one row: each source and its target are one target there.
        """
        if packing is not None:
            _, targets = packing
            x = self.embedding(tgt_in, targets, dtype)
            return self.decoder(x, Within(targets, targets, causal=True))
        ids = torch.cat([src, tgt_in], dim=1)  # (B, S + T)
        mask = causal_mask(ids.size(1), ids.device)  # (S + T, S + T)
        if src.size(1) == 0:  # padding stands at the end alone, where no earlier position sees it
            return self.decoder(self.embedding(ids, dtype=dtype), mask)
        real = ids != PAD_ID
        positions = (real.cumsum(dim=1) - 1).clamp(min=0)  # (B, S + T)
        x = self.embedding(ids, positions, dtype)
        return self.decoder(x, mask & real[:, None, None, :], positions)[:, src.size(1) :]

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Source ids (B, S) and target ids (B, T) to logits (B, T, V): the next token at each target position."""
        return self.output_layer(self.hidden_states(src, tgt_in))
