"""The position-wise feed-forward network."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional as F

from .config import Activation, ModelConfig
from .dropout import Dropout
from .precision import Linear

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "swiglu": F.silu}
GATED: set[Activation] = {"swiglu"}
"""Activations of a second projection, the gate, which the first is multiplied by."""


class FeedForward(nn.Module):
    """FFN(x) = act(x W_1 + b_1) W_2 + b_2 (paper section 3.3), the same at every position.

    `relu` is the paper; `gelu` replaces the activation; `swiglu` multiplies a second projection into it,
    (silu(x W_gate + b_gate) * (x W_1 + b_1)) W_2 + b_2 (Shazeer 2020, arXiv:2002.05202).
    [Zhou n.d.] leaves b_2 out: `feed_forward_output_bias`.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[config.activation]
        self.linear_1 = Linear(config.d_model, config.d_ff)
        self.gate = Linear(config.d_model, config.d_ff) if config.activation in GATED else None
        self.linear_2 = Linear(config.d_ff, config.d_model, bias=config.feed_forward_output_bias)
        self.dropout = Dropout(config.feed_forward_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) to (B, T, D)."""
        hidden = self.linear_1(x)  # (B, T, d_ff)
        hidden = self.activation(hidden) if self.gate is None else self.activation(self.gate(x)) * hidden
        return self.linear_2(self.dropout(hidden))
