"""Variation: what each change does to a text, and which pairs an epoch changes."""

import numpy as np
import pytest
from helpers.paragraphs import PARAGRAPHS, paragraph
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.cleaning import clean
from tfm.data.config import TokenizerConfig
from tfm.data.corpus import Pair
from tfm.data.placeholders import SYMBOLS
from tfm.data.tokenizer import Tokenizer
from tfm.data.usual_form import capitals, open_ended, title
from tfm.data.variation import LETTERS_AN_ERROR, Variation, typed, varied
from tfm.data.vocabulary_training import build_tokenizer

TEXTS = st.one_of(st.sampled_from([clean(paragraph(name)) for name in PARAGRAPHS]), st.text(max_size=60).map(clean))


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=[seed, 0]))


@given(TEXTS, st.integers(0, 2**63 - 1))
def test_typing_errors_are_few_and_inside_words(text: str, seed: int) -> None:
    found = typed(text, rng(seed))
    assert [one for one in found if not one.isalpha()].count(" ") == text.count(" ")
    assert [word[:1] for word in found.split()] == [word[:1] for word in text.split()]
    assert [one for one in found if one in SYMBOLS or one.isdecimal()] == [
        one for one in text if one in SYMBOLS or one.isdecimal()
    ]
    assert abs(len(found) - len(text)) <= 4 * (len(text) // LETTERS_AN_ERROR + 1)


def test_typing_errors_exchange_omit_and_double() -> None:
    found = {typed("word", rng(seed)) for seed in range(60)}
    assert found == {"wrod", "wodr", "wrd", "wod", "woord", "worrd"}


@given(TEXTS, TEXTS, st.integers(0, 2**63 - 1))
def test_a_translation_follows_its_source_or_stays(source: str, target: str, seed: int) -> None:
    changed, wanted = varied(source, target, rng(seed))
    assert wanted in (target, capitals(target), title(target), open_ended(target))
    assert wanted == target or changed in (capitals(source), title(source), open_ended(source))


@pytest.fixture(scope="module")
def cased(toy_sentences: list[Pair]) -> tuple[Tokenizer, list[Pair]]:
    pairs = [(f"{src.capitalize()}.", f"{tgt.capitalize()}.") for src, tgt in toy_sentences]
    return build_tokenizer(pairs, TokenizerConfig(vocab_size=400)), pairs


def test_the_chosen_pairs_change_and_no_others_in_each_epoch_anew(cased: tuple[Tokenizer, list[Pair]]) -> None:
    tokenizer, pairs = cased
    rows = [
        (np.array(tokenizer.src.encode(s), np.int32), np.array(tokenizer.tgt.encode(t), np.int32)) for s, t in pairs
    ]
    variation = Variation(tokenizer, 0.3, 5, 1000)
    epochs = [variation.chosen(20_000, epoch) for epoch in (0, 1)]
    assert all(abs(one.mean() - 0.3) < 0.02 for one in epochs) and (epochs[0] != epochs[1]).any()
    shown: list[list[Pair]] = []
    for epoch in (0, 1):
        found = [variation(*row, epoch, number) for number, row in enumerate(rows)]
        again = [Variation(tokenizer, 0.3, 5, 1000)(*row, epoch, number) for number, row in enumerate(rows)]
        assert all((a[0] == b[0]).all() and (a[1] == b[1]).all() for a, b in zip(found, again, strict=True))
        shown.append([(tokenizer.src.decode(s.tolist()), tokenizer.tgt.decode(t.tolist())) for s, t in found])
    assert shown[0] != shown[1]
    shouted = sum(src == capitals(pair[0]) for (src, _), pair in zip(shown[0], pairs, strict=True))
    assert 0.2 < shouted / len(pairs) < 0.4
    assert any(src == pair[0].lower() and tgt == pair[1] for (src, tgt), pair in zip(shown[0], pairs, strict=True))


def test_what_would_become_too_long_stays_and_so_does_a_text_alone(cased: tuple[Tokenizer, list[Pair]]) -> None:
    tokenizer, pairs = cased
    for number, (source, target) in enumerate(pairs[:50]):
        src, tgt = (np.array(tokenizer.src.encode(text), np.int32) for text in (source, target))
        most = max(len(src), len(tgt))
        changed = Variation(tokenizer, 1.0, 5, most)(src, tgt, 0, number)
        assert max(map(len, changed)) <= most
        nothing = np.array([], np.int32)
        assert Variation(tokenizer, 1.0, 5, 1000)(nothing, tgt, 0, number)[1] is tgt


@settings(deadline=None, max_examples=20)
@given(st.lists(st.sampled_from("0123456789"), min_size=1, max_size=12).map("".join))
def test_digits_may_be_pieces_of_their_own(number: str) -> None:
    pairs = [(f"word {i} and {i * 37}", f"Wort {i} und {i * 37}") for i in range(300)]
    tokenizer = build_tokenizer(pairs, TokenizerConfig(vocab_size=350, split_digits=True))
    pieces = tokenizer.src.encode_as_pieces(f"word {number}")
    assert [one for one in pieces if any(map(str.isdecimal, one))] == list(number)
