"""A batch of token sequences, padded, on its device."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class TensorBatch:
    """A padded batch on its device; see `data.batching.Batch` for the fields."""

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    num_tokens: int

    def __len__(self) -> int:
        return len(self.tgt_out)

    @property
    def positions(self) -> int:
        """Of both sides, padding included: what it takes of memory goes by them."""
        return self.src.numel() + self.tgt_out.numel()

    def rows(self, chosen: slice, pad_id: int) -> "TensorBatch":
        """Some of its sentences."""
        src, tgt_in, tgt_out = (tensor[chosen] for tensor in (self.src, self.tgt_in, self.tgt_out))
        return TensorBatch(src, tgt_in, tgt_out, int((tgt_out != pad_id).sum()))


def to_tensors(batch: Any, device: torch.device) -> TensorBatch:
    """A batch of arrays as tensors on a device; to a GPU they are on their way when this returns."""
    tensors = [torch.from_numpy(array) for array in (batch.src, batch.tgt_in, batch.tgt_out)]
    pinned = device.type == "cuda"  # a copy from pinned memory does not make the host wait for what was queued before
    if pinned:
        tensors = [tensor.pin_memory() for tensor in tensors]
    src, tgt_in, tgt_out = (tensor.to(device, non_blocking=pinned) for tensor in tensors)
    return TensorBatch(src, tgt_in, tgt_out, batch.num_tokens)
