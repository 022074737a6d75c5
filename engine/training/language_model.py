"""The validation of a language model: perplexity of texts, and a few texts that it makes up."""

from collections.abc import Iterable
from typing import Any

from ...data.cleaning import clean
from ...data.tokenizer import Tokenizer
from ...seq2seq.decoding.sampling import Sample
from ...seq2seq.model.decoder_only import DecoderOnly
from ..evaluation.loss import evaluate_loss, in_figures, perplexity
from ..generator import Generator
from .validation import SAMPLES, DevSet


def validate_language_model(
    dev: DevSet, model: DecoderOnly, step: int, *, tokenizer: Tokenizer, num_bytes: int
) -> dict[str, Any]:
    """Perplexity per piece and per byte of texts, which are the targets of the pairs and have `num_bytes` in all.

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
    """Bytes of the texts that a model reads, those of at most `max_pieces` without eos; a line end counts as one."""
    read = [clean(text) for text in texts if len(tokenizer.tgt.encode(text)) <= max_pieces]
    return sum(len(text.encode()) + 1 for text in read)
