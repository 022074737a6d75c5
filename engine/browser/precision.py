"""Weights in fewer bits, and what that costs: 8 bits and a scale for each row, or half precision."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..exportable import Weights
from ..runs.weights import Model

_LARGEST_STEP = 127
_LARGEST_HALF = 65504.0


@dataclass(frozen=True)
class Stored:
    """A tensor as it is written.

    Attributes:
        type: Of its numbers.
        content: They, row by row, little-endian.
        scales: Of `int8`: what each row is to be multiplied by, float32.
    """

    type: Weights
    content: bytes
    scales: bytes = b""


def stored(tensor: Tensor, weights: Weights) -> Stored:
    """A tensor in few bytes. One that is no matrix, or too large for half precision, is float32."""
    values = tensor.to("cpu", torch.float32).numpy()
    if weights == "int8" and values.ndim == 2:
        steps, scales = _steps(values)
        return Stored("int8", steps.tobytes(), scales.astype("<f4").tobytes())
    if weights == "float16" and values.ndim == 2 and np.abs(values).max(initial=0) <= _LARGEST_HALF:
        return Stored("float16", values.astype("<f2").tobytes())
    return Stored("float32", values.astype("<f4").tobytes())


def _steps(values: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Each row as whole numbers from -127 to 127, and the scale that they are to be multiplied by."""
    scales = np.abs(values).max(axis=1, initial=0) / np.float32(_LARGEST_STEP)
    steps = np.rint(values / np.where(scales > 0, scales, np.float32(1))[:, None])
    return steps.astype(np.int8), scales.astype(np.float32)


@torch.no_grad()
def rounded(model: Model, weights: Weights) -> Model:
    """A model with the weights that whoever reads an export has."""
    found = copy.deepcopy(model)
    for parameter in found.parameters():
        if parameter.dim():
            parameter.copy_(_read(stored(parameter, weights), parameter.shape))
    return found


def _read(one: Stored, shape: Sequence[int]) -> Tensor:
    number = {"int8": "i1", "float16": "<f2", "float32": "<f4"}[one.type]
    values = np.frombuffer(one.content, number).reshape(shape).astype(np.float32)
    if one.scales:
        values *= np.frombuffer(one.scales, "<f4")[:, None]
    return torch.from_numpy(values)
