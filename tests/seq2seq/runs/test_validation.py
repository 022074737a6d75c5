"""A validation scores what the translator gives, and can be left in its midst."""

import math
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from helpers.tiny_run import Recorder

from tfm.data.batching import make_batch
from tfm.data.config import TokenizerConfig
from tfm.data.errors import Interrupted
from tfm.data.tokenizer import Tokenizer, build_tokenizer
from tfm.seq2seq.decoding import Translator
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.evaluation.loss import TensorBatch, evaluate_loss, to_tensors
from tfm.seq2seq.evaluation.scores import score
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.runs import validation
from tfm.seq2seq.runs.validation import TranslationValidator
from tfm.seq2seq.training.config import TrainingConfig

Pairs = list[tuple[str, str]]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def tokenizer(pairs: Pairs) -> Tokenizer:
    """A vocabulary of the number words."""
    sources, targets = zip(*pairs, strict=True)
    return build_tokenizer(sources, targets, TokenizerConfig(vocab_size=320))


@pytest.fixture
def model(tokenizer: Tokenizer) -> Transformer:
    """A random one."""
    torch.manual_seed(3)
    config = ModelConfig(d_model=16, d_ff=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, max_seq_len=40)
    size = len(tokenizer.tgt)
    return Transformer(config, src_vocab_size=size, tgt_vocab_size=size, shared_vocab=True).eval()


@pytest.fixture
def make_validator(tokenizer: Tokenizer, pairs: Pairs) -> Callable[..., TranslationValidator]:
    """Makes one over all the pairs; `stop_requested` and training settings by name."""

    def batches() -> Iterator[TensorBatch]:
        encode = tokenizer.src.encode
        for start in range(0, len(pairs), 50):
            yield to_tensors(make_batch([(encode(s), encode(t)) for s, t in pairs[start : start + 50]]), CPU)

    def make(stop_requested: Callable[[], int | None] = lambda: None, **training: Any) -> TranslationValidator:
        return TranslationValidator(
            tokenizer=tokenizer,
            decoding=DecodingConfig(),
            config=TrainingConfig(**training),
            batches=batches,
            pairs=pairs,
            reporter=Recorder(),
            stop_requested=stop_requested,
        )

    return make


def test_scores_are_those_of_the_translator_on_the_first_sentences(
    make_validator: Callable[..., TranslationValidator], model: Transformer, tokenizer: Tokenizer, pairs: Pairs
) -> None:
    result = make_validator(validation_sentences=120)(model, 7)
    outputs = Translator(model, tokenizer, DecodingConfig()).translate([src for src, _ in pairs[:120]], beam_size=1)
    references = [[tgt] for _, tgt in pairs[:120]]
    assert result["chrf"] == score("chrf", [str(one) for one in outputs], references).value > 0
    encode = tokenizer.src.encode
    whole = to_tensors(make_batch([(encode(s), encode(t)) for s, t in pairs]), CPU)
    assert result["loss"] == pytest.approx(evaluate_loss(model, [whole]).loss, rel=1e-5)
    assert result["ppl"] == pytest.approx(math.exp(result["loss"]), rel=1e-5)


@pytest.mark.parametrize("metric", ["loss", "bleu", "chrf"])
def test_the_higher_score_is_the_better_one(
    make_validator: Callable[..., TranslationValidator], model: Transformer, metric: str
) -> None:
    result = make_validator(validation_sentences=20, best_metric=metric)(model, 7)
    assert result["score"] == (-result["loss"] if metric == "loss" else result[metric])


@pytest.mark.parametrize(("looks", "translated"), [(1, 0), (3, 0), (4, 60), (5, 120)])
def test_a_stop_is_heard_between_batches_and_between_parts_of_the_translations(
    make_validator: Callable[..., TranslationValidator],
    model: Transformer,
    monkeypatch: pytest.MonkeyPatch,
    looks: int,
    translated: int,
) -> None:
    """150 pairs are three batches for the loss, then three parts of at most 60 to translate."""
    asked, counts = [0], [0]
    translate = Translator.translate

    def counted(self: Translator, texts: list[str], **options: Any) -> object:
        counts[0] += len(texts)
        return translate(self, texts, **options)

    def stop_requested() -> int | None:
        asked[0] += 1
        return signal.SIGTERM if asked[0] > looks else None

    monkeypatch.setattr(validation, "_CHUNK", 60)
    monkeypatch.setattr(Translator, "translate", counted)
    with pytest.raises(Interrupted, match="stopped during validation") as stopped:
        make_validator(stop_requested, validation_sentences=150)(model, 7)
    assert stopped.value.signal_number == signal.SIGTERM
    assert (asked[0], counts[0]) == (looks + 1, translated)
