"""Placeholders and terms of a glossary arrive, whatever the model would say: here it has learned nothing."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.config import TokenizerConfig
from tfm.data.facts import CorpusFacts, is_loop
from tfm.data.glossary import Glossary
from tfm.data.placeholders import SYMBOLS, PlaceholderRule, differences, placeholders
from tfm.data.tokenizer import PLACEHOLDER_IDS, Tokenizer
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine import Beam, Greedy, Sample, Translator
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.model.config import ModelConfig
from tfm.seq2seq.model.encoder_decoder import Transformer

MARKUP = ["%s", "%(n)d", "{name}", "<b>", "</b>", "https://example.org/a?b", ":func:`open`", "&amp;"]
WORDS = ["the cat", "sees", "a dog", "and", "my sister"]


@pytest.fixture(scope="module")
def marked_tokenizer() -> Tokenizer:
    """A vocabulary of sentences with placeholders."""
    sources = [f"{WORDS[i % 5]} {MARKUP[i % 8]} {WORDS[i % 3]} {MARKUP[i % 7]}." for i in range(200)]
    targets = [f"{WORDS[i % 3]} {MARKUP[i % 7]}, {MARKUP[i % 8]} {WORDS[i % 5]}!" for i in range(200)]
    return build_tokenizer(zip(sources, targets, strict=True), TokenizerConfig(vocab_size=320))


@pytest.fixture(autouse=True)
def be_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that has learned nothing does not end its outputs, and finds unlikely what it has to write."""
    monkeypatch.setattr("tfm.engine.translation.MARGIN", float("inf"))
    monkeypatch.setattr("tfm.engine.translation.Part.ends", True)


@pytest.fixture
def make_looping(make_model: Callable[[int], Transformer], tokenizer: Tokenizer) -> Callable[..., Translator]:
    """Builds a translator that repeats itself."""

    def make(facts: CorpusFacts | None = None) -> Translator:
        return Translator(make_model(20), tokenizer, DecodingConfig(beam_size=2), facts)

    return make


def make_translator(tokenizer: Tokenizer, max_seq_len: int = 60) -> Translator:
    config = ModelConfig(
        d_model=16,
        d_ff=32,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        max_seq_len=max_seq_len,
    )
    size = len(tokenizer.tgt)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = Transformer(config, src_vocab_size=size, tgt_vocab_size=size, shared_vocab=True).eval()
    return Translator(model, tokenizer, DecodingConfig(beam_size=2, max_length_factor=1.0, max_length_offset=8))


@pytest.fixture(scope="module")
def translator(marked_tokenizer: Tokenizer) -> Translator:
    return make_translator(marked_tokenizer)


def test_a_vocabulary_has_symbols_where_the_corpus_has_placeholders(
    marked_tokenizer: Tokenizer, tokenizer: Tokenizer
) -> None:
    assert marked_tokenizer.has_placeholders and not tokenizer.has_placeholders
    assert [marked_tokenizer.src.piece(i) for i in PLACEHOLDER_IDS] == SYMBOLS
    few = ["plain text"] * 50 + ["%s"] * 19
    assert not build_tokenizer(zip(few, few, strict=True), TokenizerConfig(vocab_size=320)).has_placeholders
    off = TokenizerConfig(vocab_size=320, placeholders=False)
    assert not build_tokenizer(zip(["a %s"] * 60, ["b %s"] * 60, strict=True), off).has_placeholders


TEXTS = st.lists(st.sampled_from([*MARKUP, *WORDS]), min_size=1, max_size=8).map(" ".join)


