"""A validation scores what the translator gives, and can be left in its midst."""

import math
import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from helpers.tiny_run import Recorder

from tfm.data.batching import training_rows
from tfm.data.config import TokenizerConfig
from tfm.data.facts import CorpusFacts
from tfm.data.tokenizer import EOS_ID, FIRST_TEXT_ID, MASK_ID, PAD_ID, Tokenizer
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine import Translator
from tfm.engine.evaluation.loss import evaluate_loss
from tfm.engine.evaluation.scores import score
from tfm.engine.training import encoder as encoder_module
from tfm.engine.training import validation
from tfm.engine.training.encoder import validate_encoder, validate_guesses
from tfm.engine.training.validation import DevSet, Validator, validate_translator
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.model import ModelConfig
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.model.encoder_only import EncoderOnly
from tfm.seq2seq.model.precision import Linear
from tfm.seq2seq.training.batch import Batch
from tfm.seq2seq.training.config import TrainingConfig
from tfm.seq2seq.training.contrastive import ContrastiveLoss
from tfm.seq2seq.training.masking import MaskedTokenLoss, Masking
from tfm.system.errors import Interrupted

Pairs = list[tuple[str, str]]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def tokenizer(pairs: Pairs) -> Tokenizer:
    """A vocabulary of the number words."""
    sources, targets = zip(*pairs, strict=True)
    return build_tokenizer(zip(sources, targets, strict=True), TokenizerConfig(vocab_size=320))


@pytest.fixture
def model(tokenizer: Tokenizer) -> Transformer:
    """A random one."""
    torch.manual_seed(3)
    config = ModelConfig(d_model=16, d_ff=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, max_seq_len=40)
    size = len(tokenizer.tgt)
    return Transformer(config, src_vocab_size=size, tgt_vocab_size=size, shared_vocab=True).eval()


@pytest.fixture
def make_validator(tokenizer: Tokenizer, pairs: Pairs) -> Callable[..., Validator]:
    """Makes one over all the pairs; `stop_requested` and training settings by name."""

    def batches() -> Iterator[Batch]:
        encode = tokenizer.src.encode
        for start in range(0, len(pairs), 50):
            yield Batch.of(training_rows([(encode(s), encode(t)) for s, t in pairs[start : start + 50]]))

    def make(stop_requested: Callable[[], int | None] = lambda: None, **training: Any) -> Validator:
        dev = DevSet(batches, pairs, Recorder(), stop_requested)
        config = TrainingConfig(**training)
        return partial(
            validate_translator, dev, tokenizer=tokenizer, decoding=DecodingConfig(), facts=CorpusFacts(), config=config
        )

    return make


def test_scores_are_those_of_the_translator_on_the_first_sentences(
    make_validator: Callable[..., Validator], model: Transformer, tokenizer: Tokenizer, pairs: Pairs
) -> None:
    result = make_validator(validation_sentences=120)(model, 7)
    outputs = Translator(model, tokenizer, DecodingConfig()).translate(
        [src for src, _ in pairs[:120]],
        beam_size=1,
    )
    references = [[tgt] for _, tgt in pairs[:120]]
    assert result["chrf"] == score("chrf", [str(one) for one in outputs], references).value > 0
    encode = tokenizer.src.encode
    whole = Batch.of(training_rows([(encode(s), encode(t)) for s, t in pairs]))
    assert result["loss"] == pytest.approx(evaluate_loss(model, [whole]).loss, rel=1e-5)
    assert result["ppl"] == pytest.approx(math.exp(result["loss"]), rel=1e-5)


@pytest.mark.parametrize("metric", ["loss", "bleu", "chrf"])
def test_the_higher_score_is_the_better_one(
    make_validator: Callable[..., Validator], model: Transformer, metric: str
) -> None:
    result = make_validator(validation_sentences=20, best_metric=metric)(model, 7)
    assert result["score"] == (-result["loss"] if metric == "loss" else result[metric])


@pytest.mark.parametrize(("looks", "translated"), [(1, 0), (3, 0), (4, 60), (5, 120)])
def test_a_stop_is_heard_between_batches_and_between_parts_of_the_translations(
    make_validator: Callable[..., Validator],
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

    monkeypatch.setattr(validation, "CHUNK_TEXTS", 60)
    monkeypatch.setattr(Translator, "translate", counted)
    with pytest.raises(Interrupted, match="stopped during validation") as stopped:
        make_validator(stop_requested, validation_sentences=150)(model, 7)
    assert stopped.value.signal_number == signal.SIGTERM
    assert (asked[0], counts[0]) == (looks + 1, translated)


@pytest.fixture
def encoder(tokenizer: Tokenizer) -> EncoderOnly:
    """A random one."""
    torch.manual_seed(3)
    sizes: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "max_seq_len": 40}
    layers: dict[str, Any] = {"architecture": "encoder_only", "num_encoder_layers": 1, "num_decoder_layers": 0}
    return EncoderOnly(ModelConfig(**sizes, **layers), vocab_size=len(tokenizer.tgt)).eval()


