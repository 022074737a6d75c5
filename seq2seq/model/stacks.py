"""Layers on top of each other, of which each architecture has one stack or two; and the weights that all begin with."""

from torch import Tensor, nn

from .config import ModelConfig, unknown
from .embedding import embedding_parameters
from .layers import DecoderLayer, EncoderLayer
from .masks import Mask
from .precision import LayerNorm


def final_norm(config: ModelConfig) -> nn.Module:
    """Pre-norm leaves the residual stream unnormalised, so its stacks end in one more LayerNorm."""
    match config.norm_order:
        case "post":
            return nn.Identity()
        case "pre":
            return LayerNorm(config.d_model, eps=config.norm_eps)
        case _:
            raise unknown("norm_order", config.norm_order)


class Encoder(nn.Module):
    """N encoder layers. Under a causal mask it is the stack of a decoder-only Transformer."""

    def __init__(self, config: ModelConfig, num_layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(num_layers))
        self.norm = final_norm(config)

    def forward(self, x: Tensor, mask: Mask | None, positions: Tensor | None = None) -> Tensor:
        """Embedded tokens (B, S, D) to (B, S, D); positions (B, S) only where they are not 0, 1, .. in each row."""
        for layer in self.layers:
            x = layer(x, mask, positions)
        return self.norm(x)


class Decoder(nn.Module):
    """M decoder layers."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_decoder_layers))
        self.norm = final_norm(config)

    def forward(self, y: Tensor, memory: Tensor, tgt_mask: Mask | None, src_mask: Mask | None) -> Tensor:
        """The embedded target (B, T, D) and the memory (B, S, D), which every layer reads, to (B, T, D)."""
        for layer in self.layers:
            y = layer(y, memory, tgt_mask, src_mask)
        return self.norm(y)


def initialise(model: nn.Module, config: ModelConfig) -> None:
    """Draws fresh weights: Xavier-uniform matrices, zero biases, and embeddings of standard deviation 1/sqrt(D).

    Scaled by sqrt(D) when they enter (`scale_embeddings`), embeddings then have unit variance, and tied to the
    output layer they give logits of unit variance.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
    for parameter in embedding_parameters(model):
        nn.init.normal_(parameter, std=config.d_model**-0.5)