@given(texts=st.lists(TEXTS, min_size=1, max_size=4), beam_size=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_every_placeholder_arrives_as_often_as_it_stands_in_the_source(
    translator: Translator, texts: list[str], beam_size: int
) -> None:
    for text, found in zip(texts, translator.translate(texts, beam_size=beam_size), strict=True):
        assert all(found.text.count(value) >= placeholders(text).count(value) for value in placeholders(text))
        assert not differences(text, found.text) and not set(found.text) & set(SYMBOLS)
        assert not (found.lost or found.added or found.glued)


LOOPING = CorpusFacts(pairs=1000, loops=2)
"""Of a corpus whose targets repeat themselves."""


@pytest.mark.parametrize("search", [Greedy(), Beam(3)])
def test_an_output_that_repeats_itself_is_searched_again_and_flagged(
    make_looping: Callable[..., Translator], search: Greedy | Beam
) -> None:
    translator = make_looping()
    texts = ["the cat sees the house.", "a dog", "my sister likes two apples.", "the dog the dog the dog the dog"]
    before = translator.translate(texts, search=search, repair=False)
    after = translator.translate(texts, search=search)
    loops = [is_loop(one.text, text) for one, text in zip(before, texts, strict=True)]
    assert any(loops), "a model that has learned nothing repeats itself"
    assert [one.looped for one in after] == loops and not any(one.looped for one in before)
    assert any(one.repaired for one in after)
    for one, other, text in zip(before, after, texts, strict=True):
        assert other.repaired or one.text == other.text
        assert not (other.repaired and is_loop(other.text, text))


def test_where_targets_repeat_themselves_outputs_may(make_looping: Callable[..., Translator]) -> None:
    texts = ["the cat sees the house.", "a dog", "my sister likes two apples."]
    free = make_looping().translate(texts, beam_size=1, repair=False)
    assert make_looping(LOOPING).translate(texts, beam_size=1) == free
    assert any(one.looped for one in make_looping(LOOPING).translate(texts, beam_size=1, repair=True))


def test_a_second_output_has_to_be_better(
    make_looping: Callable[..., Translator], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["the cat sees the house.", "a dog", "my sister likes two apples."]
    free = [one.text for one in make_looping().translate(texts, beam_size=1, repair=False)]
    monkeypatch.setattr("tfm.engine.translation.MARGIN", -float("inf"))
    found = make_looping().translate(texts, beam_size=1)
    assert [one.text for one in found] == free, "not where it is less likely"
    assert any(one.looped for one in found) and not any(one.repaired for one in found)
    monkeypatch.setattr("tfm.engine.translation.MARGIN", float("inf"))
    monkeypatch.setattr("tfm.engine.translation.Part.ends", False)
    assert [one.text for one in make_looping().translate(texts, beam_size=1)] == free, "not where it does not end"


def test_without_symbols_placeholders_are_text_and_their_loss_is_said(
    make_model: Callable[[int], Transformer], tokenizer: Tokenizer
) -> None:
    plain = Translator(make_model(15), tokenizer, DecodingConfig(beam_size=3))
    (found,) = plain.translate(["the cat sees %s."])
    assert found.lost == ("%s",) and "%s" not in found.text and not found.repaired
    tags = replace(tokenizer, placeholders=PlaceholderRule({"tag": (20, 0)}))
    (found,) = Translator(make_model(15), tags).translate(["<fr> the cat sees %s."])
    assert found.lost == ("%s",), "a tag that is text is not missed"


def test_what_was_not_repaired_is_reported(translator: Translator) -> None:
    text = "the cat %s {name}"
    for search in (Greedy(), Beam(2)):
        (found,) = translator.translate([text], search=search, repair=False)
        different = differences(text, found.text)
        assert different and (found.lost, found.added) == (different.lost, different.added)
    (drawn,) = translator.translate([text], search=Sample(seed=1))
    assert drawn.lost and not set(drawn.text) & set(SYMBOLS)


@pytest.mark.parametrize("search", [Greedy(), Beam(2)])
def test_a_placeholder_that_the_source_has_not_is_searched_away(translator: Translator, search: Greedy | Beam) -> None:
    texts = [f"{words} and {more}" for words in WORDS for more in WORDS]
    symbols = [translator._job(text, 0, [], None).parts for text in texts]
    assert not any(token in PLACEHOLDER_IDS for parts in symbols for part in parts for token in part.ids)
    before = translator.translate(texts, search=search, repair=False)
    after = translator.translate(texts, search=search)
    invented = [any(token in PLACEHOLDER_IDS for token in one.ids or ()) for one in before]
    assert any(invented), "a model that has learned nothing writes symbols"
    assert not any(token in PLACEHOLDER_IDS for one in after for token in one.ids or ())
    assert all(one.repaired for one, was in zip(after, invented, strict=True) if was)


def test_what_is_no_more_faithful_replaces_nothing(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Translator, "_find_forced", Translator._find)
    texts = [f"{words} and {more}" for words in WORDS for more in WORDS]
    free = translator.translate(texts, repair=False)
    found = translator.translate(texts)
    assert not any(one.repaired for one in found if not one.looped)
    assert [one.text for one in found if not one.looped] == [
        one.text for one, other in zip(free, found, strict=True) if not other.looped
    ]


def test_a_term_that_the_second_search_lacks_too_changes_nothing(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfm.engine.translation.Part.missed", ("my sister",))
    (free,), (found,) = (
        translator.translate(["the cat sees a dog"], glossary=terms, repair=False)
        for terms in (None, Glossary([("cat", "my sister")]))
    )
    assert found.text == free.text and not found.constrained


def test_numbers_and_unknown_characters_of_placeholders_count_as_placeholders_alone(
    make_model: Callable[[int], Transformer], tokenizer: Tokenizer
) -> None:
    (found,) = Translator(make_model(15), tokenizer).translate(["the cat <t1>sees</t1> 7 {0} %1$s"])
    assert found.numbers.lost == ("7",)
    assert set(found.lost) >= {"<t1>", "</t1>", "{0}", "%1$s"}
    assert not set("".join(found.unknown)) & set("<>{}%$/")


def test_parts_of_a_long_text_keep_their_own_placeholders(marked_tokenizer: Tokenizer) -> None:
    short = make_translator(marked_tokenizer, max_seq_len=24)
    text = "the cat sees %s. a dog {name} and my sister. <b>the cat</b> sees a dog."
    (found,) = short.translate([text])
    assert not found.lost and all(found.text.count(value) == 1 for value in placeholders(text))


def test_terms_of_a_glossary_are_in_the_output(translator: Translator) -> None:
    glossary = Glossary([("cat", "my sister"), ("dog", "the cat")])
    texts = ["the cat sees a dog", "my sister", "the cat %s the cat"]
    found = translator.translate(texts, glossary=glossary)
    assert "my sister" in found[0].text and "the cat" in found[0].text and found[2].text.count("my sister") >= 2
    assert "%s" in found[2].text and not any(one.missed or one.lost for one in found)
    assert found[1].text == translator.translate([texts[1]])[0].text
    drawn = translator.translate(texts[:1], glossary=Glossary([("cat", "and and")]), search=Greedy())
    assert "and and" in drawn[0].text


def test_a_repair_has_to_write_the_terms_that_the_first_output_had(translator: Translator) -> None:
    """Else it loses one, and is thrown away."""
    (found,) = translator.translate(["the cat sees %s and {name}"], glossary=Glossary([("cat", "my sister")]))
    assert found.repaired and found.constrained and not found.lost and "my sister" in found.text


def test_a_repair_that_lacks_no_term_is_not_forced_to_write_one(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    (free,) = translator.translate(["the cat sees %s and {name}"])
    monkeypatch.setattr("tfm.engine.translation.Part.missed", ())
    (found,) = translator.translate(["the cat sees %s and {name}"], glossary=Glossary([("cat", "my sister")]))
    assert found.repaired and not found.constrained and found.text == free.text


def test_a_term_for_which_there_is_no_room_is_reported(marked_tokenizer: Tokenizer) -> None:
    short = make_translator(marked_tokenizer, max_seq_len=12)
    long = "and my sister sees a dog and the cat sees my sister and a dog"
    (found,) = short.translate(["cat"], glossary=Glossary([("cat", long)]))
    assert found.missed == (long,)


def test_a_text_of_placeholders_alone_is_its_own_translation(
    translator: Translator, make_model: Callable[[int], Transformer], tokenizer: Tokenizer
) -> None:
    for one in (translator, Translator(make_model(15), tokenizer)):
        assert [found.text for found in one.translate(["[%s] %d/%d", "<b></b>", ""])] == ["[%s] %d/%d", "<b></b>", ""]
