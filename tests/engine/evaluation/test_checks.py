"""The self-tests of a model: a sound one passes all of them, and each turns red when what it is for is broken."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tfm.data.batching import training_rows
from tfm.data.tokenizer import Tokenizer, Vocabulary
from tfm.engine.evaluation.checks import Check, check_model
from tfm.seq2seq.decoding.fast import decoder as fast_decoder
from tfm.seq2seq.decoding.fast import decoder_only as fast_decoder_only
from tfm.seq2seq.decoding.fast import model as fast_model
from tfm.seq2seq.decoding.greedy import Greedy
from tfm.seq2seq.model import ModelConfig, Transformer, attention, decoder_only, encoder_decoder, encoder_only
from tfm.seq2seq.model.decoder_only import DecoderOnly
from tfm.seq2seq.model.encoder_only import EncoderOnly
from tfm.seq2seq.model.feed_forward import FeedForward
from tfm.seq2seq.model.masks import causal_mask
from tfm.seq2seq.model.softmax import softmax
from tfm.seq2seq.training.batch import Batch
from tfm.seq2seq.training.contrastive import contrastive_loss, equal_rows

NAMES = ["tokenizer", "causality", "padding", "cache", "search", "softmax", "order", "source"]
CPU = torch.device("cpu")
Models = dict[str, Any]


def learn(model: Any, tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> Any:
    """Trains a model until it has looked at the sources."""
    ids = [(tokenizer.src.encode(src), tokenizer.tgt.encode(tgt)) for src, tgt in pairs]
    batch = Batch.of(training_rows(ids))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(80):
        optimizer.zero_grad()
        if isinstance(model, EncoderOnly):
            same = equal_rows(batch.src) | equal_rows(batch.tgt_out)
            src, tgt = model.embed(batch.src), model.embed(batch.tgt_out)
            loss = contrastive_loss(src, tgt, same, model.temperature)
        else:
            logits = model(batch.src, batch.tgt_in)
            loss = F.cross_entropy(logits.flatten(0, 1), batch.tgt_out.flatten(), ignore_index=0)
        loss.backward()
        optimizer.step()
    return model.eval()


@pytest.fixture(scope="module")
def models(tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> Models:
    """One model of each architecture, with a little training; read only."""
    sizes: dict[str, Any] = {"d_model": 24, "d_ff": 32, "num_heads": 2, "max_seq_len": 40, "norm_order": "pre"}
    size = len(tokenizer.tgt)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        both = ModelConfig(**sizes, num_encoder_layers=1, num_decoder_layers=1)
        decoder = ModelConfig(**sizes, architecture="decoder_only", num_encoder_layers=0, num_decoder_layers=1)
        encoder = ModelConfig(**sizes, architecture="encoder_only", num_encoder_layers=1, num_decoder_layers=0)
        made = {
            "encoder_decoder": Transformer(both, src_vocab_size=size, tgt_vocab_size=size, shared_vocab=True),
            "decoder_only": DecoderOnly(decoder, vocab_size=size),
            "encoder_only": EncoderOnly(encoder, vocab_size=size),
        }
        return {name: learn(model, tokenizer, pairs) for name, model in made.items()}


def results(model: Any, tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> dict[str, Check]:
    return {one.name: one for one in check_model(model, tokenizer, pairs)}


def test_a_sentence_encoder_is_checked_on_texts_alone(
    models: Models, tokenizer: Tokenizer, pairs: list[tuple[str, str]]
) -> None:
    """Trained to guess hidden words of texts, it has a validation set without sources."""
    found = results(models["encoder_only"], tokenizer, [("", tgt) for _, tgt in pairs])
    assert all(one.passed for name, one in found.items() if name != "source")
    assert found["source"].passed is None and found["padding"].value


@pytest.mark.parametrize("architecture", ["encoder_decoder", "decoder_only", "encoder_only"])
def test_a_sound_model_passes(
    models: Models, architecture: str, tokenizer: Tokenizer, pairs: list[tuple[str, str]]
) -> None:
    found = results(models[architecture], tokenizer, pairs)
    without = {"encoder_only": {"causality", "cache", "search"}}.get(architecture, set())
    assert list(found) == [name for name in NAMES if name not in without]
    skipped = {"order"} if architecture == "decoder_only" else set()
    assert {name for name, one in found.items() if one.passed is None} == skipped
    assert all(one.passed for name, one in found.items() if name not in skipped), found


def test_a_language_model_and_made_up_sentences(models: Models, tokenizer: Tokenizer) -> None:
    texts = [("", text) for text in ("the cat sees the house.", "a dog", "two apples")]
    found = results(models["decoder_only"], tokenizer, texts)
    assert {name for name, one in found.items() if one.passed is None} == {"order", "source"}
    assert all(one.passed is not False for one in found.values()), found
    made_up = results(models["encoder_decoder"], tokenizer, [])
    assert {name for name, one in made_up.items() if one.passed is not True} == {"source"}


def test_a_model_that_has_learned_nothing_does_not_use_its_source(
    model: Transformer, tokenizer: Tokenizer, pairs: list[tuple[str, str]]
) -> None:
    found = results(model, tokenizer, pairs)
    assert [name for name, one in found.items() if not one.passed] == ["source"]
    assert "the loss is " in found["source"].found


def test_rotary_positions_are_switched_off_where_order_must_not_matter(
    models: Models, tokenizer: Tokenizer, pairs: list[tuple[str, str]]
) -> None:
    both, encoder = (replace(models[name].config, positions="rotary") for name in ("encoder_decoder", "encoder_only"))
    size = len(tokenizer.tgt)
    for rotary in (
        Transformer(both, src_vocab_size=size, tgt_vocab_size=size, shared_vocab=True),
        EncoderOnly(encoder, vocab_size=size),
    ):
        assert results(rotary.eval(), tokenizer, pairs)["order"].passed


def test_numbers_that_are_none_fail(models: Models, tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> None:
    broken = Transformer(models["encoder_decoder"].config, src_vocab_size=360, tgt_vocab_size=360, shared_vocab=True)
    broken = broken.eval()
    with torch.no_grad():
        for parameter in broken.parameters():
            parameter.fill_(torch.nan)
    found = results(broken, tokenizer, pairs)
    assert [name for name, one in found.items() if one.passed] == ["tokenizer"]


# --- what each check is for, broken on purpose ---


def see_all(length: int, device: torch.device | None = None) -> Tensor:
    return torch.ones_like(causal_mask(length, device))


def see_padding(ids: Tensor) -> Tensor:
    return torch.ones_like(ids, dtype=torch.bool)[:, None, None, :]


def break_causality(patch: pytest.MonkeyPatch) -> None:
    for module in (encoder_decoder, decoder_only):
        patch.setattr(module, "causal_mask", see_all)


def break_padding(patch: pytest.MonkeyPatch) -> None:
    for module in (encoder_decoder, encoder_only):
        patch.setattr(module, "padding_mask", see_padding)


def break_cache(patch: pytest.MonkeyPatch) -> None:
    """The newest position is forgotten."""

    def forgetful(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        return sound(q, keys[:-1], values[:-1]) if len(keys) > 1 else sound(q, keys, values)

    sound = fast_decoder.attend_to_past
    patch.setattr(fast_model, "attend_to_past", forgetful)
    patch.setattr(fast_decoder_only, "attend_to_past", forgetful)


def break_search(patch: pytest.MonkeyPatch) -> None:
    """It reports other log-probabilities than those of its outputs."""
    sound = Greedy.__call__

    def boastful(self: Greedy, *arguments: Any) -> Any:
        found = sound(self, *arguments)
        return [[type(one)(one.ids, one.log_prob + 1.0, one.score) for one in several] for several in found]

    patch.setattr(Greedy, "__call__", boastful)


def break_softmax(patch: pytest.MonkeyPatch) -> None:
    sound = softmax
    patch.setattr(attention, "softmax", lambda scores: 1.01 * sound(scores))


def break_order(patch: pytest.MonkeyPatch) -> None:
    """A feed-forward network that knows where a token stands."""
    sound = FeedForward.forward

    def knowing(self: FeedForward, x: Tensor) -> Tensor:
        return sound(self, x) + torch.arange(x.size(-2))[:, None] * torch.linspace(-0.1, 0.1, x.size(-1))

    patch.setattr(FeedForward, "forward", knowing)


def break_tokenizer(patch: pytest.MonkeyPatch) -> None:
    sound = Vocabulary.decode
    patch.setattr(Vocabulary, "decode", lambda self, ids: sound(self, ids).replace("Ä", "A"))


BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "tokenizer": break_tokenizer,
    "causality": break_causality,
    "padding": break_padding,
    "cache": break_cache,
    "search": break_search,
    "softmax": break_softmax,
    "order": break_order,
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_check_turns_red(
    name: str, models: Models, tokenizer: Tokenizer, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    BROKEN[name](monkeypatch)
    assert results(models["encoder_decoder"], tokenizer, pairs)[name].passed is False


@pytest.mark.parametrize("name", ["causality", "search", "softmax", "tokenizer"])
def test_each_check_of_a_decoder_only_model_turns_red(
    name: str, models: Models, tokenizer: Tokenizer, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    BROKEN[name](monkeypatch)
    assert results(models["decoder_only"], tokenizer, pairs)[name].passed is False


@pytest.mark.parametrize("name", ["padding", "softmax", "order"])
def test_each_check_of_an_encoder_turns_red(
    name: str, models: Models, tokenizer: Tokenizer, pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    BROKEN[name](monkeypatch)
    assert results(models["encoder_only"], tokenizer, pairs)[name].passed is False
