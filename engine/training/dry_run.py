"""What a run would be, and what it would take, without making it."""

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ...configs import RunConfig
from ...seq2seq.training.config import parse_duration
from ...seq2seq.training.schedule import NO_LIMIT
from ...system.errors import UsageError
from ...system.interrupts import Interrupts
from ...system.reporter import Quiet, Reporter, in_words
from ..device import peak_memory
from ..runs.directory import RunDirectory
from ..runs.weights import count_parameters
from ..workers.ranks import joined, started_by_torchrun
from .build import StoreBatches
from .run import Run, opened
from .train import FOLLOWER, brief_followers

WARM_UP = 3
"""The first updates are not timed: they find memory, and prepare code for their shapes."""
FEWEST_UPDATES, MOST_UPDATES = 8, 60
"""How many updates are timed, at least and at most."""
ENOUGH_SECONDS = 30.0
"""After these seconds no further update is timed."""


def dry_run(
    settings: RunConfig, directory: RunDirectory, *, tokenizer: Path | None, init_from: Path | None, reporter: Reporter
) -> list[str]:
    """Says what a run would be and what it would take: starts it, makes a few updates and a validation, and stops.

    The vocabulary, the tokenised data and what was measured stay in the directory, for the run itself.
    """
    if started_by_torchrun() is not None:
        raise UsageError("a dry run is made by one command: say --dry-run without torchrun")
    with opened(
        settings,
        directory,
        reporter=reporter,
        interrupts=Interrupts(),  # not entered: nothing needs to be saved
        tokenizer=tokenizer,
        init_from=init_from,
        dry=True,
    ) as run:
        if run.is_finished:
            return [*_sizes(run), f"time            none: the run is finished, at step {run.progress.step:,}"]
        return [*_sizes(run), *_costs(run, _measure(run, init_from))]


