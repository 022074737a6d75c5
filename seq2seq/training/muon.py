"""Muon: momentum whose updates are made orthogonal (Jordan et al. 2024), for the matrices inside the layers."""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor, nn

from .batches import Alone, Group

_COEFFICIENTS = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5


def orthogonalise(matrices: Tensor) -> Tensor:
    """Brings each matrix's singular values near 1, the smallest excepted: U S V^T becomes about U V^T.

    A Newton-Schulz iteration, X <- a X + (b A + c A^2) X with A = X X^T, of the matrix divided by its Frobenius norm.
    The coefficients are chosen for speed. Singular values of at least 0.0016 of the Frobenius norm lie between 0.67 and
    1.21 after the five rounds, which serves as well as 1. Smaller ones stay smaller: a round multiplies them by at most
    a = 3.4445, all five by at most a^5 = 485. Of a random square matrix of 512 rows about 2 % of the values are so
    small; of one with 512 rows and 2,048 columns, none.

    Args:
        matrices: (n, rows, columns), rows <= columns; computed in its dtype, of which bfloat16 is enough.
    """
    x = matrices / (matrices.flatten(1).norm(dim=1)[:, None, None] + 1e-7)
    for _ in range(_ITERATIONS):
        x = iterate(x)
    return x


def iterate(x: Tensor) -> Tensor:
    """One round of `orthogonalise`: a X + (b A + c A^2) X with A = X X^T."""
    a, b, c = _COEFFICIENTS
    gram = x @ x.mT  # (n, rows, rows)
    return torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)


class Muon:
    """Nesterov momentum, orthogonalised, matrices of one shape at a time; the work is shared by all processes.

    Args:
        param_groups: Each with `params`, matrices whose gradients are the same in all processes, and `weight_decay`,
            decoupled as AdamW's. `step` also needs `lr`, the learning rate: a (rows, columns) matrix moves by it times
            sqrt(max(1, rows / columns)) in each direction.
        momentum: Share of the past in the momentum.
        dtype: Precision of the iteration.
        group: The processes that share it.

    Attributes:
        state: Of each matrix: `momentum_buffer`.
    """

    def __init__(
        self,
        param_groups: list[dict[str, Any]],
        *,
        momentum: float = 0.95,
        dtype: torch.dtype = torch.float32,
        group: Group | None = None,
    ) -> None:
        self.param_groups, self._momentum, self._dtype = param_groups, momentum, dtype
        self._group = group or Alone()
        self.state: defaultdict[nn.Parameter, dict[str, Tensor]] = defaultdict(dict)

    @torch.no_grad()
    def step(self) -> None:
        """Makes one update."""
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
            for parameter in group["params"]:
                by_shape[parameter.shape].append(parameter)
            directions = self._directions(by_shape)
            for shape, parameters in by_shape.items():
                scale = group["lr"] * max(1.0, shape[0] / shape[1]) ** 0.5
                for parameter, direction in zip(parameters, directions[shape], strict=True):
                    parameter.mul_(1 - group["lr"] * group["weight_decay"]).add_(direction, alpha=-scale)

    def _directions(self, by_shape: dict[torch.Size, list[nn.Parameter]]) -> dict[torch.Size, list[Tensor]]:
        """Orthogonal update directions (rows, columns) of all matrices; each process computes a share of each shape.

        They lie in one tensor, those of a process side by side, so that all are handed round at once.
        """
        parameters = [parameter for alike in by_shape.values() for parameter in alike]
        self._add_to_momentum(parameters)
        size, device = sum(parameter.numel() for parameter in parameters), parameters[0].device
        flat = torch.empty(size, dtype=self._dtype, device=device)
        stacks: list[tuple[torch.Size, Tensor]] = []  # (n, rows, columns): of one shape, computed by one process
        ends: list[int] = []
        end = 0
        for rank in range(self._group.count):
            for shape, alike in by_shape.items():
                share = alike[len(alike) * rank // self._group.count : len(alike) * (rank + 1) // self._group.count]
                start, end = end, end + len(share) * shape.numel()
                stacks.append((shape, flat[start:end].view(len(share), *shape)))
                if share and rank == self._group.rank:
                    stacks[-1][1].copy_(_orthogonalise_either_way(self._nesterov(share).to(self._dtype)))
            ends.append(end)
        self._group.hand_round(flat, ends)
        directions: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for shape, stack in stacks:
            directions[shape] += stack.float().unbind()
        return directions

    def _add_to_momentum(self, parameters: list[nn.Parameter]) -> None:
        """Moves the momentum of each matrix towards its gradient."""
        for parameter in parameters:
            if "momentum_buffer" not in self.state[parameter]:
                self.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
        buffers = [self.state[parameter]["momentum_buffer"] for parameter in parameters]
        gradients = _gradients(parameters)
        torch._foreach_lerp_(buffers, gradients, 1 - self._momentum)  # pyright: ignore[reportPrivateImportUsage]

    def _nesterov(self, parameters: list[nn.Parameter]) -> Tensor:
        """The gradients of matrices of one shape, moved towards their momentum: (n, rows, columns)."""
        gradients = torch.stack(_gradients(parameters))
        past = torch.stack([self.state[parameter]["momentum_buffer"] for parameter in parameters])
        return gradients.lerp_(past, self._momentum)


def _gradients(parameters: list[nn.Parameter]) -> list[Tensor]:
    """One for each: every update gives all of them one."""
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def _orthogonalise_either_way(matrices: Tensor) -> Tensor:
    tall = matrices.size(1) > matrices.size(2)
    return orthogonalise(matrices.mT.contiguous()).mT if tall else orthogonalise(matrices)
