"""Layers compute in the precision of their input; their weights and gradients stay float32."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tfm.seq2seq.model.precision import linear

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("shape", [(7, 16), (2, 5, 16)])
def test_a_product_in_half_precision_has_gradients_in_float32(
    device: str, has_bias: bool, shape: tuple[int, ...]
) -> None:
    """Beside torch's own product of the same rounded numbers in double precision."""

    def rounded(*sizes: int) -> Tensor:
        return torch.randn(*sizes, device=device).bfloat16().float()

    x, weight, bias = rounded(*shape), rounded(24, 16), rounded(24) if has_bias else None
    grad = rounded(*shape[:-1], 24)
    halves = x.bfloat16().requires_grad_(), weight.requires_grad_(), None if bias is None else bias.requires_grad_()
    output = linear(*halves)
    assert output.dtype == torch.bfloat16
    wanted = [tensor for tensor in halves if tensor is not None]
    found = torch.autograd.grad(output, wanted, grad.bfloat16())
    assert [tensor.dtype for tensor in found] == [torch.bfloat16, torch.float32, torch.float32][: len(found)]
    doubles = [tensor.detach().double().requires_grad_() for tensor in wanted]
    expected = torch.autograd.grad(F.linear(*doubles), doubles, grad.double())
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-2, atol=1e-2 * other.abs().max().item())
