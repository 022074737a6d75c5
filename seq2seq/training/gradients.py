"""All gradients of a model in one flat tensor: added over micro-batches and ranks, normalised and clipped at once."""

import torch
from torch import Tensor, nn


class GradientBuffer:
    """The gradients of one update, and beside them the summed loss and the tokens that they are the gradients of.

    Each parameter's `grad` is a view of the buffer, so that a backward pass adds to it and one all-reduce takes all.

    Args:
        model: On its device; its parameters' gradients live here from now on.
    """

    def __init__(self, model: nn.Module) -> None:
        parameters = list(model.parameters())
        sizes = [parameter.numel() for parameter in parameters]
        self.flat = torch.zeros(sum(sizes) + 2, device=parameters[0].device)
        """Gradients one after the other, then the summed loss, then the number of tokens."""
        self._gradients, self._totals = self.flat[:-2], self.flat[-2:]
        for parameter, gradient in zip(parameters, self._gradients.split(sizes), strict=True):
            parameter.grad = gradient.view_as(parameter)

    def clear(self) -> None:
        """Begins an update."""
        self.flat.zero_()

    def count(self, loss: Tensor, num_tokens: int) -> None:
        """Adds the totals of one micro-batch, whose backward pass has added its gradients."""
        self._totals[0] += loss.detach()
        self._totals[1] += num_tokens

    def normalise_and_clip(self, max_norm: float) -> tuple[float, int, float]:
        """Divides by the number of tokens, then scales down to a norm of at most `max_norm` (0: any), in one pass.

        The only place in an update where the host waits for the device.

        Returns:
            The loss, summed over target tokens; their number; the norm after division, before scaling.
        """
        loss_sum, num_tokens, norm_of_sum = torch.cat([self._totals, self._gradients.norm()[None]]).tolist()
        norm = norm_of_sum / num_tokens
        excess = max(norm / max_norm, 1.0) if max_norm else 1.0
        self._gradients.div_(num_tokens * excess)
        return loss_sum, int(num_tokens), norm
