"""AdamW, gradient clipping's norm, and the moving average of the weights."""

import torch
from torch import Tensor, nn

from .config import TrainingConfig


def build_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019) with the paper's betas and epsilon unless configured otherwise.

    Weight decay is for matrices: biases, LayerNorms, embeddings and positions go without.
    """
    decayed: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        matrix = parameter.dim() == 2 and not name.endswith(("tokens.weight", "positions.weight"))
        (decayed if matrix else others).append(parameter)
    groups = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=config.adam_betas, eps=config.adam_eps, fused=True)


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """The optimizer's state as named tensors: `exp_avg/NAME`, `exp_avg_sq/NAME`, `step/NAME`."""
    return {
        f"{key}/{name}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module, tensors: dict[str, Tensor]) -> None:
    """Puts tensors from `optimizer_tensors` back.

    Raises:
        KeyError: A tensor belongs to no parameter of the model.
    """
    parameters = dict(model.named_parameters())
    for full_name, value in tensors.items():
        key, _, name = full_name.partition("/")
        parameter = parameters[name]
        on_host = key == "step" and parameter.device.type == "cpu"
        optimizer.state[parameter][key] = value.clone() if on_host else value.to(parameter.device).clone()


class MovingAverage:
    """Exponential moving average of the weights (Polyak averaging): shadow += (1 - decay) * (weight - shadow).

    While fewer than about 1 / (1 - decay) updates have been made the average would mostly be the random start, so the
    decay is (1 + t) / (10 + t) until that exceeds the one configured.

    Args:
        model: Whose weights to follow; the average starts as a copy of them.
        decay: Between 0 and 1.
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
