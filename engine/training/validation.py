"""What a validation computes: the loss of a set, and what each kind of model is scored by; a few outputs to look at.

A validation scores a model in evaluation mode, says how good it is, and returns its figures by name. `score` decides
about the best: higher is better. A stop that is requested in its midst raises `Interrupted`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ...data.corpus import Pair
from ...data.facts import CorpusFacts
from ...data.tokenizer import Tokenizer
from ...seq2seq.decoding.config import CHUNK_TEXTS, DecodingConfig
from ...seq2seq.training.batch import Batch
from ...seq2seq.training.config import TrainingConfig
from ...system.errors import Interrupted
from ...system.reporter import Reporter
from ..evaluation.loss import force, in_figures, perplexity, set_loss
from ..evaluation.scores import score
from ..runs.checkpoint import ModelDescription, Purpose, objective_of
from ..translator import Translator

if TYPE_CHECKING:
    from ...seq2seq.model.decoder_only import DecoderOnly
    from ...seq2seq.model.encoder_decoder import Transformer

T = TypeVar("T")
Validator = Callable[[Any, int], dict[str, Any]]
"""From a model and the step that it has come to, to figures."""

IN_WORDS: dict[Purpose, str] = {
    "translator": "  ppl, perplexity: among how many equally likely pieces the model seems to choose\n"
    "  BLEU and chrF, of 100: what output and reference share, in words and letters\n"
    "  exact: how many outputs are the reference itself",
    "language model": "  perplexity: among how many equally likely pieces the model seems to choose",
}
"""What the figures mean, for who sees them for the first time."""
SAMPLES = 3
"""Sample translations shown at each validation."""


@dataclass(frozen=True)
class DevSet:
    """A validation set, as `batches` and as text, and who hears the scores."""

    batches: Callable[[], Iterable[Batch]]
    pairs: list[Pair]
    reporter: Reporter
    stop_requested: Callable[[], int | None]
    """The signal that asks to stop, if one has arrived; asked again and again, so that Ctrl-C need not wait."""

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
    model: "Transformer | DecoderOnly",
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


def build_validator(
    dev: DevSet, config: TrainingConfig, description: ModelDescription, tokenizer: Tokenizer, decoding: DecodingConfig
) -> Validator:
    """The validation of a model of this kind."""
    match description.purpose:
        case "translator":
            facts = description.corpus_facts()
            return partial(validate_translator, dev, tokenizer=tokenizer, decoding=decoding, facts=facts, config=config)
        case "language model":
            from .language_model import bytes_read, validate_language_model

            texts, max_pieces = [text for _, text in dev.pairs], description.model_config().max_seq_len - 1
            num_bytes = bytes_read(texts, tokenizer, max_pieces)
            return partial(validate_language_model, dev, tokenizer=tokenizer, num_bytes=num_bytes)
        case "sentence encoder":
            from .encoder import masking, validate_encoder, validate_guesses

            if objective_of("encoder_only", config) == "masked_lm":
                return partial(validate_guesses, dev, masking=masking(description))
            return partial(validate_encoder, dev, config=config)
