"""What belongs to each machine in a run: which settings suit it, what it minimises, what its validation is."""

import torch

from ...configs import RunConfig
from ...data.errors import UsageError
from ...data.tokenizer import Tokenizer
from ..model.config import unknown
from ..training.config import TrainingConfig
from ..training.loop import Loss
from ..training.loss import NextTokenLoss
from .checkpoint import ModelDescription, Purpose

BEST_METRICS: dict[Purpose, set[str]] = {
    "translator": {"bleu", "chrf", "exact", "loss"},
    "language model": {"loss"},
}
"""Scores that a validation of each machine has."""


def purpose_of(settings: RunConfig) -> Purpose:
    """What a model of this configuration is trained to do.

    Raises:
        UsageError: The architecture does not suit the data.
    """
    match settings.model.architecture:
        case "encoder_decoder":
            if settings.data.text:
                raise UsageError("text alone trains a language model: --text needs model.architecture decoder_only")
            return "translator"
        case "decoder_only":
            return "language model" if settings.data.text else "translator"
        case other:
            raise unknown("architecture", other)


def check_machine(settings: RunConfig) -> None:
    """Refuses settings that do not suit the machine.

    Raises:
        UsageError: They do not.
    """
    architecture, purpose = settings.model.architecture, purpose_of(settings)
    if architecture != "encoder_decoder" and settings.tokenizer.separate:
        raise UsageError(f"a {architecture} model has one vocabulary; leave tokenizer.separate out")
    metric, known = settings.training.best_metric, BEST_METRICS[purpose]
    if metric not in known:
        raise UsageError(f"training.best_metric of a {purpose} must be {' or '.join(sorted(known))}, but is {metric}")


def check_vocabulary(settings: RunConfig, tokenizer: Tokenizer) -> None:
    """Refuses a tokenizer of two vocabularies where the machine has one.

    Raises:
        UsageError: It has two.
    """
    if settings.model.architecture != "encoder_decoder" and not tokenizer.joint:
        raise UsageError(
            f"a {settings.model.architecture} model has one vocabulary, and this tokenizer has two; make one without"
            " --separate"
        )


def build_loss(description: ModelDescription, config: TrainingConfig, dtype: torch.dtype) -> Loss:
    """What the machine minimises.

    Args:
        description: Of the model.
        config: Settings of the training.
        dtype: Precision of activations and matrix products.
    """
    match description.purpose:
        case "translator" | "language model":
            return NextTokenLoss(config.label_smoothing, dtype)
