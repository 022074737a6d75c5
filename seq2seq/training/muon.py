"""Muon: momentum whose updates are made orthogonal (Jordan et al. 2024), for the matrices inside the layers."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate, groupby
from typing import Any

import torch
from torch import Tensor, nn

from .batch import Group

_COEFFICIENTS = 3.4445, -4.7750, 2.0315
_ITERATIONS = 5
MOMENTUM = 0.95
"""Share of the past in the momentum."""


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
        dtype: Precision of the iteration.
        group: The processes that share it.

    Attributes:
        state: Of each matrix: `momentum_buffer`.
    """

    def __init__(
        self,
        param_groups: list[dict[str, Any]],
        *,
        dtype: torch.dtype = torch.float32,
        group: Group | None = None,
    ) -> None:
        self.param_groups, self._dtype = param_groups, dtype
        self._group = group or Group()
        self.state: defaultdict[nn.Parameter, dict[str, Tensor]] = defaultdict(dict)

    @torch.no_grad()
    def step(self) -> None:
        """Makes one update."""
        for group in self.param_groups:
            rate, decay = group["lr"], group["weight_decay"]
            self._add_to_momentum(group["params"])
            by_scale: defaultdict[float, list[tuple[nn.Parameter, Tensor]]] = defaultdict(list)
            for parameter, direction in self._directions(group["params"]):
                rows, columns = parameter.shape
                by_scale[max(1.0, rows / columns) ** 0.5].append((parameter, direction))
            for scale, alike in by_scale.items():  # in few launches of kernels
                parameters, directions = zip(*alike, strict=True)
                torch._foreach_mul_(parameters, 1 - rate * decay)  # pyright: ignore[reportPrivateImportUsage]
                if isinstance(rate, Tensor):
                    torch._foreach_mul_(directions, -rate * scale)  # pyright: ignore[reportPrivateImportUsage]
                    torch._foreach_add_(parameters, directions)  # pyright: ignore[reportPrivateImportUsage]
                else:
                    torch._foreach_add_(parameters, directions, alpha=-(rate * scale))  # pyright: ignore[reportPrivateImportUsage]

    def _directions(self, parameters: list[nn.Parameter]) -> Iterator[tuple[nn.Parameter, Tensor]]:
        """Each matrix with its orthogonal direction (rows, columns). Each process computes a share of each shape.

        All directions lie in one tensor, those of a process side by side, so that they are gathered at once.
        """
        shares, rank = self._shares(parameters), self._group.rank
        sizes = [sum(parameter.numel() for parameter in share) for share in shares]
        flat = torch.empty(sum(sizes), dtype=self._dtype, device=parameters[0].device)
        if shares[rank]:
            stacks = [list(alike) for _, alike in groupby(shares[rank], key=lambda parameter: parameter.shape)]
            found = [_orthogonalise_either_way(self._nesterov(stack).to(self._dtype)).flatten() for stack in stacks]
            torch.cat(found, out=flat.split(sizes)[rank])
        self._group.all_gather(flat, list(accumulate(sizes)))
        ordered = [parameter for share in shares for parameter in share]
        directions = flat.float().split([parameter.numel() for parameter in ordered])
        for parameter, direction in zip(ordered, directions, strict=True):
            yield parameter, direction.view(parameter.shape)

    def _shares(self, parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
        """The matrices of each process: of each shape about equally many, those of one shape side by side."""
        by_shape: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
        for parameter in parameters:
            by_shape[parameter.shape].append(parameter)
        count = self._group.count
        shares: list[list[nn.Parameter]] = [[] for _ in range(count)]
        for alike in by_shape.values():
            for rank, share in enumerate(shares):
                share += alike[len(alike) * rank // count : len(alike) * (rank + 1) // count]
        return shares

    def _add_to_momentum(self, parameters: list[nn.Parameter]) -> None:
        """Moves the momentum of each matrix towards its gradient."""
        buffers = [self.state_of(parameter)["momentum_buffer"] for parameter in parameters]
        gradients = _gradients(parameters)
        torch._foreach_lerp_(buffers, gradients, 1 - MOMENTUM)  # pyright: ignore[reportPrivateImportUsage]

    def state_of(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """The state of a matrix, all 0 before its first step."""
        state = self.state[parameter]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(parameter)
        return state

    def _nesterov(self, parameters: list[nn.Parameter]) -> Tensor:
        """The gradients of matrices of one shape, moved towards their momentum: (n, rows, columns)."""
        gradients = torch.stack(_gradients(parameters))
        past = torch.stack([self.state[parameter]["momentum_buffer"] for parameter in parameters])
        return gradients.lerp_(past, MOMENTUM)


def _gradients(parameters: list[nn.Parameter]) -> list[Tensor]:
    """One for each: every update gives all of them one."""
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def _orthogonalise_either_way(matrices: Tensor) -> Tensor:
    tall = matrices.size(1) > matrices.size(2)
    return orthogonalise(matrices.mT.contiguous()).mT if tall else orthogonalise(matrices)
