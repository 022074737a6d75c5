"""Greedy search: the likeliest token each time, over languages small enough to follow by hand."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.padding import pad_sources
from tfm.data.tokenizer import Tokenizer
from tfm.seq2seq.decoding.cache import DecoderCache, decoding_step
from tfm.seq2seq.decoding.greedy import extend_greedily
from tfm.seq2seq.decoding.search import Hypothesis
from tfm.seq2seq.model.transformer import Transformer

if TYPE_CHECKING:
    from .conftest import CertainPath, FakeLanguage

BOS, EOS = -1, 0
Limits = st.lists(st.integers(1, 6), min_size=1, max_size=5)


def search(
    language: "FakeLanguage", limits: list[int], sentences: list[int] | None = None, alpha: float = 0.6
) -> list[Hypothesis]:
    state = language.state(*(range(len(limits)) if sentences is None else sentences))
    return extend_greedily(language, state, max_lengths=limits, bos_id=BOS, eos_id=EOS, length_penalty=alpha)


def followed_by_hand(language: "FakeLanguage", sentence: int, limit: int) -> list[int]:
    ids: list[int] = []
    while len(ids) + 1 < limit:
        log_probs = language.log_probs(sentence, ids)
        token = max(range(language.vocabulary), key=lambda token: log_probs[token])
        if token == EOS:
            break
        ids.append(token)
    return ids


@given(st.integers(0, 10**6), Limits)
@settings(max_examples=60, deadline=None)
def test_greedy_takes_the_likeliest_token_until_eos_or_the_limit(
    fake_language: "Callable[[int, int], FakeLanguage]", seed: int, limits: list[int]
) -> None:
    language = fake_language(seed, 4)
    for sentence, hypothesis in enumerate(search(language, limits)):
        assert hypothesis.ids == followed_by_hand(language, sentence, limits[sentence])
        assert hypothesis.log_prob == pytest.approx(language.log_prob(sentence, hypothesis.ids), abs=1e-4)
        length = len(hypothesis.ids) + 1
        assert hypothesis.score == pytest.approx(hypothesis.log_prob / ((5 + length) / 6) ** 0.6)


@given(st.integers(0, 10**6), Limits)
@settings(max_examples=30, deadline=None)
def test_finished_sentences_are_dropped_from_the_computation(
    fake_language: "Callable[[int, int], FakeLanguage]", seed: int, limits: list[int]
) -> None:
    language = fake_language(seed, 4)
    lengths = [len(hypothesis.ids) + 1 for hypothesis in search(language, limits)]
    assert language.rows_seen == [sum(length > i for length in lengths) for i in range(max(lengths))]


@given(st.integers(0, 10**6), Limits)
@settings(max_examples=30, deadline=None)
def test_a_sentence_alone_is_translated_as_in_a_batch(
    fake_language: "Callable[[int, int], FakeLanguage]", seed: int, limits: list[int]
) -> None:
    language = fake_language(seed, 4)
    alone = [search(language, [limit], [sentence])[0] for sentence, limit in enumerate(limits)]
    assert search(language, limits) == alone


def test_a_certain_path_is_followed_at_no_cost(certain_path: "Callable[[list[int], int], CertainPath]") -> None:
    assert search(certain_path([3, 1, 2], 5), [9]) == [Hypothesis([3, 1, 2], 0.0, 0.0)]


def test_the_limit_counts_eos(certain_path: "Callable[[list[int], int], CertainPath]") -> None:
    limits = [1, 2, 3, 4, 5]
    found = search(certain_path([3, 1, 2], 5), limits)
    assert [hypothesis.ids for hypothesis in found] == [[], [3], [3, 1], [3, 1, 2], [3, 1, 2]]


def test_no_sentences_give_no_translations(fake_language: "Callable[[int, int], FakeLanguage]") -> None:
    language = fake_language(0, 4)
    assert search(language, []) == []
    assert language.rows_seen == []


@torch.inference_mode()
def test_a_batch_under_a_model_equals_its_sentences_alone(
    model: Transformer, tokenizer: Tokenizer, pairs: list[tuple[str, str]]
) -> None:
    sources = [tokenizer.src.encode(text) for text, _ in pairs[:6]] + [tokenizer.src.encode("zzz qqq")]
    limits = [12, 20, 9, 15, 15, 18, 12]
    step = decoding_step(model, [0, 1, 2])

    def greedy(rows: list[list[int]], limits: list[int]) -> list[Hypothesis]:
        cache = DecoderCache(model, torch.from_numpy(pad_sources(rows)))
        return extend_greedily(step, cache, max_lengths=limits, bos_id=2, eos_id=3)

    batched = greedy(sources, limits)
    alone = [greedy([source], [limit])[0] for source, limit in zip(sources, limits, strict=True)]
    assert [hypothesis.ids for hypothesis in batched] == [hypothesis.ids for hypothesis in alone]
    assert [h.log_prob for h in batched] == pytest.approx([h.log_prob for h in alone], abs=1e-4)
    assert len({len(hypothesis.ids) for hypothesis in batched}) > 1
