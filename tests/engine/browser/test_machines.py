"""engine.js, searches and machines: translations, texts and vectors are those of the run, second searches included."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from helpers.javascript import javascript, needs_node
from helpers.learned import made, marked_pairs

from tfm.data.config import TokenizerConfig
from tfm.data.facts import CorpusFacts
from tfm.data.tokenizer import Tokenizer
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine.browser.node import Engine, find_node, running
from tfm.engine.browser.pack import pack
from tfm.engine.embedder import Embedder
from tfm.engine.export.html.quality import Machine, machine_of
from tfm.engine.generator import Generator
from tfm.engine.runs.load import TrainedRun
from tfm.engine.translator import Translator
from tfm.seq2seq.decoding.beam import Beam
from tfm.seq2seq.decoding.greedy import Greedy
from tfm.seq2seq.decoding.sampling import Sample, restricted_distribution

pytestmark = needs_node


@pytest.fixture
def both() -> Iterator[Callable[[TrainedRun], tuple[Machine, Engine]]]:
    """A run, and the same in JavaScript."""
    from contextlib import ExitStack

    with ExitStack() as engines:
        node = find_node()
        assert node

        def open_(loaded: TrainedRun) -> tuple[Machine, Engine]:
            return machine_of(loaded), engines.enter_context(running(pack(loaded, "float32"), node))

        yield open_


def differences(translator: Any, engine: Engine, texts: list[str], **settings: Any) -> list[Any]:
    """Texts whose translation in JavaScript is another one, or has other properties."""
    search = translator.search(settings.get("beam_size"), settings.get("length_penalty"))
    once = settings.get("no_repeat_ngram_size")
    ours = translator.translate(texts, search=replace(search, no_repeat_ngram_size=once) if once else search)
    theirs = list(engine.each("translate", texts, **settings))
    return [
        (text, one, other)
        for text, one, other in zip(texts, ours, theirs, strict=True)
        if (one.text, one.repaired, one.looped, sorted(one.lost), list(one.unknown))
        != (other["text"], other["repaired"], other["looped"], sorted(other["lost"]), other["unknown"])
        or abs(one.score - other["score"]) > 1e-3
        or (one.ids and abs(one.confidence - other["confidence"]) > 1e-3)
    ]


@pytest.mark.parametrize(
    ("architecture", "steps"),
    [
        *(("encoder_decoder", 12), ("encoder_decoder", 60), ("decoder_only", 60)),
        pytest.param("decoder_only", 12, marks=pytest.mark.slow),
    ],
)
def test_translations_and_their_repairs(both: Any, marked_tokenizer: Tokenizer, steps: int, architecture: str) -> None:
    pairs = marked_pairs()
    facts = CorpusFacts(pairs=1000, loops=0, letterless=0, last_sign=".")
    translator, engine = both(made(marked_tokenizer, pairs, steps=steps, facts=facts, architecture=architecture))
    texts = [src for src, _ in pairs[:60]]
    texts += ["", "  ", "123 %s", "<b> . </b>", "\x00 12", "cat ☃ sees", "cat sees dog. " * 14, "日本語 " * 30]
    texts += [pairs[0][0].upper(), "CAT SEES DOG", "Cat Sees Dog. The Dog Likes Cat %s", "cat sees dog"]
    texts += ["%s" * 20, "<b>cat</b> sees", "&amp;dog {name}{name} likes"]
    repaired = translator.translate(texts, beam_size=1)
    assert any(one.repaired for one in repaired) or steps == 12
    for settings in (
        {"beam_size": 1},
        {"beam_size": 4},
        {"beam_size": 3, "length_penalty": 0.0},
        {"beam_size": 2, "no_repeat_ngram_size": 2},
    ):
        different = differences(translator, engine, texts, **settings)
        assert len(different) <= 0.005 * len(texts), (settings, different)


def test_beginnings_that_are_given(both: Any, marked_tokenizer: Tokenizer) -> None:
    translator, engine = both(made(marked_tokenizer, marked_pairs(), steps=40))
    texts = [src for src, _ in marked_pairs()[:20]]
    for size in (1, 3):
        ours = translator.translate(texts, beam_size=size, prefixes="Hund mag")
        theirs = list(engine.each("translate", texts, beam_size=size, prefix="Hund mag"))
        assert [one.text for one in ours] == [other["text"] for other in theirs]


def test_two_vocabularies(both: Any) -> None:
    tokenizer = build_tokenizer(marked_pairs(), TokenizerConfig(vocab_size=310, separate=True))
    translator, engine = both(made(tokenizer, marked_pairs(), steps=40))
    assert not differences(translator, engine, [src for src, _ in marked_pairs()[:40]], beam_size=4)


def test_attention_is_that_of_the_model(both: Any, marked_tokenizer: Tokenizer) -> None:
    from tfm.engine.attention_maps import attention_map

    loaded = made(marked_tokenizer, marked_pairs(), steps=20)
    translator, engine = both(loaded)
    text = "cat sees dog."
    [ours], [theirs] = translator.translate([text]), engine.each("translate", [text])
    [part] = theirs["parts"]
    found = engine.ask({"kind": "attention", "source": part["sourceIds"], "ids": part["ids"]})
    expected = attention_map(translator, text, ours)
    assert expected is not None
    assert (part["source"], part["pieces"]) == (expected.source, expected.output)
    mean = torch.stack([weights.mean(dim=0) for weights in expected.weights.values()]).mean(dim=0)
    np.testing.assert_allclose(found["weights"], mean, atol=1e-5)


def test_texts_of_a_language_model(both: Any, tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> None:
    generator, engine = both(made(tokenizer, pairs, steps=40, text_only=True, architecture="decoder_only"))
    assert isinstance(generator, Generator)
    beginnings = ["", "die", "ein Hund mag", "x☃", "die Katze " * 30]
    for search, settings in ((Greedy(), {"beam_size": 1}), (Beam(3, 1.0), {"beam_size": 3})):
        ours = generator.generate(beginnings, search=search)
        theirs = list(engine.each("continue", beginnings, **settings))
        assert [(one.text, one.problem, one.ended) for one in ours] == [
            (one["text"], one["problem"], one["ended"]) for one in theirs
        ]
        for one, other in zip(ours, theirs, strict=True):
            assert one.log_prob == pytest.approx(other.get("logProb", 0.0), abs=1e-3)
    drawn = [one["text"] for seed in range(5) for one in engine.each("continue", ["die"], temperature=1.5, seed=seed)]
    again = [one["text"] for seed in range(5) for one in engine.each("continue", ["die"], temperature=1.5, seed=seed)]
    assert drawn == again and len(set(drawn)) > 2


@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 0.5}, {"topK": 4}, {"topP": 0.7}, {"temperature": 2.0, "topK": 9, "topP": 0.6}]
)
def test_what_is_sampled_from(settings: dict[str, Any]) -> None:
    log_probs = torch.randn(50, generator=torch.Generator().manual_seed(1)).mul(2).log_softmax(dim=0)
    names = {"temperature": "temperature", "topK": "top_k", "topP": "top_p"}
    probs, tokens = restricted_distribution(
        log_probs[None], Sample(**{names[key]: value for key, value in settings.items()})
    )
    body = "return engine.restricted(data.logProbs, data.settings)"
    found = javascript(body, {"logProbs": log_probs.tolist(), "settings": settings})
    count = int((probs > 0).sum())
    assert [token for token, _ in found] == tokens[0, :count].tolist()
    np.testing.assert_allclose([share for _, share in found], probs[0, :count], atol=1e-6)


def test_draws_are_even() -> None:
    found = np.array(javascript("return data.map((n) => engine.drawn(`0 ${n} 3`))", list(range(20_000))))
    counts, _ = np.histogram(found, bins=20, range=(0, 1))
    assert ((counts - 1_000) ** 2 / 1_000).sum() < 50, "chi-squared of 19 degrees of freedom"


def test_vectors_of_a_sentence_encoder(both: Any, tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> None:
    embedder, engine = both(made(tokenizer, pairs, steps=0, architecture="encoder_only"))
    assert isinstance(embedder, Embedder)
    texts = ["", "the cat", "my sister likes a red ball.", "the cat " * 40]
    np.testing.assert_allclose(list(engine.each("vectors", texts)), embedder.embed(texts), atol=1e-4)


def test_work_can_be_stopped(marked_tokenizer: Tokenizer) -> None:
    """A stop is heard within a search, and the session is of use afterwards."""
    loaded = made(marked_tokenizer, marked_pairs(), steps=0)
    body = """
      const said = [];
      const session = new engine.Session((message) => said.push(message));
      await session.take({ kind: "open", id: 1, model: Buffer.from(data.packed, "base64") });
      const work = session.take({ kind: "translate", id: 2, texts: Array(500).fill("cat sees dog likes cat") });
      await new Promise((go) => setTimeout(go, 100));
      await session.take({ kind: "stop" });
      await work;
      await session.take({ kind: "translate", id: 3, texts: ["cat"], settings: { beam_size: 1 } });
      await session.take({ kind: "nonsense", id: 4 });
      return said.map(({ id, kind }) => [id, kind]);"""
    import base64

    said = javascript(body, {"packed": base64.b64encode(pack(loaded, "float32")).decode()})
    assert said[0] == [1, "done"]
    assert [2, "stopped"] in said and said.count([2, "one"]) < 500
    assert said[-3:] == [[3, "one"], [3, "done"], [4, "failed"]]
    assert isinstance(machine_of(loaded), Translator)
