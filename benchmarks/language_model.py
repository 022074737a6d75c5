"""tfm's language model beside transformers' GPT-2: perplexity of a text after as many steps on the same pieces.

Takes a run that `tfm train --text` has finished, and trains a GPT-2 of its sizes on the batches that it had, in their
order: AdamW, a cosine after the run's warm-up, bf16 autocast. With several --learning-rate all are trained; the lowest
perplexity counts. Both are scored in fp32 by the weights of their last step. The run's cache must be there. Minutes are
those of the updates, for tfm those of its last start, validations included.
"""

import argparse
import math
import shlex
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from common import BenchmarkError, machine, markdown_table, note, report_errors, say
from gpt import build_gpt
from torch.nn import functional as F

from tfm.configs import RunConfig
from tfm.data.tokenizer import PAD_ID
from tfm.engine.evaluation.loss import SetLoss, evaluate_loss
from tfm.engine.runs.checkpoint import checkpoint_step
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.runs.load import load_run
from tfm.engine.runs.weights import count_parameters
from tfm.engine.training.build import StoreBatches
from tfm.engine.training.language_model import bytes_read
from tfm.engine.training.prepare import prepare_data
from tfm.seq2seq.training.batch import Group, MicroBatches
from tfm.seq2seq.training.progress import Progress
from tfm.system.reporter import Console

CPU = torch.device("cpu")
LOG_EVERY = 50


@dataclass(frozen=True)
class Task:
    """What both models learn, and how.

    Attributes:
        settings: The run's.
        steps: Updates.
        train, dev: Batches of pieces.
        vocab_size: Of the tokenizer.
        num_bytes: Of the validation text, a line end counting as one.
    """

    settings: RunConfig
    steps: int
    train: StoreBatches
    dev: StoreBatches
    vocab_size: int
    num_bytes: int


@dataclass(frozen=True)
class Row:
    """A model of the table."""

    name: str
    parameters: int
    seconds: float
    loss: SetLoss

    def cells(self, num_bytes: int) -> list[str]:
        """As they stand in the table."""
        per_byte = math.exp(self.loss.loss * self.loss.num_tokens / num_bytes)
        minutes = f"{self.seconds / 60:.1f}"
        return [self.name, f"{self.parameters:,}", minutes, f"{self.loss.ppl:.2f}", f"{per_byte:.4f}"]


class Logits:
    """A GPT-2 as `evaluate_loss` calls a model."""

    pad_id = PAD_ID

    def __init__(self, gpt: Any) -> None:
        self._gpt = gpt

    def __call__(self, src: torch.Tensor, tgt_in: torch.Tensor) -> torch.Tensor:
        """Logits (B, T, V) of the next pieces; the source is empty."""
        return self._gpt(tgt_in, use_cache=False).logits


def read_task(run: RunDirectory, steps: int) -> Task:
    """The data of a run that has been trained."""
    settings = run.configuration()
    prepared = prepare_data(settings, run, given_tokenizer=None, reporter=Console())
    texts = [text for _, text in prepared.dev_pairs]
    return Task(
        settings,
        steps,
        StoreBatches(prepared.train, settings.training, CPU),
        StoreBatches(prepared.dev, settings.training, CPU),
        len(prepared.tokenizer.tgt),
        bytes_read(texts, prepared.tokenizer, settings.model.max_seq_len - 1),
    )


def train_gpt2(task: Task, learning_rate: float) -> Row:
    """Trains a GPT-2 as long as the run was, and scores it."""
    from transformers import get_cosine_schedule_with_warmup  # pyright: ignore[reportMissingImports]

    model, training = asdict(task.settings.model), task.settings.training
    torch.manual_seed(training.seed)
    gpt = build_gpt(model, task.vocab_size, model["max_seq_len"], activation="gelu_new").train()
    decayed = [weight for weight in gpt.parameters() if weight.dim() > 1]
    others = [weight for weight in gpt.parameters() if weight.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.95), fused=True)
    schedule = get_cosine_schedule_with_warmup(optimizer, training.warmup_steps, task.steps)
    batches = MicroBatches(task.train, training.grad_accum_steps, 1, Group())
    progress, start = Progress(), time.monotonic()
    for step in range(1, task.steps + 1):
        optimizer.zero_grad(set_to_none=True)
        micro_batches = [batch for _, batch in batches.take(progress)]
        num_tokens = sum(batch.num_tokens for batch in micro_batches)
        total = 0.0
        for batch in micro_batches:
            with torch.autocast("cpu", torch.bfloat16):
                logits = gpt(batch.tgt_in, use_cache=False).logits  # (B, T, V)
            nats = F.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=PAD_ID, reduction="sum")
            (nats / num_tokens).backward()
            total += nats.item() / num_tokens
        torch.nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % LOG_EVERY == 0:
            say(f"GPT-2, {learning_rate:g}: step {step:,} of {task.steps:,}, loss {total:.3f}")
    seconds = time.monotonic() - start
    found = evaluate_loss(Logits(gpt.eval()), task.dev.all())
    return Row(f"GPT-2, AdamW at {learning_rate:g}", count_parameters(gpt), seconds, found)


def score_run(task: Task, run: RunDirectory) -> Row:
    """The run's last weights."""
    trained = load_run(run.path, "language model", checkpoint="last", device="cpu")
    clock = run.timing.records()
    seconds = clock[-1]["seconds"] if clock else math.nan
    return Row("tfm", count_parameters(trained.model), seconds, evaluate_loss(trained.model, task.dev.all()))


def main() -> None:
    """Parses the command line, trains, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True, help="a language model of tfm, trained to its end")
    parser.add_argument("--learning-rate", type=float, action="append", help="of GPT-2; default: 1e-3")
    options = parser.parse_args()
    run = RunDirectory(options.run)
    last = run.find_model("last").checkpoint
    task = read_task(run, checkpoint_step(last))
    if not task.settings.data.text:
        raise BenchmarkError(f"{run} was not trained on --text")
    print(f"## Language models\n\n{machine()}\n* `{shlex.join(['language_model.py', *sys.argv[1:]])}`", flush=True)
    note(f"* {task.steps:,} steps, vocabulary of {task.vocab_size:,}")
    rows = [score_run(task, run), *(train_gpt2(task, rate) for rate in options.learning_rate or [1e-3])]
    header = ("model", "parameters", "minutes of training", "perplexity per piece", "per byte")
    note(markdown_table(header, [row.cells(task.num_bytes) for row in rows]))


if __name__ == "__main__":
    report_errors(main)
