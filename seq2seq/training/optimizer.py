"""What turns gradients into updates: AdamW, with Muon for the hidden matrices if configured; and the moving average."""

import math
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from ..model.embedding import embedding_parameters
from .batch import Group
from .config import TrainingConfig
from .muon import Muon


def matrices(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that multiply vectors, by name; embeddings and positions are looked up."""
    looked_up = {id(parameter) for parameter in embedding_parameters(model)}
    named = model.named_parameters()
    return {name: parameter for name, parameter in named if parameter.dim() == 2 and id(parameter) not in looked_up}


def hidden_matrices(model: nn.Module) -> list[nn.Parameter]:
    """The matrices inside the layers. `optimizer: muon` leaves them to Muon."""
    return [parameter for name, parameter in matrices(model).items() if ".layers." in name]


class AdamW:
    """Adam with weight decay beside the gradient, not in it (Loshchilov & Hutter 2019).

    Computes what `torch.optim.AdamW` does, by the same fused kernel, to the last bit.

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
            states = [self.state_of(parameter) for parameter in parameters]
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

    def state_of(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """The state of a parameter, all 0 before its first step."""
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
            state["exp_avg"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
            state["exp_avg_sq"] = torch.zeros_like(parameter, memory_format=torch.preserve_format)
        return state


class Optimizer:
    """AdamW (Loshchilov & Hutter 2019) on all parameters, or on those that Muon is not for.

    Weight decay is for matrices: biases, LayerNorms, embeddings and positions go without. Muon takes the matrices
    inside the layers, at a learning rate of its own that follows the same schedule.

    Args:
        model, config: What to optimise, and how.
        group: The processes that share Muon's work.
        dtype: Precision of Muon's matrix products.
    """

    def __init__(
        self,
        model: nn.Module,
        config: TrainingConfig,
        *,
        group: Group | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        hidden = hidden_matrices(model) if config.optimizer == "muon" else []
        taken = {id(parameter) for parameter in hidden}
        decaying = {id(parameter) for parameter in matrices(model).values()}
        decayed: list[nn.Parameter] = []
        others: list[nn.Parameter] = []
        for parameter in model.parameters():
            if id(parameter) not in taken:
                (decayed if id(parameter) in decaying else others).append(parameter)
        groups = [
            {"params": decayed, "weight_decay": config.weight_decay, "ratio": 1.0},
            {"params": others, "weight_decay": 0.0, "ratio": 1.0},
        ]
        groups = [group for group in groups if group["params"]]
        self._parts: list[AdamW | Muon] = [AdamW(groups, betas=config.adam_betas, eps=config.adam_eps)]
        if hidden:
            ratio = config.muon_learning_rate / config.learning_rate
            muon = {"params": hidden, "weight_decay": config.weight_decay, "ratio": ratio}
            self._parts.append(Muon([muon], dtype=dtype, group=group))

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The groups of all parts; `ratio` is a group's learning rate in terms of AdamW's."""
        return [group for part in self._parts for group in part.param_groups]

    def step(self, rate: float | Tensor) -> None:
        """Makes one update at this learning rate, Muon's part at one in proportion.

        Args:
            rate: In a CUDA graph a tensor () on the device, for the graph keeps numbers as they were.
        """
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = rate * group["ratio"]
            part.step()

    def state_tensors(self) -> list[Tensor]:
        """All that a step changes beside the parameters; made now, if there has been no step."""
        return [
            tensor
            for part in self._parts
            for group in part.param_groups
            for parameter in group["params"]
            for tensor in part.state_of(parameter).values()
        ]

    def tensors(self, model: nn.Module) -> dict[str, Tensor]:
        """The state as named tensors: `exp_avg/NAME`, `exp_avg_sq/NAME`, `step/NAME`, `momentum_buffer/NAME`."""
        return {
            f"{key}/{name}": value
            for name, parameter in model.named_parameters()
            for part in self._parts
            for key, value in part.state.get(parameter, {}).items()
        }

    def restore(self, model: nn.Module, tensors: dict[str, Tensor]) -> None:
        """Puts tensors from `tensors` back.

        Raises:
            ValueError: They are not those of this model: a name or a shape differs, one is missing, or a number cannot
                be.
        """
        states: dict[str, dict[str, Tensor]] = {}
        for full_name, value in tensors.items():
            key, _, name = full_name.partition("/")
            states.setdefault(name, {})[key] = value
        parameters = dict(model.named_parameters())
        for name, state in states.items():
            if name not in parameters:
                raise ValueError(f"the model has no weight {name[:60]!r}")
            parameter = parameters[name]
            part = next(part for part in self._parts if _has(part, parameter))
            _check_state(name, state, parameter, _ADAMW if part is self._parts[0] else _MUON)
            for key, value in state.items():
                on_host = key == "step" and parameter.device.type == "cpu"
                part.state[parameter][key] = value.clone() if on_host else value.to(parameter.device).clone()


_ADAMW, _MUON = {"step", "exp_avg", "exp_avg_sq"}, {"momentum_buffer"}
"""What the optimizers keep of each parameter."""


def _has(part: AdamW | Muon, parameter: nn.Parameter) -> bool:
    return any(parameter is one for group in part.param_groups for one in group["params"])


def _check_state(name: str, state: dict[str, Tensor], parameter: nn.Parameter, keys: set[str]) -> None:
    """Refuses what no optimizer can have kept of a parameter."""
    if state.keys() != keys:
        raise ValueError(f"{name} needs {', '.join(sorted(keys))}")
    for key, value in state.items():
        shape = () if key == "step" else parameter.shape
        if value.dtype != torch.float32 or value.shape != shape:
            raise ValueError(f"{key}/{name} has another shape or type than the weight")
        least = 0.0 if key in ("step", "exp_avg_sq") else -math.inf
        if not bool(value.isfinite().all()) or bool((value < least).any()):
            raise ValueError(f"{key}/{name} holds impossible numbers")


class MovingAverage:
    """Exponential moving average of the weights (Polyak averaging): shadow += (1 - decay) * (weight - shadow).

    At first the average would mostly be the random start, so the decay is (1 + t) / (10 + t), an average over about the
    last ninth of all updates, until that exceeds the one configured: after about 9 / (1 - decay) updates.

    The average starts as a copy of the weights.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._weights = list(model.parameters())
        self._names = [name for name, _ in model.named_parameters()]
        self._shadow = [weight.detach().clone() for weight in self._weights]

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Moves the average towards the weights, after update number `step`."""
        decay = min(self.decay, (1 + step) / (10 + step))
        weights = [weight.detach() for weight in self._weights]
        torch._foreach_lerp_(self._shadow, weights, 1 - decay)  # pyright: ignore[reportPrivateImportUsage]

    def tensors(self) -> dict[str, Tensor]:
        """The averages by parameter name."""
        return dict(zip(self._names, self._shadow, strict=True))

    @torch.no_grad()
    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Puts averages from `tensors` back."""
        for name, shadow in zip(self._names, self._shadow, strict=True):
            shadow.copy_(tensors[name])

    @torch.no_grad()
    def swap(self) -> None:
        """Exchanges averages and weights; called twice, around validation."""
        for weight, shadow in zip(self._weights, self._shadow, strict=True):
            kept = weight.detach().clone()
            weight.copy_(shadow)
            shadow.copy_(kept)
