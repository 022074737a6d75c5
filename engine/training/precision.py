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

from ...seq2seq.training.loss import CHUNK_ROWS
from ...seq2seq.training.muon import iterate
from ...seq2seq.training.optimizer import hidden_matrices

Precision = Literal["fp32", "bf16"]
DTYPES: dict[Precision, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16}
Shapes = Counter[tuple[int, int]]
"""How many matrices there are of each shape."""

MULTIPLICATIONS = 200_000_000
"""About this many are timed with a matrix, in a hundredth of a second: a large one is timed with fewer rows."""
_FEWEST_ROWS = 64
_LARGEST_OUTPUT = 8192
"""A larger vocabulary is timed as one of this size."""
_LARGEST_MUON = 512, 2048
"""A larger matrix of Muon is timed as one of this size."""
_ROUNDS = 3
"""Each product is timed at least this many times in both precisions, in turn; the fastest time counts."""
_SECONDS = 0.02
"""Each product is timed for at least these seconds, both precisions together."""
_HOPELESS = 3
"""If bf16 takes this many times as long as fp32 for one product, it is not timed for the others."""

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

    times: float
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
    """Times the products of a batch of `tokens` tokens with the matrices of the layers and of the output layer.

    Each matrix takes part in three: with the input, with the gradient of the output, and that of these two with each
    other. The loss makes the output layer's in chunks of `CHUNK_ROWS`; no more rows are timed.
    """

    def prepare(rows: int, inner: int, outer: int, dtype: torch.dtype) -> Callable[[], tuple[Tensor, ...]]:
        shapes = (rows, inner), (outer, inner), (rows, outer)
        x, weight, grad = (torch.ones(shape, dtype=dtype) for shape in shapes)
        return lambda: (F.linear(x, weight), grad @ weight, grad.T @ x)

    works: list[_Work] = []
    for (inner, outer), count in _small_first(matrices, (math.inf, _LARGEST_OUTPUT)):
        affordable = MULTIPLICATIONS // (3 * inner * outer)
        rows = min(max(affordable, _FEWEST_ROWS), CHUNK_ROWS, tokens)
        works.append(_Work(count * tokens / rows, 6 * rows * inner * outer, partial(prepare, rows, inner, outer)))
    return _time(works)


def time_muon(matrices: Shapes) -> Rates:
    """Times one iteration of Muon on a matrix of each shape."""

    def prepare(rows: int, columns: int, dtype: torch.dtype) -> Callable[[], Tensor]:
        matrix = torch.full((1, rows, columns), 1 / (rows * columns), dtype=dtype)
        return lambda: iterate(matrix)

    return _time(
        _Work(count, 4 * rows * rows * columns + 2 * rows**3, partial(prepare, rows, columns))
        for (rows, columns), count in _small_first(matrices, _LARGEST_MUON)
    )


def _small_first(matrices: Shapes, largest: tuple[float, float]) -> list[tuple[tuple[int, int], int]]:
    """The matrices, none larger than that, in an order in which arithmetic that is emulated is found out soon."""
    cut: Shapes = Counter()
    for shape, count in matrices.items():
        rows, columns = (int(min(size, most)) for size, most in zip(shape, largest, strict=True))
        cut[rows, columns] += count
    return sorted(cut.items(), key=lambda item: math.prod(item[0]))


def _time(works: Iterable[_Work]) -> Rates:
    """The rates over all works; that of bf16 over the first of them, if it is hopeless there."""
    timed: list[Precision] = ["fp32", "bf16"]
    operations, seconds = (dict.fromkeys(timed, 0.0) for _ in range(2))
    for work in works:
        fastest = _fastest_seconds([work.prepare(DTYPES[precision]) for precision in timed])
        for precision, taken in zip(timed, fastest, strict=True):
            operations[precision] += work.times * work.operations
            seconds[precision] += work.times * taken
        if _hopeless(fastest):
            timed = ["fp32"]
    rates = {precision: operations[precision] / seconds[precision] / 1e9 for precision in seconds}
    return Rates(**rates)


def _fastest_seconds(functions: list[Callable[[], object]]) -> list[float]:
    """How long each takes, at best."""
    seconds = [math.inf] * len(functions)
    for function in functions:
        function()  # the first call prepares the code for these shapes
    rounds, total = 0, 0.0
    while rounds < _ROUNDS or total < _SECONDS:
        for index, function in enumerate(functions):
            start = clock()
            function()
            taken = clock() - start
            seconds[index] = min(seconds[index], taken)
            total += taken
        rounds += 1
        if rounds > 1 and _hopeless(seconds):  # not after one round: a pause of the machine would decide
            break
    return seconds


def _hopeless(fastest: list[float]) -> bool:
    """Whether the second, bf16, is far behind the first."""
    return len(fastest) > 1 and fastest[1] > _HOPELESS * fastest[0]
