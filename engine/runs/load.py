"""A trained run, read to be used: its model, its tokenizer, and what they are for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from ...data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from ...seq2seq.model.encoder_only import EncoderOnly
from ...system.errors import ModelError, UsageError
from ..device import pick_device
from .checkpoint import ModelDescription, Purpose
from .directory import RunDirectory
from .weights import Machine, restore_model


@dataclass(frozen=True)
class TrainedRun:
    """What using a run takes.

    Attributes:
        checkpoint: Where the weights are from.
        model: In evaluation mode, on its device.
        description: Of the model.
        tokenizer: The one it was trained with.
    """

    checkpoint: Path
    model: Machine
    description: ModelDescription
    tokenizer: Tokenizer


def load_run(
    run: str | Path,
    purpose: Purpose | None,
    *,
    checkpoint: str = "best",
    device: str = "auto",
    warn: Callable[[str], None] = lambda text: None,
) -> TrainedRun:
    """Reads a run.

    Args:
        run: Its directory.
        purpose: What it is to be used for; None where any will do.
        checkpoint: `best`, `last` or a step.
        device: `auto`, `cpu`, `cuda` or `mps`.
        warn: Hears of damaged checkpoints that are passed over, and of a model that is not yet what it is for.

    Raises:
        ModelError: No sound checkpoint, or a tokenizer that is not the model's.
        UsageError: The model was trained for something else.
    """
    directory = RunDirectory(run)
    stored = directory.find_model(checkpoint, warn=warn)
    found, description, model = stored.checkpoint, stored.description, restore_model(stored, device=pick_device(device))
    del stored  # its file of weights
    if not answers(model):
        raise ModelError(
            f"{found}: with these weights the model gives no finite numbers: the training diverged; use another"
            " --checkpoint, or train anew with a lower learning rate"
        )
    if purpose is not None:
        description.require(purpose, run)
    if purpose == "sentence encoder" and _guesses(directory):
        warn(
            f"{run} learned to guess hidden words (masked_lm): its vectors do not yet show which sentences mean the"
            f" same; train it on pairs: tfm train --init-from {directory.quoted} --run NEW .."
        )
    tokenizer = directory.load_tokenizer(description.tokenizer_sha256, found, warn=warn)
    for vocabulary, size in ((tokenizer.src, description.src_vocab_size), (tokenizer.tgt, description.tgt_vocab_size)):
        if size and len(vocabulary) != size:
            raise ModelError(f"{directory.tokenizer} has {len(vocabulary):,} pieces, but {found} was made for {size:,}")
    return TrainedRun(found, model, description, tokenizer)


@torch.inference_mode()
def answers(model: Machine) -> bool:
    """Whether a model gives finite numbers for the shortest input there is."""
    device = next(model.parameters()).device
    eos, bos = (torch.tensor([[token]], device=device) for token in (EOS_ID, BOS_ID))
    found = model.embed(eos) if isinstance(model, EncoderOnly) else model(eos, bos)
    return bool(found.isfinite().all())


def _guesses(run: RunDirectory) -> bool:
    """Whether a sentence encoder was trained on hidden words."""
    try:
        training = run.settings().get("training")
    except UsageError:  # a model without the run that made it
        return False
    return isinstance(training, dict) and training.get("objective") == "masked_lm"
