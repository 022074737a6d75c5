"""One contestant of processors.py: a training step of one process, and its matrix products alone.

The products of one step are written down as they are made: shapes, how the numbers lie, precision. Each is then made
alone, again and again, and the fastest time counts. Their sum is what a step could take at best on this processor.
"""

import argparse
import json
import statistics
import time
from collections import Counter
from itertools import pairwise
from typing import Any

from profile_step import build_trainer, fastest_product  # first: it sets the number of threads before torch is loaded
from training import SIZES, VOCAB_SIZE

import torch  # isort: skip
from torch.utils._python_dispatch import TorchDispatchMode  # isort: skip

PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1, "addmm_": 1}
"""Operations that multiply matrices, and which argument the first matrix is."""

Layout = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
"""Shape, strides and precision of a matrix, or of several."""


class ProductRecorder(TorchDispatchMode):
    """Counts the products made inside it, by their two factors."""

    def __init__(self) -> None:
        super().__init__()
        self.products: Counter[tuple[Layout, Layout]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        first = PRODUCTS.get(func.overloadpacket.__name__)
        if first is not None:
            a, b = ((tuple(x.shape), x.stride(), x.dtype) for x in args[first : first + 2])
            self.products[a, b] += 1
        return func(*args, **(kwargs or {}))


def matrix(layout: Layout) -> torch.Tensor:
    """Ones that lie like that."""
    shape, strides, dtype = layout
    extent = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return torch.ones(extent, dtype=dtype).as_strided(shape, strides)


def main() -> None:
    """Trains some steps, then makes their products alone; prints milliseconds of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, required=True)
    parser.add_argument("--tokens", type=int, required=True, help="of a batch")
    parser.add_argument("--precision", choices=("auto", "fp32", "bf16"), required=True)
    parser.add_argument("--lengths", type=int, nargs="+", default=[8, 12, 16, 24], help="of the sentences")
    parser.add_argument("--rounds", type=int, default=3, help="through all lengths; default: 3")
    options = parser.parse_args()

    ends: list[float] = []
    count = len(options.lengths)
    trainer = build_trainer(options.size, options.tokens, VOCAB_SIZE, options.lengths, options.precision)
    timed = (1 + options.rounds) * count
    for _ in range(timed):
        trainer.update(trainer.config.learning_rate)
        ends.append(time.perf_counter())
    steps = [end - start for start, end in pairwise(ends)][count - 1 :]  # the first round warms up
    recorder = ProductRecorder()
    with recorder:
        for _ in range(count):
            trainer.update(trainer.config.learning_rate)
    seconds = operations = 0.0
    for (a, b), times in recorder.products.items():
        x, y = matrix(a), matrix(b)
        seconds += times * fastest_product(x, y) / count
        operations += times * 2 * x.numel() * y.size(-1) / count
    # All lengths weigh alike: the median of each over the rounds, then the mean of these.
    step = statistics.mean(statistics.median(steps[i::count]) for i in range(count))
    figures = {"step_ms": 1e3 * step, "products_ms": 1e3 * seconds, "share": seconds / step}
    rate = {"gflops": operations / seconds / 1e9, "precision": str(trainer.loss.dtype).removeprefix("torch.")}
    print(json.dumps(figures | rate))


if __name__ == "__main__":
    main()
