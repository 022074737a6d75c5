"""The whole model: an encoder, a decoder, an output layer (paper figure 1)."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from .attention import KeysValues
from .config import ModelConfig, unknown
from .embedding import Embedding, embedding_parameters
from .layers import DecoderLayer, EncoderLayer
from .masks import causal_mask, padding_mask
from .precision import LayerNorm, Linear


def _final_norm(config: ModelConfig) -> nn.Module:
    """Pre-norm leaves the residual stream unnormalised, so its stacks end in one more LayerNorm."""
    match config.norm_order:
        case "post":
            return nn.Identity()
        case "pre":
            return LayerNorm(config.d_model, eps=config.norm_eps)
        case _:
            raise unknown("norm_order", config.norm_order)


class Encoder(nn.Module):
    """N encoder layers."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.num_encoder_layers))
        self.norm = _final_norm(config)

    def forward(self, x: Tensor, src_mask: Tensor | None) -> Tensor:
        """(B, S, D) to (B, S, D), the memory."""
        for layer in self.layers:
            x = layer(x, src_mask)
        return self.norm(x)


class Decoder(nn.Module):
    """M decoder layers."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))
        self.norm = _final_norm(config)

    def memory_keys_values(self, memory: Tensor) -> list[KeysValues]:
        """What each layer's cross-attention reads: its own projections of the memory (B, S, D)."""
        return [cast(DecoderLayer, layer).cross_attn.keys_values(memory) for layer in self.layers]

    def forward(
        self, y: Tensor, memory: Sequence[KeysValues], tgt_mask: Tensor | None, src_mask: Tensor | None
    ) -> Tensor:
        """(B, T, D) to (B, T, D).

        Args:
            y: Embedded target.
            memory: From `memory_keys_values`.
            tgt_mask: Which target positions a target position may see.
            src_mask: Which source positions may be seen.
        """
        for layer, keys_values in zip(self.layers, memory, strict=True):
            y = layer(y, keys_values, tgt_mask, src_mask)
        return self.norm(y)


class Transformer(nn.Module):
    """Encoder-decoder from token ids to logits.

    The logits are o W + b of the decoder's output o. Their softmax gives the probability of each next token
    ([Yang 2024a], [Anonymous n.d.]; without b in [Zhou n.d.]). Which token comes next, a search decides: [Zhou n.d.]
    takes the most probable one, [Yang 2024a] draws one at random.

    Args:
        config: Sizes and choices.
        src_vocab_size, tgt_vocab_size: Pieces of the two vocabularies.
        shared_vocab: Whether they are one vocabulary; then, if tied, source embedding, target embedding and output
            layer are one matrix.
        pad_id: The id that fills rows up; in a source no query attends to it, in a target it stands after all that
            counts.
    """

    def __init__(
        self, config: ModelConfig, *, src_vocab_size: int, tgt_vocab_size: int, shared_vocab: bool, pad_id: int = 0
    ) -> None:
        super().__init__()
        if shared_vocab and src_vocab_size != tgt_vocab_size:
            raise ValueError(f"a shared vocabulary has one size, but got {src_vocab_size} and {tgt_vocab_size}")
        self.config = config
        self.pad_id = pad_id
        src_tokens = nn.Embedding(src_vocab_size, config.d_model)
        share = shared_vocab and config.tie_embeddings
        tgt_tokens = src_tokens if share else nn.Embedding(tgt_vocab_size, config.d_model)
        self.src_embedding = Embedding(src_tokens, config)
        self.tgt_embedding = Embedding(tgt_tokens, config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output_layer = Linear(config.d_model, tgt_vocab_size, bias=config.output_bias)
        if config.tie_embeddings:
            self.output_layer.weight = tgt_tokens.weight
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws fresh weights: Xavier-uniform matrices, zero biases, and embeddings of standard deviation 1/sqrt(D).

        Scaled by sqrt(D) when they enter (`scale_embeddings`), embeddings then have unit variance, and tied to the
        output layer they give logits of unit variance.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        deviation = self.config.d_model**-0.5
        for parameter in embedding_parameters(self):
            nn.init.normal_(parameter, std=deviation)

    def src_mask(self, src: Tensor) -> Tensor:
        """The mask that hides the padding of a source, (B, 1, 1, S)."""
        return padding_mask(src, self.pad_id)

    def encode(self, src: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Source ids (B, S) to the memory (B, S, D), computed in `dtype`, as all that is computed from it will be."""
        return self.encoder(self.src_embedding(src, dtype=dtype), self.src_mask(src))

    def decode(self, tgt_in: Tensor, memory: Tensor, src_mask: Tensor) -> Tensor:
        """Target ids (B, T) to hidden states (B, T, D), each seeing the memory and the target up to its own position.

        Padding stands at the end of a target, where no earlier position sees it: the causal mask is all it takes.
        """
        tgt_mask = causal_mask(tgt_in.size(1), tgt_in.device)
        y = self.tgt_embedding(tgt_in, dtype=memory.dtype)
        return self.decoder(y, self.decoder.memory_keys_values(memory), tgt_mask, src_mask)

    def hidden_states(self, src: Tensor, tgt_in: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """The decoder's output (B, T, D), before the output layer, computed in `dtype`."""
        return self.decode(tgt_in, self.encode(src, dtype), self.src_mask(src))

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Source ids (B, S) and target ids (B, T) to logits (B, T, V): the next token at each target position."""
        return self.output_layer(self.hidden_states(src, tgt_in))

    def num_parameters(self) -> int:
        """Learned numbers, shared matrices counted once."""
        return sum(parameter.numel() for parameter in self.parameters())


def count_parameters(config: ModelConfig, *, src_vocab_size: int, tgt_vocab_size: int, shared_vocab: bool) -> int:
    """Parameters of a model, without allocating it."""
    with torch.device("meta"):
        model = Transformer(
            config, src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, shared_vocab=shared_vocab
        )
    return model.num_parameters()
