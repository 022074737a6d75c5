"""What every process of a run puts together: model, optimizer, loss and batches, in a `Trainer`."""

from dataclasses import asdict
from importlib import metadata

import torch

from ...configs import RunConfig
from ...data.facts import CorpusFacts
from ...data.store import TokenStore
from ...data.tokenizer import Tokenizer
from ...seq2seq.training.batch import Group
from ...seq2seq.training.config import TrainingConfig
from ...seq2seq.training.optimizer import Optimizer
from ...seq2seq.training.progress import Progress
from ...seq2seq.training.update import Trainer, seed_torch
from ..runs.checkpoint import FORMAT_VERSION, ModelDescription
from ..runs.weights import build_model
from .prepare import StoreBatches, subword_dropout
from .purpose import build_loss, purpose_of


def describe_model(settings: RunConfig, tokenizer: Tokenizer, facts: CorpusFacts) -> ModelDescription:
    """What `model.json` says of the model of a run, trained on a corpus like this."""
    return ModelDescription(
        format=FORMAT_VERSION,
        tfm_version=metadata.version("tfm"),
        model=asdict(settings.model),
        src_vocab_size=0 if purpose_of(settings) == "language model" else len(tokenizer.src),
        tgt_vocab_size=len(tokenizer.tgt),
        shared_vocab=tokenizer.joint,
        tokenizer_sha256=tokenizer.sha256,
        weights="ema" if settings.training.ema_decay else "model",
        decoding=asdict(settings.decoding),
        corpus=asdict(facts),
    )


def build_trainer(
    config: TrainingConfig,
    description: ModelDescription,
    tokenizer: Tokenizer,
    store: TokenStore,
    *,
    device: torch.device,
    dtype: torch.dtype,
    muon_dtype: torch.dtype,
    parts: int,
    group: Group,
    progress: Progress,
) -> Trainer:
    """A trainer of a new model, whose weights are a function of the seed. It keeps no moving average yet.

    Args:
        config: Settings of the training.
        description: Of the model.
        tokenizer: For subword dropout.
        store: The tokenised training data.
        device: Where it computes.
        dtype: Precision of activations and matrix products.
        muon_dtype: Precision of Muon's matrix products.
        parts: Micro-batches into which each batch is cut.
        group: The processes that share an update.
        progress: Where training stands.
    """
    seed_torch(config.seed, "weights")
    model = build_model(description).to(device)
    dropout = subword_dropout(tokenizer, config, description.model_config())
    return Trainer(
        model=model,
        optimizer=Optimizer(model, config, group=group, dtype=muon_dtype),
        average=None,
        config=config,
        loss=build_loss(description, config, dtype),
        provider=StoreBatches(store, config, device, dropout),
        progress=progress,
        group=group,
        parts=parts,
    )
