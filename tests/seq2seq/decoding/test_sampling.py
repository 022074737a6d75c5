"""Sampling: what may be drawn, how often, and that a draw depends on seed, line and position alone."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pytest
import torch
from helpers.languages import BOS, EOS, FakeLanguage, search_language
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tfm.seq2seq.decoding.sampling import Sample, restricted_distribution, sample_tokens
from tfm.seq2seq.decoding.search import Task


def random_log_probs(seed: int, rows: int = 1, vocabulary: int = 8) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(rows, vocabulary, generator=generator)).log_softmax(dim=-1)


def support(log_probs: Tensor, sampling: Sample) -> set[int]:
    probs, tokens = restricted_distribution(log_probs, sampling)
    return {token for token, prob in zip(tokens[0].tolist(), probs[0].tolist(), strict=True) if prob > 0}


def by_probability(log_probs: Tensor) -> list[tuple[float, int]]:
    probs = log_probs.double().softmax(dim=-1)[0].tolist()
    return sorted(((prob, token) for token, prob in enumerate(probs)), reverse=True)


@pytest.mark.parametrize("values", [{"temperature": 1e-4}, {"temperature": 5e-324}, {"top_k": 1}, {"top_p": 1e-9}])
@pytest.mark.parametrize("seed", range(5))
def test_the_sharpest_sampling_is_greedy(values: dict[str, Any], seed: int) -> None:
    log_probs = random_log_probs(seed, rows=20)
    drawn = sample_tokens(log_probs, Sample(**values, seed=seed), range(20), 0)
    assert torch.equal(drawn, log_probs.argmax(dim=-1))


def test_of_equally_likely_tokens_top_1_takes_the_one_that_greedy_search_takes() -> None:
    log_probs = torch.zeros(1, 300).log_softmax(dim=-1)
    assert sample_tokens(log_probs, Sample(top_k=1), ["x"], 0).tolist() == log_probs.argmax(dim=-1).tolist()


@given(st.integers(0, 10**6), st.integers(0, 10))
@settings(max_examples=50, deadline=None)
def test_top_k_leaves_the_k_likeliest(seed: int, top_k: int) -> None:
    log_probs = random_log_probs(seed)
    expected = {token for _, token in by_probability(log_probs)[: top_k or None]}
    assert support(log_probs, Sample(top_k=top_k)) == expected


@given(st.integers(0, 10**6), st.floats(0.01, 0.99))
@settings(max_examples=50, deadline=None)
def test_top_p_leaves_the_smallest_likeliest_set_that_reaches_p(seed: int, top_p: float) -> None:
    log_probs = random_log_probs(seed)
    ranked = by_probability(log_probs)
    sums = list(accumulate(prob for prob, _ in ranked))
    assume(min(abs(total - top_p) for total in sums) > 1e-5)
    size = next(i + 1 for i, total in enumerate(sums) if total >= top_p)
    assert support(log_probs, Sample(top_p=top_p)) == {token for _, token in ranked[:size]}


def test_top_p_of_what_top_k_leaves() -> None:
    log_probs = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()
    # 0.4 / 0.7 is 0.57: one token reaches 0.55 of the two left, but not of all four.
    assert support(log_probs, Sample(top_k=2, top_p=0.55)) == {0}
    assert support(log_probs, Sample(top_p=0.55)) == {0, 1}


@given(st.integers(0, 10**6), st.integers(0, 8), st.floats(0.05, 1), st.floats(0.1, 5))
@settings(max_examples=50, deadline=None)
def test_what_is_left_keeps_its_proportions(seed: int, top_k: int, top_p: float, temperature: float) -> None:
    log_probs = random_log_probs(seed)
    probs, tokens = restricted_distribution(log_probs, Sample(temperature, top_k, top_p))
    whole = (log_probs / temperature).softmax(dim=-1)[0, tokens[0]]
    assert sorted(tokens[0].tolist()) == list(range(8))
    assert probs.sum().item() == pytest.approx(1, abs=1e-5)
    assert torch.equal(probs.sort(dim=-1, descending=True).values, probs)
    kept = probs[0] > 0
    torch.testing.assert_close(probs[0][kept], whole[kept] / whole[kept].sum(), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("sampling", [Sample(), Sample(0.5), Sample(2.0, top_k=3), Sample(top_p=0.8)])
def test_tokens_are_drawn_as_often_as_their_probability_says(sampling: Sample) -> None:
    draws, log_probs = 4000, random_log_probs(3, vocabulary=5)
    probs, tokens = restricted_distribution(log_probs, sampling)
    drawn = Counter(sample_tokens(log_probs.expand(draws, -1), sampling, range(draws), 7).tolist())
    for prob, token in zip(probs[0].tolist(), tokens[0].tolist(), strict=True):
        assert drawn[token] == pytest.approx(draws * prob, abs=5 * (draws * prob * (1 - prob)) ** 0.5)


def test_an_impossible_token_is_never_drawn() -> None:
    log_probs = torch.tensor([[0.0, float("-inf"), 0.0, float("-inf")]]).log_softmax(dim=-1).expand(2000, -1)
    assert set(sample_tokens(log_probs, Sample(temperature=50), range(2000), 0).tolist()) == {0, 2}


def test_a_draw_depends_on_seed_key_and_position() -> None:
    log_probs = torch.zeros(200, 50).log_softmax(dim=-1)

    def draws(seed: int = 0, first_key: int = 0, position: int = 0) -> list[int]:
        return sample_tokens(log_probs, Sample(seed=seed), range(first_key, first_key + 200), position).tolist()

    assert draws() == draws()
    for other in (draws(seed=1), draws(position=1), draws(first_key=1)):
        assert sum(a == b for a, b in zip(draws(), other, strict=True)) < 30


@given(st.permutations(range(12)), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_a_draw_does_not_depend_on_the_other_rows(order: list[int], count: int) -> None:
    log_probs, sampling = random_log_probs(9, rows=12), Sample(top_k=6)
    together = sample_tokens(log_probs, sampling, range(12), 4)
    chosen = order[:count]
    assert torch.equal(sample_tokens(log_probs[chosen], sampling, chosen, 4), together[chosen])


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": 0.0},
        {"temperature": -1.0},
        {"temperature": 101.0},
        {"temperature": float("nan")},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.01},
        {"top_p": float("nan")},
        {"samples": 0},
        {"length_penalty": -0.1},
    ],
)
def test_a_value_out_of_range_is_named(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        Sample(**values)


# The search


def drawn_by_hand(
    language: FakeLanguage, sentence: int, number: int, limit: int, seed: int, prefix: Sequence[int] = ()
) -> list[int]:
    """One sample: the cumulative distribution, likeliest tokens first, inverted at the numbers drawn for its key."""
    ids = list(prefix)
    while len(ids) + 1 < limit:
        ranked = sorted(((p, token) for token, p in enumerate(language.log_probs(sentence, ids))), reverse=True)
        u = random.Random(f"{seed} {sentence}.{number} {len(ids)}").random()
        sums = list(accumulate(float(torch.tensor(p, dtype=torch.float64).exp()) for p, _ in ranked))
        token = next(token for total, (_, token) in zip(sums, ranked, strict=True) if total > u or total == sums[-1])
        if token == EOS:
            break
        ids.append(token)
    return ids


Prefixes = st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=1, max_size=4)


@given(st.integers(0, 10**6), Prefixes, st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_samples_are_drawn_as_by_hand_whatever_they_begin_with(
    seed: int, prefixes: list[list[int]], samples: int
) -> None:
    language = FakeLanguage(seed, 4)
    search = Sample(seed=seed, samples=samples, length_penalty=0.6)
    for sentence, found in enumerate(search_language(search, language, [7] * len(prefixes), prefixes)):
        assert len(found) == samples
        for number, one in enumerate(found):
            assert one.ids == drawn_by_hand(language, sentence, number, 7, seed, prefixes[sentence])
            assert one.log_prob == pytest.approx(language.log_prob(sentence, one.ids), abs=1e-4)
            assert one.score == pytest.approx(one.log_prob / ((5 + len(one.ids) + 1) / 6) ** 0.6)


@given(st.integers(0, 10**6), Prefixes)
@settings(max_examples=20, deadline=None)
def test_a_batch_with_prefixes_equals_its_sentences_alone(seed: int, prefixes: list[list[int]]) -> None:
    language, search = FakeLanguage(seed, 4), Sample(seed=seed, samples=2, top_k=3)
    alone = [
        search_language(search, language, [7], [prefix], [sentence])[0] for sentence, prefix in enumerate(prefixes)
    ]
    assert search_language(search, language, [7] * len(prefixes), prefixes) == alone


@given(st.integers(0, 10**6), st.lists(st.integers(0, 6), min_size=1, max_size=4))
@settings(max_examples=20, deadline=None)
def test_a_sample_goes_on_from_its_own_beginning(seed: int, lengths: list[int]) -> None:
    language, search, limits = FakeLanguage(seed, 4), Sample(seed=seed, temperature=1.3), [7] * len(lengths)
    free = search_language(search, language, limits)
    prefixes = [found.ids[:length] for (found,), length in zip(free, lengths, strict=True)]
    assert search_language(search, language, limits, prefixes) == free


def test_sentences_without_keys_are_refused() -> None:
    language = FakeLanguage(0, 4)
    with pytest.raises(ValueError, match="a key for each of 2 sentences, but got 0"):
        Sample()(language, language.state(0, 1), Task([3, 3], BOS, EOS))
