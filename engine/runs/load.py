"""A trained run, read to be used: its model, its tokenizer, and what they are for."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch

from ...data.tokenizer import BOS_ID, EOS_ID, Tokenizer
from ...system.errors import ModelError, UsageError
from ...system.reporter import say_nothing
from ..device import pick_device
from .checkpoint import ModelDescription, Purpose
from .directory import RunDirectory
from .weights import Model, restore_model


@dataclass(frozen=True)
class TrainedRun:
    """What using a run takes. The model is in evaluation mode, on its device."""

    checkpoint: Path
    model: Model
    description: ModelDescription
    tokenizer: Tokenizer


class FromRun:
    """What puts a trained run to use: a translator, a generator, an embedder."""

    purpose: ClassVar[Purpose | None]
    """What a run has to be trained for; None where the class looks at the model itself."""
    checkpoint: Path | None = None
    """Where the model was loaded from, if it was."""

    @classmethod
    def load(
        cls,
        run: str | Path,
        *,
        checkpoint: str = "best",
        device: str = "auto",
        warn: Callable[[str], None] = say_nothing,
    ) -> Self:
        """Loads a run directory, for example `runs/toy`.

        A `Translator` may also load what `tfm export` made of one for CTranslate2, which then searches.

        Args:
            checkpoint: `best`, `last` or a step.
            device: `auto`, `cpu`, `cuda` or `mps`.
            warn: Hears of damaged checkpoints that are passed over, and of texts that are not taken as they are.

        Raises:
            ModelError: No sound checkpoint, or a tokenizer that is not the model's.
            UsageError: The model was trained for another purpose.
            EnvironmentFault: It is an export, and CTranslate2 is missing or cannot use it on this machine.
        """
        return cls._load(run, checkpoint, device, warn)

    @classmethod
    def _load(cls, run: str | Path, checkpoint: str, device: str, warn: Callable[[str], None]) -> Self:
        loaded = load_run(run, cls.purpose, checkpoint=checkpoint, device=device, warn=warn)
        found = cls.of(loaded, warn)
        found.checkpoint = loaded.checkpoint
        return found

    @classmethod
    def of(cls, loaded: TrainedRun, warn: Callable[[str], None] = say_nothing) -> Self:
        """Puts a run to use that is loaded already; UsageError if it cannot be used so."""
        raise NotImplementedError


def load_run(
    run: str | Path,
    purpose: Purpose | None,
    *,
    checkpoint: str = "best",
    device: str = "auto",
    warn: Callable[[str], None] = say_nothing,
) -> TrainedRun:
    """Reads a run, to be used for a purpose; None where any will do.

    Args:
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
def answers(model: Any) -> bool:
    """Whether a model gives finite numbers for the shortest input there is."""
    device = next(model.parameters()).device
    eos, bos = (torch.tensor([[token]], device=device) for token in (EOS_ID, BOS_ID))
    found = model.embed(eos) if model.config.architecture == "encoder_only" else model(eos, bos)
    return bool(found.isfinite().all())


def _guesses(run: RunDirectory) -> bool:
    """Whether a sentence encoder was trained on hidden words."""
    try:
        training = run.settings().get("training")
    except UsageError:  # a model without the run that made it
        return False
    return isinstance(training, dict) and training.get("objective") == "masked_lm"