@pytest.fixture
def batches(tokenizer: Tokenizer, pairs: Pairs) -> list[Batch]:
    """All the pairs, in three batches."""
    encode = tokenizer.src.encode
    parts = [pairs[start : start + 50] for start in range(0, len(pairs), 50)]
    return [Batch.of(training_rows([(encode(s), encode(t)) for s, t in part])) for part in parts]


@torch.no_grad()
def test_a_sentence_encoder_is_scored_by_its_loss_and_by_what_a_search_among_all_finds(
    encoder: EncoderOnly, tokenizer: Tokenizer, pairs: Pairs, batches: list[Batch]
) -> None:
    recorder = Recorder()
    dev = DevSet(lambda: batches, pairs, recorder, lambda: None)
    validator = partial(validate_encoder, dev, config=TrainingConfig(best_metric="retrieval"))
    result = validator(encoder, 7)
    loss = sum(ContrastiveLoss()(encoder, batch)[0].item() for batch in batches) / len(pairs)
    assert result["loss"] == pytest.approx(loss, rel=1e-5)
    vectors = [
        [encoder.embed(torch.tensor([[*tokenizer.src.encode(text), EOS_ID]]))[0] for text in pair] for pair in pairs
    ]
    for side, name in ((0, "src_to_tgt"), (1, "tgt_to_src")):
        right = 0
        for i, pair in enumerate(pairs):
            found = max(range(len(pairs)), key=lambda j: float(vectors[i][side] @ vectors[j][1 - side]))
            right += pairs[found][0] == pair[0] or pairs[found][1] == pair[1]
        assert result[name] == pytest.approx(100 * right / len(pairs), abs=2.1)  # two may be as near as rounding goes
    assert result["retrieval"] == result["score"] == (result["src_to_tgt"] + result["tgt_to_src"]) / 2
    assert "retrieval" in recorder.said[0]


def masked_validator(tokenizer: Tokenizer, batches: list[Batch], stop: Any = None) -> "partial[dict[str, Any]]":
    ids = {"eos_id": EOS_ID, "mask_id": MASK_ID, "first_piece": FIRST_TEXT_ID}
    masking = Masking(**ids, vocab_size=len(tokenizer.tgt))
    return partial(validate_guesses, DevSet(lambda: batches, [], Recorder(), lambda: stop), masking=masking)


def test_hidden_tokens_are_the_same_ones_each_time(
    encoder: EncoderOnly, tokenizer: Tokenizer, batches: list[Batch]
) -> None:
    validator = masked_validator(tokenizer, batches)
    torch.manual_seed(1)
    first = validator(encoder, 7)
    state = torch.get_rng_state()
    assert validator(encoder, 8) == first
    assert torch.get_rng_state().equal(state), "the trainer's random numbers are its own"
    masking = validator.keywords["masking"]
    torch.manual_seed(encoder_module._MASKING_SEED)
    sums = [MaskedTokenLoss(masking, 0.0)(encoder, batch) for batch in batches]
    assert first["loss"] == pytest.approx(sum(loss.item() for loss, _ in sums) / sum(n for _, n in sums), rel=1e-5)
    assert first["score"] == -first["loss"]


def test_accuracy_is_the_share_of_hidden_tokens_that_are_guessed(
    encoder: EncoderOnly, tokenizer: Tokenizer, batches: list[Batch]
) -> None:
    """A model that always says one piece is right as often as that piece is hidden."""
    piece = int(batches[0].src[0, 0])
    with torch.no_grad():
        encoder.output_layer = Linear(16, len(tokenizer.tgt))
        encoder.output_layer.weight.zero_()
        encoder.output_layer.bias.copy_(torch.eye(len(tokenizer.tgt))[piece])
    validator = masked_validator(tokenizer, batches)
    generator = torch.Generator().manual_seed(encoder_module._MASKING_SEED)
    wanted = [
        validator.keywords["masking"](ids, generator)[1] for batch in batches for ids in (batch.src, batch.tgt_out)
    ]
    chosen = torch.cat([ids[ids != PAD_ID] for ids in wanted])
    assert validator(encoder, 7)["accuracy"] == pytest.approx(100 * (chosen == piece).float().mean().item())


def test_encoders_leave_a_validation_when_asked_to(
    encoder: EncoderOnly, tokenizer: Tokenizer, batches: list[Batch]
) -> None:
    sentences = partial(validate_encoder, DevSet(lambda: batches, [], Recorder(), lambda: 15), config=TrainingConfig())
    for validator in (sentences, masked_validator(tokenizer, batches, stop=15)):
        with pytest.raises(Interrupted, match="stopped during validation"):
            validator(encoder, 7)
