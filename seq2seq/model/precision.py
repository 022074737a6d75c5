"""Layers whose weights are float32 and which compute in the precision of their input.

Mixed precision by the activations: embeddings are cast once, and every layer after them follows. The float32 weights,
cast where they are used, stay the ones that the optimizer changes and checkpoints hold. Unlike under autocast, no
activation is cast back and forth between two operations.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b in the precision of x."""
    if x.is_cuda and x.dtype != weight.dtype:
        return _MixedLinear.apply(x, weight, bias)  # pyright: ignore[reportReturnType]
    return F.linear(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))


class _MixedLinear(torch.autograd.Function):
    """`linear` on a GPU, in half precision. Products give the gradients of weight and bias, in float32 at once.

    torch's own backward pass sums a bias's gradient by a kernel that takes twice as long as a product with ones, and
    casts both gradients afterwards.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        half = weight.to(x.dtype)
        ctx.save_for_backward(x, half)
        ctx.has_bias = bias is not None
        return F.linear(x, half, None if bias is None else bias.to(x.dtype))

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        (grad,) = grad_outputs
        x, half = ctx.saved_tensors
        rows = grad.flatten(0, -2)  # (N, outputs)
        grad_weight = torch.mm(rows.T, x.flatten(0, -2), out_dtype=torch.float32)
        if not ctx.has_bias:
            return grad @ half, grad_weight, None
        return grad @ half, grad_weight, torch.mm(rows.new_ones(1, len(rows)), rows, out_dtype=torch.float32)[0]


class Linear(nn.Linear):
    """x W^T + b with W of shape (outputs, inputs): the transpose of the W in formulas of the form x W + b."""

    def forward(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return linear(x, self.weight, self.bias)


class LayerNorm(nn.LayerNorm):
    """gamma * (x - mean) / sqrt(variance + eps) + beta, over the last dimension ([Yang 2024b]).

    The variance is the mean of (x - mean)^2. Both are computed in float32 where x is in half precision.
    """

    def forward(self, x: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        # On a CPU the kernel takes float32 weights beside any input.
        dtype = self.weight.dtype if x.device.type == "cpu" else x.dtype
        return F.layer_norm(x, self.normalized_shape, self.weight.to(dtype), self.bias.to(dtype), self.eps)
