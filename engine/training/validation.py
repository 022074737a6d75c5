"""What a validation computes: the loss of a set, and what each machine is scored by; a few outputs to look at.

A validation scores a model in evaluation mode, says how good it is, and returns its figures by name. `score` decides
about the best: higher is better. A stop that is requested in its midst raises `Interrupted`.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from ...data.cleaning import clean
from ...data.corpus import Pair
from ...data.facts import CorpusFacts
from ...data.tokenizer import Tokenizer
from ...seq2seq.decoding.config import CHUNK_TEXTS, DecodingConfig
from ...seq2seq.decoding.sampling import Sample
from ...seq2seq.model.decoder_only import DecoderOnly
from ...seq2seq.model.encoder_decoder import Transformer
from ...seq2seq.model.encoder_only import EncoderOnly
from ...seq2seq.training.batch import Batch
from ...seq2seq.training.config import TrainingConfig
from ...seq2seq.training.contrastive import contrastive_loss, equal_rows
from ...seq2seq.training.masking import Masking, sides
from ...system.errors import Interrupted
from ...system.reporter import Reporter
from ..evaluation.forced import force, set_loss
from ..evaluation.loss import evaluate_loss, in_figures, perplexity
from ..evaluation.retrieval import top_1
from ..evaluation.scores import score
from ..generator import Generator
from ..runs.checkpoint import ModelDescription
from ..translator import Translator
from .build import masking, objective_of

T = TypeVar("T")
Validator = Callable[[Any, int], dict[str, Any]]
"""From a model and the step that it has come to, to figures."""

SAMPLES = 3
"""Sample translations shown at each validation."""
_MASKING_SEED = 1
"""The seed of the tokens that are hidden in a validation."""


@dataclass(frozen=True)
class DevSet:
    """A validation set, as `batches` and as text, and who hears the scores.

    Attributes:
        stop_requested: The signal that asks to stop, if one has arrived. Looked at again and again, so that Ctrl-C does
            not wait for a whole validation.
    """

    batches: Callable[[], Iterable[Batch]]
    pairs: list[Pair]
    reporter: Reporter
    stop_requested: Callable[[], int | None]

    def all_batches(self) -> Iterator[Batch]:
        """The tokenised set, with a look at whether to stop before each batch."""
        return self.interruptible(self.batches())

    def interruptible(self, items: Iterable[T]) -> Iterator[T]:
        """The items, with a look at whether to stop before each."""
        for item in items:
            self.check()
            yield item

    def check(self) -> None:
        """Looks at whether to stop."""
        number = self.stop_requested()
        if number is not None:
            raise Interrupted("stopped during validation", number)


def validate_translator(
    dev: DevSet,
    model: Transformer | DecoderOnly,
    step: int,
    *,
    tokenizer: Tokenizer,
    decoding: DecodingConfig,
    facts: CorpusFacts,
    config: TrainingConfig,
) -> dict[str, Any]:
    """Loss of the references; scores of greedy translations of the first `config.validation_sentences` sources.

    Returns:
        loss, ppl, bleu, chrf, exact, score (the one named by `config.best_metric`) and the sacreBLEU signature.
    """
    translator = Translator(model, tokenizer, decoding, facts)
    sources, targets = zip(*dev.pairs, strict=True)
    loss = set_loss(force(translator, sources, targets, on_done=lambda done: dev.check())).loss
    pairs = dev.pairs[: config.validation_sentences]
    chunks = [sources[: len(pairs)][i : i + CHUNK_TEXTS] for i in range(0, len(pairs), CHUNK_TEXTS)]
    translations = (translator.translate(chunk, beam_size=1) for chunk in dev.interruptible(chunks))
    outputs = [translation.text for chunk in translations for translation in chunk]
    references = [[tgt] for _, tgt in pairs]
    scores = {name: score(name, outputs, references) for name in ("bleu", "chrf", "exact")}
    result: dict[str, Any] = {"loss": loss, "ppl": perplexity(loss)}
    result |= {name: metric.value for name, metric in scores.items()}
    result["score"] = -loss if config.best_metric == "loss" else result[config.best_metric]
    result["signature"] = scores["bleu"].signature
    dev.reporter.say(
        f"step {step:,}: validation loss {loss:.3f}, ppl {in_figures(result['ppl'], 2)},"
        f" BLEU {result['bleu']:.2f}, chrF {result['chrf']:.2f}, exact {result['exact']:.1f} %"
    )
    stride = max(len(pairs) // SAMPLES, 1)
    for i in range(0, min(len(pairs), SAMPLES * stride), stride):
        source, reference = pairs[i]
        dev.reporter.say(f"  source     {source}\n  output     {outputs[i]}\n  reference  {reference}")
    return result


def validate_language_model(
    dev: DevSet, model: DecoderOnly, step: int, *, tokenizer: Tokenizer, num_bytes: int
) -> dict[str, Any]:
    """Perplexity per piece and per byte of texts, which are the targets of the pairs.

    Args:
        num_bytes: Of the texts in the batches, see `bytes_read`.

    Returns:
        loss (nats per piece, eos included), ppl = exp(loss), ppl_per_byte = exp(nats / bytes), a line end counting
        as one byte; and score, the negative loss.
    """
    found = evaluate_loss(model, dev.all_batches())
    per_byte = perplexity(found.loss * found.num_tokens / num_bytes)
    dev.reporter.say(
        f"step {step:,}: validation loss {found.loss:.3f}, perplexity {in_figures(found.ppl, 2)} per piece,"
        f" {in_figures(per_byte, 3)} per byte"
    )
    for text in Generator(model, tokenizer).generate([""] * SAMPLES, search=Sample(seed=step)):
        dev.reporter.say(f"  {text}")
    return {"loss": found.loss, "ppl": found.ppl, "ppl_per_byte": per_byte, "score": -found.loss}


def bytes_read(texts: Iterable[str], tokenizer: Tokenizer, max_pieces: int) -> int:
    """Bytes of the texts that a model reads, a line end counting as one; longer texts it does not read.

    Args:
        max_pieces: Of the longest text that it reads, eos left out.
    """
    read = [clean(text) for text in texts if len(tokenizer.tgt.encode(text)) <= max_pieces]
    return sum(len(text.encode()) + 1 for text in read)


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
        src_keys.add(batch.src, model.pad_id)
        tgt_keys.add(batch.tgt_out, model.pad_id)
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

    def add(self, ids: Tensor, pad_id: int) -> None:
        """The sentences of a padded batch."""
        for row in ids.tolist():
            sentence = tuple(token for token in row if token != pad_id)
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
            chosen = wanted != model.pad_id  # (B, S)
            logits = model.output_layer(model.hidden_states(hidden_ids)[chosen]).float()  # (chosen, V)
            total += F.cross_entropy(logits, wanted[chosen], reduction="sum").item()
            right += int((logits.argmax(dim=-1) == wanted[chosen]).sum())
            count += len(logits)
    loss, accuracy = (total / count, 100 * right / count) if count else (math.nan, math.nan)
    dev.reporter.say(f"step {step:,}: validation loss {loss:.3f}, {accuracy:.2f} % of {count:,} hidden tokens guessed")
    return {"loss": loss, "accuracy": accuracy, "score": -loss}


def build_validator(
    dev: DevSet, config: TrainingConfig, description: ModelDescription, tokenizer: Tokenizer, decoding: DecodingConfig
) -> Validator:
    """The validation of a model of this kind."""
    match description.purpose:
        case "translator":
            facts = description.corpus_facts()
            return partial(validate_translator, dev, tokenizer=tokenizer, decoding=decoding, facts=facts, config=config)
        case "language model":
            texts, max_pieces = [text for _, text in dev.pairs], description.model_config().max_seq_len - 1
            num_bytes = bytes_read(texts, tokenizer, max_pieces)
            return partial(validate_language_model, dev, tokenizer=tokenizer, num_bytes=num_bytes)
        case "sentence encoder" if objective_of("encoder_only", config) == "masked_lm":
            return partial(validate_guesses, dev, masking=masking(description))
        case "sentence encoder":
            return partial(validate_encoder, dev, config=config)
