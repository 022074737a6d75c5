"""Where the time of a training step goes: self CPU time by operation, of one rank with one thread."""

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common import BenchmarkError, machine, markdown_table, note, report_errors
from training import SIZES

# Before torch is loaded.
os.environ["OMP_NUM_THREADS"] = "1"


REPEATS = 10
"""Of each product; the fastest counts."""


class RandomBatches:
    """A `BatchProvider` of random ids: one batch after another of sentences of one length, all lengths in turn.

    Args:
        lengths: Pieces of the sentences of each batch, special piece included.
        tokens: Positions of a batch.
        vocab_size: Ids are drawn from 4 up to it.
    """

    def __init__(self, lengths: list[int], tokens: int, vocab_size: int) -> None:
        import numpy as np

        from tfm.data.batching import training_rows
        from tfm.seq2seq.training.batch import Batch

        rng = np.random.default_rng(1)
        self._batches: list[Any] = []
        for length in lengths:
            rows = rng.integers(4, vocab_size, (max(1, tokens // length), 2, length - 1)).tolist()
            self._batches.append(Batch.of(training_rows(rows)))

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        del epoch
        return len(self._batches)

    def load_part(self, epoch: int, index: int, part: int, parts: int) -> Any:
        """One of them, whole."""
        del epoch
        assert (part, parts) == (0, 1)
        return self._batches[index]


def build_trainer(
    size: str,
    tokens: int,
    vocab_size: int,
    lengths: list[int],
    precision: str,
) -> Any:
    """tfm's own training loop, of one process with one thread, over random batches.

    Args:
        size: Of the model.
        tokens, vocab_size, lengths: See `RandomBatches`.
        precision: `auto` measures, as `tfm train` does.
    """
    import torch

    from tfm.engine.device import keep_freed_memory
    from tfm.engine.training.precision import DTYPES, layer_matrices, time_layers
    from tfm.seq2seq.model import ModelConfig, Transformer
    from tfm.seq2seq.training.config import TrainingConfig
    from tfm.seq2seq.training.loss import NextTokenLoss
    from tfm.seq2seq.training.optimizer import Optimizer
    from tfm.seq2seq.training.update import Trainer

    keep_freed_memory()
    torch.set_num_threads(1)
    sizes: dict[str, Any] = {**SIZES[size], "max_seq_len": max(lengths), "dropout": 0.3}
    config = TrainingConfig(label_smoothing=0.1, max_tokens_per_batch=tokens)
    model = Transformer(ModelConfig(**sizes), src_vocab_size=vocab_size, tgt_vocab_size=vocab_size, shared_vocab=True)
    if precision == "auto":
        precision = time_layers(layer_matrices(model), tokens).faster
    dtype = DTYPES[precision]  # pyright: ignore[reportArgumentType]
    return Trainer(
        model=model,
        optimizer=Optimizer(model, config, dtype=dtype),
        average=None,
        config=config,
        loss=NextTokenLoss(config.label_smoothing, dtype),
        provider=RandomBatches(lengths, tokens, vocab_size),
    )


def profile(size: str, tokens: int, vocab_size: int, lengths: list[int], precision: str, steps: int) -> Any:
    """The profiler, after `steps` steps; as many before them do not count."""
    import torch

    warmup = max(steps, len(lengths))
    schedule = torch.profiler.schedule(wait=0, warmup=warmup, active=steps, repeat=1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], schedule=schedule) as profiler:
        trainer = build_trainer(size, tokens, vocab_size, lengths, precision)
        model = json.dumps(asdict(trainer.model.config))
        note(
            f"* model {model}, vocabulary {vocab_size:,}, {str(trainer.loss.dtype).removeprefix('torch.')}\n"
            f"* {steps} steps, batches of sentences of {', '.join(map(str, lengths))} pieces in turn, random ids"
        )
        for _ in range(warmup + steps):
            trainer.update(trainer.config.learning_rate)
            profiler.step()
    return profiler


def fastest_product(x: Any, y: Any) -> float:
    """Seconds that the product of two tensors takes, the best of `REPEATS`."""
    import torch

    out = x @ y
    times: list[float] = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        torch.matmul(x, y, out=out)
        times.append(time.perf_counter() - start)
    return min(times)


def product_rates(rows: int, inner: int, columns: int) -> str:
    """How fast this processor multiplies matrices of the output layer's sizes: what a step could reach at best."""
    import torch

    rates: list[str] = []
    for dtype in (torch.bfloat16, torch.float32):
        x, weight = torch.randn(rows, inner, dtype=dtype), torch.randn(inner, columns, dtype=dtype)
        rate = 2 * rows * inner * columns / fastest_product(x, weight) / 1e9
        rates.append(f"{str(dtype).removeprefix('torch.')} {rate:,.0f} GFLOP/s")
    return (
        f"* products of {rows:,} x {inner} and {inner} x {columns:,} alone, the best of {REPEATS}: {', '.join(rates)}"
    )


def table(profiler: Any, steps: int, rows: int) -> str:
    """The operations that take most of the time, and the rest."""
    events = [event for event in profiler.key_averages() if not event.key.startswith("ProfilerStep")]
    events.sort(key=lambda event: -event.self_cpu_time_total)
    total = sum(event.self_cpu_time_total for event in events)
    if not total:
        raise BenchmarkError("the profiler saw nothing")

    def row(name: str, chosen: list[Any]) -> tuple[str, ...]:
        time, calls = sum(e.self_cpu_time_total for e in chosen), sum(e.count for e in chosen)
        return name, f"{time / steps / 1000:,.2f}", f"{100 * time / total:.1f} %", f"{calls / steps:,.1f}"

    lines = [row(f"`{event.key}`", [event]) for event in events[:rows]]
    lines += [row("all others", events[rows:]), row("sum", events)]
    return markdown_table(("operation", "self CPU ms a step", "share", "calls a step"), lines)


def main() -> None:
    """Parses the command line, profiles, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="tiny", help="of the model; default: tiny")
    parser.add_argument("--tokens", type=int, default=4096, help="of a batch; default: 4096")
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument(
        "--lengths", type=int, nargs="+", default=[8, 12, 16, 24], help="of the sentences; default: 8 12 16 24"
    )
    parser.add_argument("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    parser.add_argument("--steps", type=int, default=8, help="profiled, after as many that are not; default: 8")
    parser.add_argument("--rows", type=int, default=25, help="of the table; default: 25")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="also write a Chrome trace (chrome://tracing)")
    options = parser.parse_args()

    print(f"## One training step, by operation\n\n{machine()}")
    settings = options.vocab_size, options.lengths, options.precision, options.steps
    profiler = profile(options.size, options.tokens, *settings)
    note(product_rates(options.tokens, SIZES[options.size]["d_model"], options.vocab_size))
    note(table(profiler, options.steps, options.rows))
    if options.trace is not None:
        profiler.export_chrome_trace(str(options.trace))


if __name__ == "__main__":
    report_errors(main)
