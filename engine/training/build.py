"""What is trained: the objective and the settings that suit an architecture; model, optimizer, loss in a trainer."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING

import torch

from ...configs import RunConfig
from ...data.batching import BatchSource
from ...data.facts import CorpusFacts
from ...data.formats.format import Languages
from ...data.store import TokenStore
from ...data.tokenizer import Tokenizer
from ...seq2seq.model.config import ModelConfig, unknown
from ...seq2seq.training.batch import Batch, Group, Packer
from ...seq2seq.training.config import Objective, TrainingConfig
from ...seq2seq.training.loss import NextTokenLoss
from ...seq2seq.training.optimizer import Optimizer
from ...seq2seq.training.progress import Progress
from ...seq2seq.training.update import Loss, Trainer, seed_torch
from ...system.errors import UsageError
from ..runs.checkpoint import BEST_METRICS, FORMAT_VERSION, USES, ModelDescription, Purpose, objective_of
from ..runs.weights import build_model

if TYPE_CHECKING:
    from ...data.subword_dropout import SubwordDropout

COUNTED: dict[Objective, str] = {"next_token": "tok", "contrastive": "pairs", "masked_lm": "guesses"}
"""What the loss is a mean over."""


def purpose_of(settings: RunConfig) -> Purpose:
    """What a model of this configuration is trained to do.

    Raises:
        UsageError: The architecture does not suit the data.
    """
    architecture, uses = settings.model.architecture, USES[settings.model.architecture]
    if not settings.data.text:
        return uses.of_pairs
    if uses.of_text is None:
        raise UsageError("text alone trains a language model: --text needs model.architecture decoder_only")
    if "contrastive" in uses.objectives and objective_of(architecture, settings.training) == "contrastive":
        raise UsageError(
            "a sentence encoder learns from pairs, and text alone has none: give --src and --tgt, or --data; on"
            " text, training.objective masked_lm prepares it"
        )
    return uses.of_text


def fixed_parts(settings: RunConfig) -> int | None:
    """Into how many parts each batch is to be cut; None for as many as serve the machine.

    A pair's negatives are the other pairs of its batch, so a batch of the contrastive loss is not cut.
    """
    return 1 if objective_of(settings.model.architecture, settings.training) == "contrastive" else None


def check_architecture(settings: RunConfig) -> None:
    """Refuses settings that do not suit the architecture."""
    architecture, purpose = settings.model.architecture, purpose_of(settings)
    if architecture != "encoder_decoder" and settings.tokenizer.separate:
        raise UsageError(f"a model of {architecture} has one vocabulary; leave tokenizer.separate out")
    objective, possible = objective_of(architecture, settings.training), USES[architecture].objectives
    if objective not in possible:
        raise UsageError(f"training.objective of {architecture} must be {' or '.join(possible)}, but is {objective}")
    metric, known = settings.training.best_metric, {"loss"} if objective == "masked_lm" else BEST_METRICS[purpose]
    if metric not in known:
        whose = f"a {purpose}" + (" in masked_lm training" if objective == "masked_lm" else "")
        raise UsageError(f"training.best_metric of {whose} must be {' or '.join(sorted(known))}, but is {metric}")


def check_vocabulary(settings: RunConfig, tokenizer: Tokenizer) -> None:
    """Refuses a tokenizer of two vocabularies where the architecture has one."""
    if settings.model.architecture != "encoder_decoder" and not tokenizer.joint:
        raise UsageError(
            f"a model of {settings.model.architecture} has one vocabulary, and this tokenizer has two; make one without"
            " --separate"
        )


def build_loss(description: ModelDescription, config: TrainingConfig, dtype: torch.dtype) -> Loss:
    """What the architecture minimises."""
    match objective_of(description.model_config().architecture, config):
        case "next_token":
            return NextTokenLoss(config.label_smoothing, dtype)
        case "contrastive":
            from ...seq2seq.training.contrastive import ContrastiveLoss

            return ContrastiveLoss(dtype)
        case "masked_lm":
            from ...seq2seq.training.masking import MaskedTokenLoss
            from .encoder import masking

            return MaskedTokenLoss(masking(description), config.label_smoothing, dtype)
        case other:
            raise unknown("objective", other)


def describe_model(
    settings: RunConfig, tokenizer: Tokenizer, facts: CorpusFacts, languages: Languages = ("", "")
) -> ModelDescription:
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
        src_language=languages[0],
        tgt_language=languages[1],
    )


def subword_dropout(
    tokenizer: Tokenizer, training: TrainingConfig, model: ModelConfig
) -> "tuple[SubwordDropout, SubwordDropout] | None":
    """The configured subword dropout of both sides, or None."""
    if not training.subword_dropout:
        return None
    from ...data.subword_dropout import SubwordDropout

    src = SubwordDropout(tokenizer.src, training.subword_dropout, model.max_seq_len - 1)
    tgt = SubwordDropout(tokenizer.tgt, training.subword_dropout, model.max_seq_len - 1)
    return src, tgt


def learns_both_directions(training: TrainingConfig, tokenizer: Tokenizer, description: ModelDescription) -> bool:
    """Whether pairs are turned round: where that is asked for, and a translator has one vocabulary."""
    return training.both_directions and tokenizer.joint and description.purpose == "translator"


class StoreBatches:
    """A `BatchProvider` over a token store."""

    def __init__(
        self,
        store: TokenStore,
        config: TrainingConfig,
        device: torch.device,
        subword_dropout: "tuple[SubwordDropout, SubwordDropout] | None" = None,
        packer: Packer | None = None,
        both_directions: bool = False,
    ) -> None:
        self._source = BatchSource(
            store,
            max_tokens=config.max_tokens_per_batch,
            seed=config.seed,
            group=config.grad_accum_steps,
            subword_dropout=subword_dropout,
            both_directions=both_directions,
        )
        self._device, self._packer = device, packer

    def num_batches(self, epoch: int) -> int:
        """How many batches an epoch has."""
        return len(self._source.plan(epoch))

    def load_part(self, epoch: int, index: int, part: int, parts: int) -> Batch | None:
        """Part number `part` of `parts` of a batch, on the device; None if it has too few sentences for that."""
        rows = self._source.rows(epoch, index, part, parts)
        if not rows:
            return None
        return Batch.of(rows, device=self._device) if self._packer is None else self._packer.pack(rows, self._device)

    def all(self) -> Iterator[Batch]:
        """Every batch of one epoch."""
        for index in range(self.num_batches(0)):
            yield Batch.of(self._source.rows(0, index), device=self._device)


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
    """A trainer of a new model, whose weights are a function of the seed. It keeps no moving average yet."""
    seed_torch(config.seed, "weights")
    model = build_model(description).to(device)
    dropout = subword_dropout(tokenizer, config, description.model_config())
    both_directions = learns_both_directions(config, tokenizer, description)
    loss, packer, graphs = build_loss(description, config, dtype), None, None
    if device.type == "cuda" and isinstance(loss, NextTokenLoss):  # other losses depend on the rows of a batch
        from ...seq2seq.training.graphs import CudaGraphs

        joined = description.model_config().architecture == "decoder_only"
        packer = Packer(config.max_tokens_per_batch, parts, joined)
        graphs = CudaGraphs(partial(loss, model), list(model.parameters()))
    return Trainer(
        model=model,
        optimizer=Optimizer(model, config, group=group, dtype=muon_dtype),
        average=None,
        config=config,
        loss=loss,
        provider=StoreBatches(store, config, device, dropout, packer, both_directions),
        progress=progress,
        group=group,
        parts=parts,
        graphs=graphs,
    )
