"""Dropout whose mask is cheap to draw on a CPU. An update seeds it for each micro-batch (training/update.py)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Dropout(nn.Module):
    """Zeroes each element with probability `rate` while training and scales the others by 1 / (1 - rate).

    The mask comes from torch's global generator, which the training loop seeds for each micro-batch with a number
    computed from (seed, step, micro-batch): no generator state has to be saved for a run to resume exactly.

    On a CPU torch draws one random number per element, serially. Here one 64-bit number gives eight elements a byte
    each, and an element is kept where its byte is at least 256 * rate; the rate is therefore rounded to a multiple of
    1/256 (at least one, at most 255 of them), and the scale follows the rounded rate, so that the expectation is exact.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        mask, scale = self._byte_mask(x)
        return x * mask.mul_(scale)

    def add_to(self, residual: Tensor, x: Tensor) -> Tensor:
        """residual + dropout(x), in one pass where that is faster."""
        if not self.training or self.rate == 0 or x.device.type != "cpu":
            return residual + self(x)
        mask, scale = self._byte_mask(x)
        return torch.addcmul(residual, x, mask, value=scale)

    def _byte_mask(self, x: Tensor) -> tuple[Tensor, float]:
        """A tensor like x of ones, and zeros with probability threshold / 256; and 256 / (256 - threshold)."""
        threshold = max(1, min(255, round(self.rate * 256)))
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        random_bytes = words.view(torch.uint8)[: x.numel()].view(x.shape)
        # Comparing into bytes, not booleans, takes the vectorised path.
        keep = torch.ge(random_bytes, threshold, out=torch.empty_like(random_bytes))
        return keep.to(x.dtype), 256 / (256 - threshold)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"
