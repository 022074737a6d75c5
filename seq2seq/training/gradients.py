"""All gradients of a model in one flat tensor: added over micro-batches and ranks, normalised and clipped at once."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Totals(NamedTuple):
    """Of one update."""

    loss_sum: float
    num_tokens: int
    divided: int
    """Batches computed in pieces."""
    grad_norm: float
    """Divided by the number of tokens, before clipping."""


class GradientBuffer:
    """The gradients of one update. Beside them stand the summed loss, the tokens, and the batches computed in pieces.

    Each parameter's `grad` is a view of the buffer, so that a backward pass adds to it and one all-reduce takes all.
    """

    def __init__(self, model: nn.Module) -> None:
        parameters = list(model.parameters())
        sizes = [parameter.numel() for parameter in parameters]
        self.flat = torch.zeros(sum(sizes) + 3, device=parameters[0].device)
        """Gradients one after the other, then the summed loss, the tokens, and the batches computed in pieces."""
        self._gradients, self._totals = self.flat[:-3], self.flat[-3:]
        for parameter, gradient in zip(parameters, self._gradients.split(sizes), strict=True):
            parameter.grad = gradient.view_as(parameter)

    def clear(self) -> None:
        """Begins an update."""
        self.flat.zero_()

    def count(self, loss: Tensor, num_tokens: int) -> None:
        """Adds the totals of one micro-batch, or of a piece of it, whose backward pass has added its gradients."""
        self._totals[0] += loss.detach()
        self._totals[1] += num_tokens

    def count_divided(self) -> None:
        """Counts a micro-batch that was computed in pieces."""
        self._totals[2] += 1

    def normalise_and_clip(self, max_norm: float) -> "Totals":
        """Divides by the number of tokens, then scales down to a norm of at most `max_norm` (0: any), in one pass.

        The only place in an update where the host waits for the device.
        """
        loss_sum, num_tokens, divided, norm_of_sum = torch.cat([self._totals, self._gradients.norm()[None]]).tolist()
        norm = norm_of_sum / num_tokens
        excess = max(norm / max_norm, 1.0) if max_norm else 1.0
        self._gradients.div_(num_tokens * excess)
        return Totals(loss_sum, int(num_tokens), int(divided), norm)
