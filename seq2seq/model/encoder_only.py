"""The encoder-only Transformer: one stack that sees a text from both sides. It turns sentences into vectors.

    sentence </s>  ->  hidden states (B, S, D)  ->  mean over the tokens  ->  unit vector (B, D)

Trained on translations (`training.contrastive`), it gives sentences of one meaning vectors of nearly one direction,
whatever their language. It can also guess hidden tokens (`training.masking`), which prepares it for that: for this it
has an output layer.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .config import ModelConfig
from .embedding import Embedding
from .masks import PAD_ID, padding_mask
from .precision import Linear
from .stacks import Encoder, initialise

FIRST_TEMPERATURE = 0.05
"""What similarities are divided by before the first update."""
LOWEST_TEMPERATURE = 0.01
"""And at least ever, as in CLIP (Radford et al. 2021): a lower one makes training unstable."""


class EncoderOnly(nn.Module):
    """Encoder from token ids to vectors of sentences, or to logits of hidden tokens.

    Its stack has `num_encoder_layers`. No position attends to padding.
    """

    def __init__(self, config: ModelConfig, *, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        tokens = nn.Embedding(vocab_size, config.d_model)
        self.embedding = Embedding(tokens, config)
        self.encoder = Encoder(config, config.num_encoder_layers)
        self.output_layer = Linear(config.d_model, vocab_size, bias=config.output_bias)
        if config.tie_embeddings:
            self.output_layer.weight = tokens.weight
        initialise(self, config)
        self.log_temperature = nn.Parameter(torch.tensor(math.log(FIRST_TEMPERATURE)))

    @property
    def temperature(self) -> Tensor:
        """What similarities are divided by before their softmax; a learned scalar."""
        logarithm = self.log_temperature
        # The bound has a gradient as if it were not there: a temperature that has come below it can rise again.
        bounded = logarithm + (logarithm.clamp(min=math.log(LOWEST_TEMPERATURE)) - logarithm).detach()
        return bounded.exp()

    def hidden_states(self, ids: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Token ids (B, S) to the stack's output (B, S, D), computed in `dtype`; padding is seen by nobody."""
        return self.encoder(self.embedding(ids, dtype=dtype), padding_mask(ids))

    def embed(self, ids: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Sentences (B, S), each ending in eos, to vectors (B, D): the mean over the tokens, scaled to length 1.

        Activations are computed in `dtype`, the mean in float32 at least.
        """
        hidden = self.hidden_states(ids, dtype)  # (B, S, D)
        hidden = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
        real = (ids != PAD_ID)[:, :, None]  # (B, S, 1)
        mean = (hidden * real).sum(dim=1) / real.sum(dim=1)  # (B, D)
        return F.normalize(mean, dim=-1)

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids (B, S), some of them hidden, to logits (B, S, V): which token belongs at each position."""
        return self.output_layer(self.hidden_states(ids))
