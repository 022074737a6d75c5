"""Softmax over short rows, as attention between sentences needs it, at the speed of a CPU's vector units."""

from typing import Any

import torch
from torch import Tensor

SHORT_ROW = 64
"""Rows below this length are for `ShortRowSoftmax`; torch's own kernel is as fast from here on."""
_SMALLEST_SUM, _LARGEST_SUM = 1e-30, 1e30


def softmax(scores: Tensor) -> Tensor:
    """softmax over the last dimension, exp(s_i) / sum_j exp(s_j) ([Peng 2023], appendix)."""
    if scores.device.type == "cpu" and 1 < scores.size(-1) < SHORT_ROW:
        weights: Tensor = ShortRowSoftmax.apply(scores)  # pyright: ignore[reportAssignmentType]
        return weights
    return scores.softmax(dim=-1)


class ShortRowSoftmax(torch.autograd.Function):
    """The formula as it stands, in operations that run over the whole tensor at once.

    torch's kernel takes one row at a time, and a row of 15 scores fills no vector register: it spends some ten times
    as long. Here the row sums come from a product with a matrix of ones, which leaves them in every column, where
    dividing by them needs no broadcasting either. Where exp without subtracting the maximum first would leave the
    range of floating point, torch's kernel takes over.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        weights = scores.exp()
        sums = _row_sums(weights)
        smallest, largest = sums.aminmax()
        if smallest > _SMALLEST_SUM and largest < _LARGEST_SUM:
            weights.div_(sums)
        else:
            weights = scores.softmax(dim=-1)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Tensor:
        """With w the weights and g their gradient: w * (g - sum_j g_j w_j)."""
        (weights,) = ctx.saved_tensors
        (grad,) = grad_outputs
        return (grad - _row_sums(grad * weights)).mul_(weights)


def _row_sums(x: Tensor) -> Tensor:
    """(.., S) to (.., S): each row's sum in all its columns."""
    ones = torch.ones(x.size(-1), x.size(-1), dtype=x.dtype)
    return (x.flatten(end_dim=-2) @ ones).view(x.shape)
