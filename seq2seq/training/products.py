"""Which precision multiplies this model's matrices faster on this machine: measured, for no instruction set tells it.

A processor with bf16 instructions may be twice as fast in bf16 (AVX512-BF16 on AMD's Zen 4), or slower (AVX512-BF16 on
an Intel Xeon without AMX); one without them emulates bf16 and is many times slower.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .loss import CHUNK_ROWS
from .muon import iterate
from .optimizer import hidden_matrices

Precision = Literal["fp32", "bf16"]
DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}
Shapes = Counter[tuple[int, int]]
"""How many matrices there are of each shape."""

MULTIPLICATIONS = 300_000_000
"""About so many are made in either precision each time: some hundredths of a second. A larger model gets fewer rows."""
_FEWEST_ROWS = 64
_MOST_COLUMNS = 8192
"""A larger vocabulary is timed as one of this size."""
_ROUNDS = 3
_SECONDS = 0.02
"""Each product is timed so often in either precision, in turn, and for at least so long; the fastest time counts."""
_HOPELESS = 3
"""bf16 that takes so many times as long on what has been timed is timed no further."""

clock = time.perf_counter
"""What products are timed with: seconds."""


class Rates(NamedTuple):
    """GFLOP/s in either precision."""

    fp32: float
    bf16: float

    @property
    def faster(self) -> Precision:
        """The precision to compute in."""
        return "bf16" if self.bf16 > self.fp32 else "fp32"


class _Work(NamedTuple):
    """Something to time.

    Attributes:
        times: How often an update does it, beside the others.
        operations: Floating-point operations of doing it once.
        prepare: Given the precision, makes the function that does it.
    """

    times: int
    operations: float
    prepare: Callable[[torch.dtype], Callable[[], object]]


def layer_matrices(model: nn.Module) -> Shapes:
    """The matrices (in, out) that a batch is multiplied by."""
    return Counter((m.in_features, m.out_features) for m in model.modules() if isinstance(m, nn.Linear))


def muon_matrices(model: nn.Module) -> Shapes:
    """The matrices (rows, columns) that Muon makes orthogonal, lying as it turns them: rows <= columns."""
    shapes = (sorted(parameter.shape) for parameter in hidden_matrices(model))
    return Counter((rows, columns) for rows, columns in shapes)


def time_layers(matrices: Shapes, tokens: int) -> Rates:
    """Times the products of a batch of so many tokens with the matrices of the layers and of the output layer.

    Each matrix takes part in three: with the input, with the gradient of the output, and that of these two with each
    other. The loss makes the output layer's in chunks of `CHUNK_ROWS`; no more rows are timed.
    """
    timed: Shapes = Counter()
    for (inner, outer), count in matrices.items():
        timed[inner, min(outer, _MOST_COLUMNS)] += count
    affordable = MULTIPLICATIONS // (3 * sum(inner * outer for inner, outer in timed))
    rows = min(max(affordable, _FEWEST_ROWS), CHUNK_ROWS, tokens)

    def prepare(inner: int, outer: int, dtype: torch.dtype) -> Callable[[], tuple[Tensor, ...]]:
        shapes = (rows, inner), (outer, inner), (rows, outer)
        x, weight, grad = (torch.ones(shape, dtype=dtype) for shape in shapes)
        return lambda: (F.linear(x, weight), grad @ weight, grad.T @ x)

    return _time(
        _Work(count, 6 * rows * inner * outer, partial(prepare, inner, outer))
        for (inner, outer), count in _small_first(timed)
    )


def time_muon(matrices: Shapes) -> Rates:
    """Times one iteration of Muon on a matrix of each shape."""

    def prepare(rows: int, columns: int, dtype: torch.dtype) -> Callable[[], Tensor]:
        matrix = torch.full((1, rows, columns), 1 / (rows * columns), dtype=dtype)
        return lambda: iterate(matrix)

    return _time(
        _Work(count, 4 * rows * rows * columns + 2 * rows**3, partial(prepare, rows, columns))
        for (rows, columns), count in _small_first(matrices)
    )


def _small_first(matrices: Shapes) -> list[tuple[tuple[int, int], int]]:
    """In an order in which arithmetic that is emulated is found out soon."""
    return sorted(matrices.items(), key=lambda item: math.prod(item[0]))


def _time(works: Iterable[_Work]) -> Rates:
    operations, fp32, bf16 = 0.0, 0.0, 0.0
    for work in works:
        seconds = _fastest_seconds(*(work.prepare(DTYPES[name]) for name in ("fp32", "bf16")))
        operations += work.times * work.operations
        fp32 += work.times * seconds[0]
        bf16 += work.times * seconds[1]
        if _hopeless(fp32, bf16):
            break
    return Rates(operations / fp32 / 1e9, operations / bf16 / 1e9)


def _fastest_seconds(in_fp32: Callable[[], object], in_bf16: Callable[[], object]) -> list[float]:
    """How long the two take, at best."""
    seconds = [math.inf, math.inf]
    for function in (in_fp32, in_bf16):
        function()  # the first call prepares the code for these shapes
    rounds, total = 0, 0.0
    while rounds < _ROUNDS or total < _SECONDS:
        for index, function in enumerate((in_fp32, in_bf16)):
            start = clock()
            function()
            taken = clock() - start
            seconds[index] = min(seconds[index], taken)
            total += taken
        rounds += 1
        if _hopeless(*seconds):
            break
    return seconds


def _hopeless(fp32: float, bf16: float) -> bool:
    return bf16 > _HOPELESS * fp32
