"""Greedy search: the likeliest token each time, over languages small enough to follow by hand."""

from collections.abc import Sequence

import pytest
import torch
from helpers.full_pass import FullPass
from helpers.languages import EOS, CertainPath, FakeLanguage, search_language
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.data.tokenizer import EOS_ID, Tokenizer
from tfm.seq2seq.decoding.greedy import Greedy
from tfm.seq2seq.decoding.search import Hypothesis, Task
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.model.masks import pad

Limits = st.lists(st.integers(1, 6), min_size=1, max_size=5)


def search(
    language: FakeLanguage,
    limits: Sequence[int],
    sentences: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] = (),
) -> list[Hypothesis]:
    return [found for (found,) in search_language(Greedy(0.6), language, limits, prefixes, sentences)]


def followed_by_hand(language: FakeLanguage, sentence: int, limit: int, prefix: Sequence[int] = ()) -> list[int]:
    ids = list(prefix)
    while len(ids) + 1 < limit:
        log_probs = language.log_probs(sentence, ids)
        token = max(range(language.vocabulary), key=lambda token: log_probs[token])
        if token == EOS:
            break
        ids.append(token)
    return ids


@given(st.integers(0, 10**6), Limits)
@settings(max_examples=60, deadline=None)
def test_greedy_takes_the_likeliest_token_until_eos_or_the_limit(seed: int, limits: list[int]) -> None:
    language = FakeLanguage(seed, 4)
    for sentence, hypothesis in enumerate(search(language, limits)):
        assert hypothesis.ids == followed_by_hand(language, sentence, limits[sentence])
        assert hypothesis.log_prob == pytest.approx(language.log_prob(sentence, hypothesis.ids), abs=1e-4)
        length = len(hypothesis.ids) + 1
        assert hypothesis.score == pytest.approx(hypothesis.log_prob / ((5 + length) / 6) ** 0.6)


@given(st.integers(0, 10**6), Limits)
@settings(max_examples=30, deadline=None)
def test_finished_sentences_are_dropped_from_the_computation(seed: int, limits: list[int]) -> None:
    language = FakeLanguage(seed, 4)
    lengths = [len(hypothesis.ids) + 1 for hypothesis in search(language, limits)]
    assert language.rows_seen == [sum(length > i for length in lengths) for i in range(max(lengths))]


@given(st.integers(0, 10**6), Limits)
@settings(max_examples=30, deadline=None)
def test_a_sentence_alone_is_translated_as_in_a_batch(seed: int, limits: list[int]) -> None:
    language = FakeLanguage(seed, 4)
    alone = [search(language, [limit], [sentence])[0] for sentence, limit in enumerate(limits)]
    assert search(language, limits) == alone


def test_a_certain_path_is_followed_at_no_cost() -> None:
    assert search(CertainPath([3, 1, 2], 5), [9]) == [Hypothesis([3, 1, 2], 0.0, 0.0)]


def test_the_limit_counts_eos() -> None:
    found = search(CertainPath([3, 1, 2], 5), [1, 2, 3, 4, 5])
    assert [hypothesis.ids for hypothesis in found] == [[], [3], [3, 1], [3, 1, 2], [3, 1, 2]]


def test_no_sentences_give_no_translations() -> None:
    language = FakeLanguage(0, 4)
    assert search(language, []) == []
    assert language.rows_seen == []


@pytest.mark.parametrize("alpha", [-0.1, 10.5, float("nan")])
def test_a_length_penalty_out_of_range_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="length_penalty must be between 0 and 10"):
        Greedy(alpha)


# Given beginnings

Prefixes = st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=1, max_size=5)


@given(st.integers(0, 10**6), Prefixes, st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_a_prefix_is_continued_greedily_and_counted_in_the_score(
    seed: int, prefixes: list[list[int]], room: int
) -> None:
    language, limits = FakeLanguage(seed, 4), [len(prefix) + 1 + room for prefix in prefixes]
    for sentence, found in enumerate(search(language, limits, prefixes=prefixes)):
        assert found.ids == followed_by_hand(language, sentence, limits[sentence], prefixes[sentence])
        assert found.log_prob == pytest.approx(language.log_prob(sentence, found.ids), abs=1e-4)
        assert found.score == pytest.approx(found.log_prob / ((5 + len(found.ids) + 1) / 6) ** 0.6)


@given(st.integers(0, 10**6), Prefixes)
@settings(max_examples=30, deadline=None)
def test_sentences_with_prefixes_alone_are_translated_as_in_a_batch(seed: int, prefixes: list[list[int]]) -> None:
    language = FakeLanguage(seed, 4)
    alone = [search(language, [7], [sentence], [prefix])[0] for sentence, prefix in enumerate(prefixes)]
    assert search(language, [7] * len(prefixes), prefixes=prefixes) == alone


@given(st.integers(0, 10**6), st.lists(st.integers(0, 6), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_the_beginning_of_what_is_found_without_a_prefix_changes_nothing(seed: int, lengths: list[int]) -> None:
    language, limits = FakeLanguage(seed, 4), [7] * len(lengths)
    free = search(language, limits)
    prefixes = [found.ids[:length] for found, length in zip(free, lengths, strict=True)]
    assert search(language, limits, prefixes=prefixes) == free


# Under a model


@torch.inference_mode()
def test_a_batch_under_a_model_equals_its_sentences_alone(
    model: Transformer, tokenizer: Tokenizer, pairs: list[tuple[str, str]]
) -> None:
    sources = [tokenizer.src.encode(text) for text, _ in pairs[:6]] + [tokenizer.src.encode("zzz qqq")]
    limits = [12, 20, 9, 15, 15, 18, 12]
    step = FullPass(model, [0, 1, 2])

    def greedy(rows: list[list[int]], limits: list[int]) -> list[Hypothesis]:
        state = step.encode(pad([[*ids, EOS_ID] for ids in rows]))
        return [found for (found,) in Greedy()(step, state, Task(limits, bos_id=2, eos_id=3))]

    batched = greedy(sources, limits)
    alone = [greedy([source], [limit])[0] for source, limit in zip(sources, limits, strict=True)]
    assert [hypothesis.ids for hypothesis in batched] == [hypothesis.ids for hypothesis in alone]
    assert [h.log_prob for h in batched] == pytest.approx([h.log_prob for h in alone], abs=1e-4)
    assert len({len(hypothesis.ids) for hypothesis in batched}) > 1
