"""What a validation computes: loss of the references, scores of greedy translations, a few of them to look at."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ...data.cleaning import clean
from ...data.corpus import Pair
from ...data.errors import Interrupted
from ...data.tokenizer import Tokenizer
from ..decoding.config import DecodingConfig
from ..decoding.translator import Translator
from ..evaluation.loss import TensorBatch, evaluate_loss
from ..evaluation.scores import score
from ..model.transformer import Transformer
from ..reporter import Reporter
from ..training.config import TrainingConfig

T = TypeVar("T")

SAMPLES = 3
"""Sample translations shown at each validation."""
_CHUNK = 100
"""Sentences translated between two looks at whether to stop: a second's work, or a few."""


class Validator:
    """Validates a model on a fixed set.

    Args:
        tokenizer: The run's.
        decoding: Limits of the output length.
        config: How many sentences to translate, and which score counts.
        batches: Yields the tokenised set.
        pairs: The set as text.
        reporter: Hears the scores and sees sample translations.
        stop_requested: Looked at between chunks, so that Ctrl-C does not wait for a whole validation.
    """

    def __init__(
        self,
        *,
        tokenizer: Tokenizer,
        decoding: DecodingConfig,
        config: TrainingConfig,
        batches: Callable[[], Iterable[TensorBatch]],
        pairs: list[Pair],
        reporter: Reporter,
        stop_requested: Callable[[], int | None],
    ) -> None:
        self._tokenizer = tokenizer
        self._decoding = decoding
        self._config = config
        self._batches = batches
        self._pairs = pairs[: config.validation_sentences]
        self._reporter = reporter
        self._stop_requested = stop_requested

    def __call__(self, model: Transformer, step: int) -> dict[str, Any]:
        """Scores a model in evaluation mode.

        Returns:
            loss, ppl, bleu, chrf, exact, `score` (the metric that decides about the best, higher is better) and the
            sacreBLEU signature.

        Raises:
            Interrupted: A stop was requested in the midst of it.
        """
        set_loss = evaluate_loss(model, self._interruptible(self._batches()))
        outputs = self._translate(model)
        references = [[clean(tgt)] for _, tgt in self._pairs]
        scores = {name: score(name, outputs, references) for name in ("bleu", "chrf", "exact")}
        result: dict[str, Any] = {"loss": set_loss.loss, "ppl": set_loss.ppl}
        result |= {name: metric.value for name, metric in scores.items()}
        best_metric = self._config.best_metric
        result["score"] = -set_loss.loss if best_metric == "loss" else result[best_metric]
        result["signature"] = scores["bleu"].signature
        self._show(step, result, outputs)
        return result

    def _translate(self, model: Transformer) -> list[str]:
        translator = Translator(model, self._tokenizer, self._decoding)
        sources = [src for src, _ in self._pairs]
        chunks = [sources[i : i + _CHUNK] for i in range(0, len(sources), _CHUNK)]
        return [
            translation.text
            for chunk in self._interruptible(chunks)
            for translation in translator.translate(chunk, beam_size=1)
        ]

    def _interruptible(self, items: Iterable[T]) -> Iterable[T]:
        for item in items:
            number = self._stop_requested()
            if number is not None:
                raise Interrupted("stopped during validation", number)
            yield item

    def _show(self, step: int, result: dict[str, Any], outputs: list[str]) -> None:
        self._reporter.say(
            f"step {step:,}: validation loss {result['loss']:.3f}, ppl {result['ppl']:.2f}, BLEU {result['bleu']:.2f},"
            f" chrF {result['chrf']:.2f}, exact {result['exact']:.1f} %"
        )
        stride = max(len(self._pairs) // SAMPLES, 1)
        for i in range(0, min(len(self._pairs), SAMPLES * stride), stride):
            source, reference = self._pairs[i]
            self._reporter.say(f"  source     {source}\n  output     {outputs[i]}\n  reference  {reference}")
