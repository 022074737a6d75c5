"""AdamW: Adam with weight decay beside the gradient, not in it (Loshchilov & Hutter 2019)."""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw


class AdamW:
    """Computes what `torch.optim.AdamW` does, by the same fused kernel, to the last bit.

    To make a `torch.optim.Optimizer` imports torch's compiler, which nothing else here needs: more than a second of
    each start, in each process, and a hundred megabytes.

    Args:
        param_groups: Each with `params` and `weight_decay`; `step` also needs `lr`.
        betas: Shares of the past in the two moments.
        eps: Added to the root of the second moment.

    Attributes:
        state: Of each parameter: `exp_avg`, `exp_avg_sq` and `step`.
    """

    def __init__(self, param_groups: list[dict[str, Any]], *, betas: tuple[float, float], eps: float) -> None:
        self.param_groups, self._betas, self._eps = param_groups, betas, eps
        self.state: defaultdict[nn.Parameter, dict[str, Tensor]] = defaultdict(dict)

    @torch.no_grad()
    def step(self) -> None:
        """Makes one update."""
        for group in self.param_groups:
            parameters = [parameter for parameter in group["params"] if parameter.grad is not None]
            states = [self._state(parameter) for parameter in parameters]
            adamw(
                parameters,
                [parameter.grad for parameter in parameters],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                [state["step"] for state in states],
                fused=True,
                amsgrad=False,
                beta1=self._betas[0],
                beta2=self._betas[1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=self._eps,
                maximize=False,
            )

    def _state(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
            state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
            state["exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        return state
