"""Beam search, judged by brute force: languages of a few tokens, all of whose outputs can be listed."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from tfm.data.padding import pad_sources
from tfm.data.tokenizer import Tokenizer
from tfm.seq2seq.decoding.beam import beam_search
from tfm.seq2seq.decoding.cache import DecoderCache, decoding_step
from tfm.seq2seq.decoding.greedy import extend_greedily
from tfm.seq2seq.decoding.search import Hypothesis, SearchState
from tfm.seq2seq.model.transformer import Transformer

if TYPE_CHECKING:
    from .conftest import CertainPath, FakeLanguage

BOS, EOS = -1, 0
MAX_LENGTH = 4
ALL_OUTPUTS = {4: 1 + 3 + 9 + 27, 5: 1 + 4 + 16 + 64}
"""Outputs of at most MAX_LENGTH tokens, eos included, by size of the vocabulary."""

Languages = Callable[[int, int], "FakeLanguage"]
Limits = st.lists(st.integers(1, 6), min_size=1, max_size=4)


def search(
    language: "FakeLanguage",
    limits: Sequence[int],
    beam_size: int,
    *,
    n_best: int = 1,
    alpha: float = 0.6,
    sentences: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    return beam_search(
        language,
        language.state(*(range(len(limits)) if sentences is None else sentences)),
        beam_size=beam_size,
        length_penalty=alpha,
        max_lengths=limits,
        bos_id=BOS,
        eos_id=EOS,
        n_best=n_best,
    )


def all_outputs(vocabulary: int, max_length: int) -> list[list[int]]:
    outputs: list[list[int]] = [[]]
    for output in outputs:
        if len(output) + 1 < max_length:
            outputs.extend([*output, token] for token in range(1, vocabulary))
    return outputs


def ranked_by_brute_force(language: "FakeLanguage", sentence: int, alpha: float) -> list[tuple[float, list[int]]]:
    scored = [
        (language.log_prob(sentence, ids) / ((5 + len(ids) + 1) / 6) ** alpha, ids)
        for ids in all_outputs(language.vocabulary, MAX_LENGTH)
    ]
    return sorted(scored, key=lambda pair: -pair[0])


@pytest.mark.parametrize("vocabulary", [4, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.5])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_as_wide_as_the_language_finds_what_brute_force_finds(
    fake_language: Languages, vocabulary: int, alpha: float, seed: int
) -> None:
    language, everything = fake_language(seed, vocabulary), ALL_OUTPUTS[vocabulary]
    for sentence, found in enumerate(search(language, [MAX_LENGTH] * 2, everything, n_best=everything, alpha=alpha)):
        expected = ranked_by_brute_force(language, sentence, alpha)
        assert [hypothesis.ids for hypothesis in found] == [ids for _, ids in expected]
        assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in expected], abs=1e-4)


@given(st.integers(0, 10**6), st.integers(1, 8))
@settings(max_examples=25, deadline=None)
def test_no_beam_beats_an_exhaustive_one(fake_language: Languages, seed: int, beam_size: int) -> None:
    language = fake_language(seed, 4)
    best = search(language, [MAX_LENGTH], ALL_OUTPUTS[4])[0][0]
    assert search(language, [MAX_LENGTH], beam_size)[0][0].score <= best.score + 1e-5
    assert best.score == pytest.approx(ranked_by_brute_force(language, 0, 0.6)[0][0], abs=1e-4)


@given(st.integers(0, 10**6), Limits)
@settings(max_examples=50, deadline=None)
def test_a_beam_of_one_is_greedy_search(fake_language: Languages, seed: int, limits: list[int]) -> None:
    language = fake_language(seed, 5)
    greedy = extend_greedily(
        language,
        language.state(*range(len(limits))),
        max_lengths=limits,
        bos_id=BOS,
        eos_id=EOS,
        length_penalty=0.6,
    )
    beam = [found[0] for found in search(language, limits, 1)]
    assert [hypothesis.ids for hypothesis in beam] == [hypothesis.ids for hypothesis in greedy]
    assert [hypothesis.score for hypothesis in beam] == pytest.approx([h.score for h in greedy], abs=1e-4)


@given(st.integers(0, 10**6), Limits, st.integers(1, 6), st.floats(0, 2))
@settings(max_examples=50, deadline=None)
def test_hypotheses_are_ranked_unique_within_their_limits_and_scored_as_the_language_says(
    fake_language: Languages, seed: int, limits: list[int], beam_size: int, alpha: float
) -> None:
    language = fake_language(seed, 4)
    for sentence, found in enumerate(search(language, limits, beam_size, n_best=beam_size, alpha=alpha)):
        assert 1 <= len(found) <= beam_size
        assert len({tuple(hypothesis.ids) for hypothesis in found}) == len(found)
        scores = [hypothesis.score for hypothesis in found]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in found:
            assert EOS not in hypothesis.ids
            assert len(hypothesis.ids) + 1 <= limits[sentence]
            assert hypothesis.log_prob == pytest.approx(language.log_prob(sentence, hypothesis.ids), abs=1e-4)
            length = len(hypothesis.ids) + 1
            assert hypothesis.score == pytest.approx(hypothesis.log_prob / ((5 + length) / 6) ** alpha, abs=1e-9)


@given(st.integers(0, 10**6), Limits, st.integers(2, 5))
@settings(max_examples=30, deadline=None)
def test_n_best_is_the_head_of_all_that_was_found(
    fake_language: Languages, seed: int, limits: list[int], beam_size: int
) -> None:
    language = fake_language(seed, 4)
    everything = search(language, limits, beam_size, n_best=beam_size)
    assert search(language, limits, beam_size, n_best=2) == [found[:2] for found in everything]


@given(st.integers(0, 10**6), Limits, st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_a_batch_equals_its_sentences_alone_and_finished_sentences_are_dropped(
    fake_language: Languages, seed: int, limits: list[int], beam_size: int
) -> None:
    language = fake_language(seed, 4)
    alone: list[list[Hypothesis]] = []
    steps: list[int] = []
    for sentence, limit in enumerate(limits):
        single = fake_language(seed, 4)
        alone += search(single, [limit], beam_size, n_best=beam_size, sentences=[sentence])
        steps.append(len(single.rows_seen))
        assert single.rows_seen == [1] + [beam_size] * (steps[-1] - 1)
    assert search(language, limits, beam_size, n_best=beam_size) == alone
    beams = [1] + [beam_size] * (max(steps) - 1)
    assert language.rows_seen == [beams[i] * sum(n > i for n in steps) for i in range(max(steps))]


def by_the_book(language: "FakeLanguage", sentence: int, limit: int, k: int) -> tuple[set[tuple[int, ...]], int]:
    """Beam search as the documentation tells it, one hypothesis at a time; what it finishes and the steps it takes."""
    beams: list[tuple[float, list[int]]] = [(0.0, [])]
    done: set[tuple[int, ...]] = set()
    for steps in range(1, limit + 1):
        extensions = [
            (total + log_prob, [*ids, token])
            for total, ids in beams
            for token, log_prob in enumerate(language.log_probs(sentence, ids))
            if token == EOS or steps < limit
        ]
        likeliest = sorted(extensions, reverse=True)[: 2 * k]
        done |= {tuple(ids[:-1]) for _, ids in likeliest[:k] if ids[-1] == EOS}
        beams = [(total, ids) for total, ids in likeliest if ids[-1] != EOS][:k]
        if len(done) >= k:
            return done, steps
    return done, limit


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5))
@settings(max_examples=50, deadline=None)
def test_a_narrow_beam_finds_and_stops_as_documented(
    fake_language: Languages, seed: int, limit: int, beam_size: int
) -> None:
    language = fake_language(seed, 4)
    (found,) = search(language, [limit], beam_size, n_best=2 * beam_size)
    expected, steps = by_the_book(language, 0, limit, beam_size)
    assert {tuple(hypothesis.ids) for hypothesis in found} == expected
    assert len(language.rows_seen) == steps


def test_a_certain_path_is_found_and_nothing_impossible_with_it(
    certain_path: "Callable[[list[int], int], CertainPath]",
) -> None:
    assert search(certain_path([3, 1, 2], 5), [9, 4], 4, n_best=4) == [[Hypothesis([3, 1, 2], 0.0, 0.0)]] * 2


class FewPaths:
    """Only 2, or a row of 1s, is possible, however wide the beam."""

    def __call__(self, last: Tensor, position: int, state: SearchState) -> Tensor:
        del position, state
        following = {BOS: [1, 2], 1: [1, EOS], 2: [EOS]}
        logits = torch.full((len(last), 4), float("-inf"))
        for row, token in enumerate(last.tolist()):
            logits[row, following.get(token, [EOS])] = 0.0
        return logits


class NoState:
    """Nothing to remember."""

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """The step needs no past."""


@pytest.mark.parametrize("beam_size", [4, 7])
def test_impossible_beams_never_appear(beam_size: int) -> None:
    (found,) = beam_search(
        FewPaths(),
        NoState(),
        beam_size=beam_size,
        length_penalty=0.0,
        max_lengths=[4],
        bos_id=BOS,
        eos_id=EOS,
        n_best=beam_size,
    )
    assert sorted(hypothesis.ids for hypothesis in found) == [[1], [1, 1], [1, 1, 1], [2]]
    assert all(hypothesis.log_prob > float("-inf") for hypothesis in found)


def test_no_sentences_give_no_hypotheses(fake_language: Languages) -> None:
    assert search(fake_language(0, 4), [], 3) == []


FORBIDDEN = [0, 1, 2]


def search_with_model(
    model: Transformer, sources: list[list[int]], limits: list[int], beam_size: int
) -> list[list[Hypothesis]]:
    return beam_search(
        decoding_step(model, FORBIDDEN),
        DecoderCache(model, torch.from_numpy(pad_sources(sources))),
        beam_size=beam_size,
        length_penalty=0.6,
        max_lengths=limits,
        bos_id=2,
        eos_id=3,
        n_best=beam_size,
    )


@pytest.fixture(scope="module")
def sources(tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> list[list[int]]:
    return [tokenizer.src.encode(text) for text, _ in pairs[::6]] + [tokenizer.src.encode("zzz qqq"), []]


@torch.inference_mode()
@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_a_batch_under_a_model_equals_its_sentences_alone(
    model: Transformer, sources: list[list[int]], beam_size: int
) -> None:
    limits = [8 + i for i in range(len(sources))]
    batched = search_with_model(model, sources, limits, beam_size)
    for i, found in enumerate(batched):
        (alone,) = search_with_model(model, [sources[i]], [limits[i]], beam_size)
        assert [hypothesis.ids for hypothesis in found] == [hypothesis.ids for hypothesis in alone]
        assert [h.log_prob for h in found] == pytest.approx([h.log_prob for h in alone], abs=1e-4)


@torch.inference_mode()
def test_a_beam_of_one_under_a_model_is_greedy_search(model: Transformer, sources: list[list[int]]) -> None:
    limits = [15] * len(sources)
    cache = DecoderCache(model, torch.from_numpy(pad_sources(sources)))
    greedy = extend_greedily(decoding_step(model, FORBIDDEN), cache, max_lengths=limits, bos_id=2, eos_id=3)
    beam = search_with_model(model, sources, limits, 1)
    assert [found[0].ids for found in beam] == [hypothesis.ids for hypothesis in greedy]
    assert [found[0].log_prob for found in beam] == pytest.approx([h.log_prob for h in greedy], abs=1e-4)


@torch.inference_mode()
def test_log_prob_is_the_teacher_forced_sum_under_the_model(model: Transformer, sources: list[list[int]]) -> None:
    for source, found in zip(sources, search_with_model(model, sources, [12] * len(sources), 4), strict=True):
        for hypothesis in found:
            tgt_in, tgt_out = torch.tensor([[2, *hypothesis.ids]]), torch.tensor([*hypothesis.ids, 3])
            logits = model(torch.tensor([[*source, 3]]), tgt_in)[0]
            logits[:, FORBIDDEN] = float("-inf")
            assert hypothesis.log_prob == pytest.approx(
                -F.cross_entropy(logits, tgt_out, reduction="sum").item(), abs=1e-4
            )
