"""What a run would be, and what it would take, without making it."""

import math
from pathlib import Path

from ...configs import RunConfig
from ...seq2seq.training.config import parse_duration
from ...seq2seq.training.schedule import NO_LIMIT
from ...system.errors import UsageError
from ...system.interrupts import Interrupts
from ...system.reporter import Reporter, in_words
from ..device import keep_freed_memory, pick_device
from ..runs.directory import RunDirectory
from ..runs.weights import count_parameters
from ..workers.ranks import started_by_torchrun
from .leader import Leader
from .rehearsal import Rehearsal
from .setup import check_device
from .start import started


def dry_run(
    settings: RunConfig, directory: RunDirectory, *, tokenizer: Path | None, init_from: Path | None, reporter: Reporter
) -> list[str]:
    """Says what a run would be and what it would take: starts it, makes a few updates and a validation, and stops.

    The vocabulary, the tokenised data and what was measured stay in the directory, for the run itself.

    Args:
        settings, tokenizer, init_from, reporter: As in `train.train`.
        directory: Of the run.

    Returns:
        Lines for people.
    """
    if started_by_torchrun() is not None:
        raise UsageError("a dry run is made by one command: say --dry-run without torchrun")
    keep_freed_memory()
    check_device(settings.training, pick_device(settings.training.device))
    with started(
        settings,
        directory,
        reporter=reporter,
        interrupts=Interrupts(),  # not entered: nothing needs to be saved
        tokenizer=tokenizer,
        init_from=init_from,
        dry=True,
    ) as leader:
        if leader.is_at_end:
            return [*_sizes(leader), f"time            none: the run is finished, at step {leader.progress.step:,}"]
        return [*_sizes(leader), *_costs(leader, leader.rehearse(init_from))]


def _sizes(leader: Leader) -> list[str]:
    """Of vocabulary, model and data."""
    config, model, prepared = leader.config, leader.settings.model, leader.prepared
    sizes = len(prepared.tokenizer.src), len(prepared.tokenizer.tgt)
    report, batches = prepared.train.report, leader.batches_per_epoch
    steps = -(-batches // config.grad_accum_steps)
    pieces = f"{report.src_tokens:,} source and {report.tgt_tokens:,} target pieces"
    if report.text_only:
        pieces = f"{report.tgt_tokens:,} pieces"
    joint = prepared.tokenizer.joint
    return [
        f"vocabulary      {sizes[0]:,} pieces, joint"
        if joint
        else f"vocabularies    {sizes[0]:,} + {sizes[1]:,} pieces",
        f"model           {model.num_encoder_layers}+{model.num_decoder_layers} layers, d_model {model.d_model},"
        f" d_ff {model.d_ff}, {model.num_heads} heads, {model.norm_order}-norm,"
        f" {count_parameters(leader.model):,} parameters",
        f"training data   {report.kept:,} {report.unit}s, {pieces}",
        f"validation      {len(prepared.dev_pairs):,} {report.unit}s",
        f"processes       {leader.setup.division}",
        f"epoch           {batches:,} batches of at most {config.max_tokens_per_batch:,} tokens = {steps:,} steps",
        f"training        {_length(leader, steps)}",
    ]


def _length(leader: Leader, steps_per_epoch: int) -> str:
    """Of the run, as it is configured."""
    config = leader.config
    limits: list[str] = []
    if config.max_steps is not None:
        limits.append(f"max_steps {config.max_steps:,} = {config.max_steps / steps_per_epoch:.1f} epochs")
    if config.max_time is not None:
        limits.append(f"max_time {config.max_time}")
    length = " or ".join(limits) or "no limit"
    if config.patience:
        length += f"; ends by itself, patience: {config.patience} validations"
    if leader.saved is not None:
        length += f"; goes on at step {leader.saved.step:,}"
    return length


def _costs(leader: Leader, measured: Rehearsal) -> list[str]:
    """Time and memory of the run."""
    config, plan = leader.config, leader.plan
    lines = [
        f"an update       {measured.seconds_per_update:.3g} s, a validation about"
        f" {measured.seconds_per_validation:.2g} s"
    ]
    done = leader.saved.step if leader.saved else 0
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
        lines.append(f"memory          about {measured.memory / 1e9:.1f} GB at the most{_where(leader)}")
    return lines


def _where(leader: Leader) -> str:
    if leader.device.type == "cuda":
        return " on the GPU"
    return f", in {leader.ranks.count} processes" if leader.ranks.count > 1 else ""
