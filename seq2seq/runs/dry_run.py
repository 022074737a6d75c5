"""What a run would be, without making it."""

import tempfile
from pathlib import Path

import torch

from ...configs import RunConfig
from ..device import pick_device
from ..reporter import Reporter
from .assemble import describe_model
from .directory import RunDirectory
from .machine import fixed_parts
from .prepare import StoreBatches, prepare_data
from .setup import check_device, divide_update
from .weights import build_model, count_parameters


def dry_run(settings: RunConfig, *, tokenizer: Path | None, reporter: Reporter) -> list[str]:
    """Says what a run would be, without making it; everything is built in a temporary directory.

    Returns:
        Lines about sizes, parameters, tokens and steps per epoch.
    """
    device = pick_device(settings.training.device)
    check_device(settings.training, device)
    with tempfile.TemporaryDirectory() as directory:
        prepared = prepare_data(settings, RunDirectory(directory), given_tokenizer=tokenizer, reporter=reporter)
        config, model = settings.training, settings.model
        sizes = len(prepared.tokenizer.src), len(prepared.tokenizer.tgt)
        joint = prepared.tokenizer.joint
        with torch.device("meta"):
            built = build_model(describe_model(settings, prepared.tokenizer))
        parameters = count_parameters(built)
        division = divide_update(config, built, device, parts=fixed_parts(settings))
        batches = StoreBatches(prepared.train, config, torch.device("cpu")).num_batches(0)
        steps = -(-batches // config.grad_accum_steps)
        report = prepared.train.report
        if config.max_steps is None:
            length = f"max_time {config.max_time}" if config.max_time else "no limit"
        else:
            length = f"max_steps {config.max_steps:,} = {config.max_steps / steps:.1f} epochs"
            length += f", or max_time {config.max_time}" if config.max_time else ""
        if config.patience:
            length += f"; ends by itself, patience: {config.patience} validations"
        pieces = f"{report.src_tokens:,} source and {report.tgt_tokens:,} target pieces"
        if report.text_only:
            pieces = f"{report.tgt_tokens:,} pieces"
        copies = 4 + bool(config.ema_decay)
        return [
            f"vocabulary      {sizes[0]:,} pieces, joint"
            if joint
            else f"vocabularies    {sizes[0]:,} + {sizes[1]:,} pieces",
            f"model           {model.num_encoder_layers}+{model.num_decoder_layers} layers, d_model {model.d_model},"
            f" d_ff {model.d_ff}, {model.num_heads} heads, {model.norm_order}-norm",
            f"parameters      {parameters:,}"
            f" ({parameters * 4 * copies / 1e6:,.0f} MB with gradients and optimizer, in each process)",
            f"training data   {report.kept:,} {report.unit}s, {pieces}",
            f"processes       {division}",
            f"validation      {len(prepared.dev_pairs):,} {report.unit}s",
            f"epoch           {batches:,} batches of at most {config.max_tokens_per_batch:,} tokens = {steps:,} steps",
            f"training        {length}",
        ]
