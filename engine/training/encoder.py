"""The validations of a sentence encoder: how it finds translations, and how it guesses hidden tokens."""

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ...data.tokenizer import EOS_ID, FIRST_TEXT_ID, MASK_ID
from ...seq2seq.model.encoder_only import EncoderOnly
from ...seq2seq.model.masks import PAD_ID
from ...seq2seq.training.config import TrainingConfig
from ...seq2seq.training.contrastive import contrastive_loss, equal_rows
from ...seq2seq.training.masking import Masking, sides
from ..evaluation.retrieval import top_1
from ..runs.checkpoint import ModelDescription
from .validation import DevSet

_MASKING_SEED = 1
"""The seed of the tokens that are hidden in a validation."""


def masking(description: ModelDescription) -> Masking:
    """How tokens of a model are hidden."""
    return Masking(mask_id=MASK_ID, first_piece=FIRST_TEXT_ID, vocab_size=description.tgt_vocab_size, eos_id=EOS_ID)


@torch.inference_mode()
def validate_encoder(dev: DevSet, model: EncoderOnly, step: int, *, config: TrainingConfig) -> dict[str, Any]:
    """The loss of a sentence encoder on pairs, and how often a sentence finds its translation among all.

    Returns:
        loss (nats per pair, each among the pairs of its batch), retrieval (percent, the mean of src_to_tgt and
        tgt_to_src), and score: retrieval, or the negative loss where that decides.
    """
    total, device = 0.0, next(model.parameters()).device
    sources, targets = ([torch.empty(0, model.config.d_model, device=device)] for _ in range(2))
    src_keys, tgt_keys = _Numbers(), _Numbers()
    for batch in dev.all_batches():
        sources.append(model.embed(batch.src))
        targets.append(model.embed(batch.tgt_out))
        same = equal_rows(batch.src) | equal_rows(batch.tgt_out)
        total += contrastive_loss(sources[-1], targets[-1], same, model.temperature).item()
        src_keys.add(batch.src)
        tgt_keys.add(batch.tgt_out)
    all_sources, all_targets = torch.cat(sources), torch.cat(targets)
    found = top_1(all_sources, all_targets, src_keys.numbers(device), tgt_keys.numbers(device))
    loss = total / len(all_sources) if len(all_sources) else math.nan
    dev.reporter.say(
        f"step {step:,}: validation loss {loss:.3f}, retrieval {found.mean:.2f} % among {len(all_sources):,} pairs"
        f" (source to target {found.src_to_tgt:.2f} %, target to source {found.tgt_to_src:.2f} %)"
    )
    return {
        "loss": loss,
        "retrieval": found.mean,
        "src_to_tgt": found.src_to_tgt,
        "tgt_to_src": found.tgt_to_src,
        "score": -loss if config.best_metric == "loss" else found.mean,
    }


class _Numbers:
    """Sentences as numbers, equal for equal sentences."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], int] = {}
        self._all: list[int] = []

    def add(self, ids: Tensor) -> None:
        """The sentences of a padded batch."""
        for row in ids.tolist():
            sentence = tuple(token for token in row if token != PAD_ID)
            self._all.append(self._known.setdefault(sentence, len(self._known)))

    def numbers(self, device: torch.device) -> Tensor:
        """Those of all sentences so far, in order."""
        return torch.tensor(self._all, device=device)


@torch.inference_mode()
def validate_guesses(dev: DevSet, model: EncoderOnly, step: int, *, masking: Masking) -> dict[str, Any]:
    """How well a model guesses hidden tokens, the same ones each time.

    Returns:
        loss (nats per token to be guessed), accuracy (percent of them guessed), and score, the negative loss.
    """
    total, right, count = 0.0, 0, 0
    generator = torch.Generator(device=next(model.parameters()).device).manual_seed(_MASKING_SEED)
    for batch in dev.all_batches():
        for ids in sides(batch):
            hidden_ids, wanted = masking(ids, generator)
            chosen = wanted != PAD_ID  # (B, S)
            logits = model.output_layer(model.hidden_states(hidden_ids)[chosen]).float()  # (chosen, V)
            total += F.cross_entropy(logits, wanted[chosen], reduction="sum").item()
            right += int((logits.argmax(dim=-1) == wanted[chosen]).sum())
            count += len(logits)
    loss, accuracy = (total / count, 100 * right / count) if count else (math.nan, math.nan)
    dev.reporter.say(f"step {step:,}: validation loss {loss:.3f}, {accuracy:.2f} % of {count:,} hidden tokens guessed")
    return {"loss": loss, "accuracy": accuracy, "score": -loss}