@dataclass(frozen=True)
class Costs:
    """What was measured."""

    seconds_per_update: float
    seconds_per_validation: float
    memory: int | None
    """The most bytes that all processes of this machine took together, libraries included; on a GPU those of tensors on
    it. None where the system does not tell."""

    def seconds(self, updates: int, validate_every: int) -> float:
        """Seconds for a number of updates, with a validation after every `validate_every` of them and at the end."""
        validations = -(-updates // validate_every)
        return updates * self.seconds_per_update + validations * self.seconds_per_validation


def _measure(run: Run, init_from: Path | None) -> Costs:
    """Makes a few updates and a validation, timed. Nothing of them is kept.

    A model that has learned nothing goes on writing until it is stopped; what it translates here is as long as the
    references are, on average.
    """
    if init_from is not None and run.saved is None:
        run.initialise(RunDirectory(init_from))
    report = run.data.dev.report
    ratio = report.tgt_tokens / report.src_tokens if report.src_tokens else 1.0
    decoding = replace(run.settings.decoding, max_length_factor=min(max(ratio, 0.01), 100), max_length_offset=1)
    validator = run.build_validator(Quiet(), decoding)
    with joined(run.ranks, FOLLOWER):
        brief_followers(run)
        seconds_per_update = _time_updates(run)
        run.trainer.model.eval()
        with run.ranks.others_idle():
            before = time.monotonic()
            validator(run.trainer.model, run.progress.step)
            seconds_per_validation = time.monotonic() - before
        costs = Costs(seconds_per_update, seconds_per_validation, _memory(run))
        run.ranks.stop()  # not after Ctrl-C: they may be in the middle of an update
        return costs


def _time_updates(run: Run) -> float:
    """Seconds that an update takes, on average."""
    ends = [time.monotonic()]
    while True:
        timed = len(ends) - 1 - WARM_UP
        if timed >= MOST_UPDATES or (timed >= FEWEST_UPDATES and ends[-1] - ends[0] >= ENOUGH_SECONDS):
            return (ends[-1] - ends[WARM_UP]) / timed
        rate = run.plan.learning_rate(run.progress.step + 1)
        run.ranks.send_rate(rate)
        run.trainer.update(rate)
        ends.append(time.monotonic())


def _memory(run: Run) -> int | None:
    """Bytes of memory that all ranks that the leader started have needed; on a GPU, those that its tensors took."""
    if run.device.type == "cuda":
        return torch.cuda.max_memory_allocated(run.device)
    return peak_memory(1 if run.ranks.threads is None else run.ranks.count)


def _sizes(run: Run) -> list[str]:
    """Lines with the sizes of vocabulary, model and data."""
    config, model, data = run.config, run.settings.model, run.data
    sizes = len(data.tokenizer.src), len(data.tokenizer.tgt)
    report, batches = data.train.report, StoreBatches(run.data.train, run.config, run.device).num_batches(0)
    steps = -(-batches // config.grad_accum_steps)
    pieces = f"{report.src_tokens:,} source and {report.tgt_tokens:,} target pieces"
    if report.text_only:
        pieces = f"{report.tgt_tokens:,} pieces"
    joint = data.tokenizer.joint
    return [
        f"vocabulary      {sizes[0]:,} pieces, joint"
        if joint
        else f"vocabularies    {sizes[0]:,} + {sizes[1]:,} pieces",
        f"model           {model.num_encoder_layers}+{model.num_decoder_layers} layers, d_model {model.d_model},"
        f" d_ff {model.d_ff}, {model.num_heads} heads, {model.norm_order}-norm,"
        f" {count_parameters(run.trainer.model):,} parameters",
        f"training data   {report.kept:,} {report.unit}s, {pieces}",
        f"validation      {len(data.dev_pairs):,} {report.unit}s",
        f"processes       {run.setup.division}",
        f"epoch           {batches:,} batches of at most {config.max_tokens_per_batch:,} tokens = {steps:,} steps",
        f"training        {_length(run, steps)}",
    ]


def _length(run: Run, steps_per_epoch: int) -> str:
    """What ends the run by its configuration, in words."""
    config = run.config
    limits: list[str] = []
    if config.max_steps is not None:
        limits.append(f"max_steps {config.max_steps:,} = {config.max_steps / steps_per_epoch:.1f} epochs")
    if config.max_time is not None:
        limits.append(f"max_time {config.max_time}")
    length = " or ".join(limits) or "no limit"
    if config.patience:
        length += f"; ends by itself, patience: {config.patience} validations"
    if run.saved is not None:
        length += f"; goes on at step {run.saved.step:,}"
    return length


def _costs(run: Run, measured: Costs) -> list[str]:
    """Time and memory of the run."""
    config, plan = run.config, run.plan
    lines = [
        f"an update       {measured.seconds_per_update:.3g} s, a validation about"
        f" {measured.seconds_per_validation:.2g} s"
    ]
    done = run.saved.step if run.saved else 0
    updates = plan.limit - done if plan.limit < NO_LIMIT else math.inf
    if config.max_time is not None and plan.pending:
        per_update = measured.seconds_per_update + measured.seconds_per_validation / config.validate_every
        updates = min(updates, max(int(parse_duration(config.max_time) / per_update), 1))
    if updates == math.inf:
        seconds = measured.seconds(1000, config.validate_every)
        lines.append(
            f"time            about {in_words(seconds)} for 1,000 updates; how many it takes, validation tells"
        )
    else:
        most = " at most; less if validation stops improving sooner" if config.patience else ""
        seconds = measured.seconds(int(updates), config.validate_every)
        lines.append(f"time            about {in_words(seconds)} for {updates:,} updates{most}")
    if measured.memory is not None:
        processes = f", in {run.ranks.count} processes" if run.ranks.count > 1 else ""
        where = " on the GPU" if run.device.type == "cuda" else processes
        lines.append(f"memory          about {measured.memory / 1e9:.1f} GB at the most{where}")
    return lines
