"""Layers whose weights are float32 and which compute in the precision of their input.

Mixed precision by the activations: embeddings are cast once, and every layer after them follows. The float32 weights,
cast where they are used, stay the ones that the optimizer changes and checkpoints hold. Unlike under autocast, no
activation is cast back and forth between two operations.
"""

from torch import Tensor, nn
from torch.nn import functional as F


class Linear(nn.Linear):
    """x W^T + b with W of shape (outputs, inputs): the transpose of the W in formulas of the form x W + b."""

    def forward(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return F.linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))


class LayerNorm(nn.LayerNorm):
    """gamma * (x - mean) / sqrt(variance + eps) + beta, over the last dimension ([Yang 2024b]).

    The variance is the mean of (x - mean)^2. Both are computed in float32 where x is in half precision.
    """

    def forward(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        # On a CPU the kernel takes float32 weights beside any input.
        dtype = self.weight.dtype if x.device.type == "cpu" else x.dtype
        return F.layer_norm(x, self.normalized_shape, self.weight.to(dtype), self.bias.to(dtype), self.eps)
