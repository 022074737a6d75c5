"""An optimizer of ours and one of torch's, side by side on the same parameters and gradients."""

from typing import Protocol

import torch
from torch import nn


class Steps(Protocol):
    """An optimizer."""

    def step(self) -> object:
        """Makes one update."""
        ...


def parameters(shapes: list[tuple[int, ...]]) -> list[nn.Parameter]:
    """Parameters of these shapes, the same at each call."""
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


def make_updates(ours: list[nn.Parameter], optimizer: Steps, torchs: list[nn.Parameter], reference: Steps) -> None:
    """Five updates of both, with the same random gradients."""
    generator = torch.Generator().manual_seed(1)
    for _ in range(5):
        for one, other in zip(ours, torchs, strict=True):
            one.grad = torch.randn(one.shape, generator=generator)
            other.grad = one.grad.clone()
        optimizer.step()
        reference.step()
