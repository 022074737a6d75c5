"""What a validation computes: the loss of a set, and what each machine is scored by; a few outputs to look at."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

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
from ..translator import Translator

T = TypeVar("T")

SAMPLES = 3
"""Sample translations shown at each validation."""
_MASKING_SEED = 1
"""Of the tokens that are hidden in a validation."""


class Validator(Protocol):
    """Scores a model."""

    def __call__(self, model: Any, step: int) -> dict[str, Any]:
        """Scores a model in evaluation mode.

        Returns:
            Figures by name; `score` decides about the best, higher is better.

        Raises:
            Interrupted: A stop was requested in the midst of it.
        """
        ...


@dataclass(frozen=True)
class DevSet:
    """A validation set, and those who take part in every validation.

    Attributes:
        batches: Yields it tokenised.
        pairs: The same as text.
        reporter: Hears the scores, and sees some outputs.
        stop_requested: The signal that asks to stop, if one has arrived. Looked at again and again, so that Ctrl-C does
            not wait for a whole validation.
    """

    batches: Callable[[], Iterable[Batch]]
    pairs: list[Pair]
    reporter: Reporter
    stop_requested: Callable[[], int | None]

    def all_batches(self) -> Iterator[Batch]:
        """The tokenised set, with a look at whether to stop before each batch; raises as `interruptible`."""
        return self.interruptible(self.batches())

    def interruptible(self, items: Iterable[T]) -> Iterator[T]:
        """The items, with a look at whether to stop before each.

        Raises:
            Interrupted: A stop was requested.
        """
        for item in items:
            self.check()
            yield item

    def check(self) -> None:
        """Looks at whether to stop.

        Raises:
            Interrupted: A stop was requested.
        """
        number = self.stop_requested()
        if number is not None:
            raise Interrupted("stopped during validation", number)


class TranslationValidator:
    """Validates a translator on a fixed set: loss of the references, scores of greedy translations.

    Args:
        dev: The set.
        tokenizer: The run's.
        decoding: Limits of the output: its length, repetitions.
        facts: What the training pairs are like.
        config: How many sentences to translate, and which score counts.
    """

    def __init__(
        self,
        dev: DevSet,
        *,
        tokenizer: Tokenizer,
        decoding: DecodingConfig,
        facts: CorpusFacts,
        config: TrainingConfig,
    ) -> None:
        self._dev, self._tokenizer, self._config = dev, tokenizer, config
        self._decoding, self._facts = decoding, facts
        self._pairs = dev.pairs[: config.validation_sentences]

    def __call__(self, model: Transformer | DecoderOnly, step: int) -> dict[str, Any]:
        """Scores a model in evaluation mode.

        Returns:
            loss, ppl, bleu, chrf, exact, `score` (the metric that decides about the best, higher is better) and the
            sacreBLEU signature.

        Raises:
            Interrupted: A stop was requested in the midst of it.
        """
        translator = Translator(model, self._tokenizer, self._decoding, self._facts)
        sources, targets = zip(*self._dev.pairs, strict=True)
        loss = set_loss(force(translator, sources, targets, on_done=lambda done: self._dev.check()))
        outputs = self._translate(translator)
        references = [[tgt] for _, tgt in self._pairs]
        scores = {name: score(name, outputs, references) for name in ("bleu", "chrf", "exact")}
        result: dict[str, Any] = {"loss": loss.loss, "ppl": loss.ppl}
        result |= {name: metric.value for name, metric in scores.items()}
        best_metric = self._config.best_metric
        result["score"] = -loss.loss if best_metric == "loss" else result[best_metric]
        result["signature"] = scores["bleu"].signature
        self._show(step, result, outputs)
        return result

    def _translate(self, translator: Translator) -> list[str]:
        sources = [src for src, _ in self._pairs]
        chunks = [sources[i : i + CHUNK_TEXTS] for i in range(0, len(sources), CHUNK_TEXTS)]
        return [
            translation.text
            for chunk in self._dev.interruptible(chunks)
            for translation in translator.translate(chunk, beam_size=1)
        ]

    def _show(self, step: int, result: dict[str, Any], outputs: list[str]) -> None:
        self._dev.reporter.say(
            f"step {step:,}: validation loss {result['loss']:.3f}, ppl {in_figures(result['ppl'], 2)},"
            f" BLEU {result['bleu']:.2f}, chrF {result['chrf']:.2f}, exact {result['exact']:.1f} %"
        )
        stride = max(len(self._pairs) // SAMPLES, 1)
        for i in range(0, min(len(self._pairs), SAMPLES * stride), stride):
            source, reference = self._pairs[i]
            self._dev.reporter.say(f"  source     {source}\n  output     {outputs[i]}\n  reference  {reference}")


class TextValidator:
    """Validates a language model on texts: perplexity per piece and per byte.

    Args:
        dev: The set; the targets of its pairs are the texts.
        tokenizer: The run's.
        max_pieces: Longest text that the model reads, eos left out; longer ones are not in the batches.
    """

    def __init__(self, dev: DevSet, *, tokenizer: Tokenizer, max_pieces: int) -> None:
        self._dev, self._tokenizer = dev, tokenizer
        self._num_bytes = bytes_read([text for _, text in dev.pairs], tokenizer, max_pieces)

    def __call__(self, model: DecoderOnly, step: int) -> dict[str, Any]:
        """See `Validator`.

        Returns:
            loss (nats per piece, eos included), ppl = exp(loss), ppl_per_byte = exp(nats / bytes), a line end counting
            as one byte; and score, the negative loss.
        """
        found = evaluate_loss(model, self._dev.all_batches())
        nats = found.loss * found.num_tokens
        per_byte = perplexity(nats / self._num_bytes)
        self._dev.reporter.say(
            f"step {step:,}: validation loss {found.loss:.3f}, perplexity {in_figures(found.ppl, 2)} per piece,"
            f" {in_figures(per_byte, 3)} per byte"
        )
        generator = Generator(model, self._tokenizer)
        for text in generator.generate([""] * SAMPLES, search=Sample(seed=step)):
            self._dev.reporter.say(f"  {text}")
        return {"loss": found.loss, "ppl": found.ppl, "ppl_per_byte": per_byte, "score": -found.loss}


def bytes_read(texts: Iterable[str], tokenizer: Tokenizer, max_pieces: int) -> int:
    """Bytes of the texts that a model reads, a line end counting as one; longer texts it does not read."""
    read = [clean(text) for text in texts if len(tokenizer.tgt.encode(text)) <= max_pieces]
    return sum(len(text.encode()) + 1 for text in read)


class SentenceValidator:
    """Validates a sentence encoder on pairs: its loss, and how often a sentence finds its translation among all.

    Args:
        dev: The set.
        config: Says which score counts.
    """

    def __init__(self, dev: DevSet, *, config: TrainingConfig) -> None:
        self._dev, self._config = dev, config

    @torch.inference_mode()
    def __call__(self, model: EncoderOnly, step: int) -> dict[str, Any]:
        """See `Validator`.

        Returns:
            loss (nats per pair, each among the pairs of its batch), retrieval (percent, the mean of src_to_tgt and
            tgt_to_src), and score: retrieval, or the negative loss where that decides.
        """
        total, device = 0.0, next(model.parameters()).device
        sources, targets = ([torch.empty(0, model.config.d_model, device=device)] for _ in range(2))
        src_keys, tgt_keys = _Numbers(), _Numbers()
        for batch in self._dev.all_batches():
            sources.append(model.embed(batch.src))
            targets.append(model.embed(batch.tgt_out))
            same = equal_rows(batch.src) | equal_rows(batch.tgt_out)
            total += contrastive_loss(sources[-1], targets[-1], same, model.temperature).item()
            src_keys.add(batch.src, model.pad_id)
            tgt_keys.add(batch.tgt_out, model.pad_id)
        all_sources, all_targets = torch.cat(sources), torch.cat(targets)
        found = top_1(all_sources, all_targets, src_keys.numbers(device), tgt_keys.numbers(device))
        loss = total / len(all_sources) if len(all_sources) else math.nan
        self._dev.reporter.say(
            f"step {step:,}: validation loss {loss:.3f}, retrieval {found.mean:.2f} % among {len(all_sources):,} pairs"
            f" (source to target {found.src_to_tgt:.2f} %, target to source {found.tgt_to_src:.2f} %)"
        )
        return {
            "loss": loss,
            "retrieval": found.mean,
            "src_to_tgt": found.src_to_tgt,
            "tgt_to_src": found.tgt_to_src,
            "score": -loss if self._config.best_metric == "loss" else found.mean,
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


class MaskedTokenValidator:
    """Validates how well a model guesses hidden tokens, the same ones each time.

    Args:
        dev: The set.
        masking: How tokens are hidden.
    """

    def __init__(self, dev: DevSet, *, masking: Masking) -> None:
        self._dev, self._masking = dev, masking

    @torch.inference_mode()
    def __call__(self, model: EncoderOnly, step: int) -> dict[str, Any]:
        """See `Validator`.

        Returns:
            loss (nats per token to be guessed), accuracy (percent of them guessed), and score, the negative loss.
        """
        total, right, count = 0.0, 0, 0
        generator = torch.Generator(device=next(model.parameters()).device).manual_seed(_MASKING_SEED)
        for batch in self._dev.all_batches():
            for ids in sides(batch):
                hidden_ids, wanted = self._masking(ids, generator)
                chosen = wanted != model.pad_id  # (B, S)
                logits = model.output_layer(model.hidden_states(hidden_ids)[chosen]).float()  # (chosen, V)
                total += F.cross_entropy(logits, wanted[chosen], reduction="sum").item()
                right += int((logits.argmax(dim=-1) == wanted[chosen]).sum())
                count += len(logits)
        loss, accuracy = (total / count, 100 * right / count) if count else (math.nan, math.nan)
        self._dev.reporter.say(
            f"step {step:,}: validation loss {loss:.3f}, {accuracy:.2f} % of {count:,} hidden tokens guessed"
        )
        return {"loss": loss, "accuracy": accuracy, "score": -loss}
