"""Beam search, judged by brute force: languages of a few tokens, all of whose outputs can be listed."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from helpers.full_pass import FullPass
from helpers.languages import BOS, EOS, CertainPath, FakeLanguage, all_outputs, search_language
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from tfm.data.tokenizer import EOS_ID, Tokenizer
from tfm.seq2seq.decoding.beam import Beam, build_search
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.decoding.greedy import Greedy
from tfm.seq2seq.decoding.search import Hypothesis, SearchState, Task
from tfm.seq2seq.model.encoder_decoder import Transformer
from tfm.seq2seq.model.masks import pad

MAX_LENGTH = 4
ALL_OUTPUTS = {4: 1 + 3 + 9 + 27, 5: 1 + 4 + 16 + 64}
"""Outputs of at most MAX_LENGTH tokens, eos included, by size of the vocabulary."""

Limits = st.lists(st.integers(1, 6), min_size=1, max_size=4)


def search(
    language: FakeLanguage,
    limits: Sequence[int],
    beam_size: int,
    *,
    n_best: int = 1,
    alpha: float = 0.6,
    sentences: Sequence[int] | None = None,
    prefixes: Sequence[Sequence[int]] = (),
) -> list[list[Hypothesis]]:
    return search_language(Beam(beam_size, alpha, n_best), language, limits, prefixes, sentences)


def score(language: FakeLanguage, sentence: int, ids: Sequence[int], alpha: float) -> float:
    return language.log_prob(sentence, list(ids)) / ((5 + len(ids) + 1) / 6) ** alpha


def ranked_by_brute_force(
    language: FakeLanguage, sentence: int, alpha: float, prefix: Sequence[int] = ()
) -> list[tuple[float, list[int]]]:
    outputs = all_outputs(language.vocabulary, MAX_LENGTH, prefix)
    return sorted(((score(language, sentence, ids, alpha), ids) for ids in outputs), key=lambda pair: -pair[0])


@pytest.mark.parametrize("vocabulary", [4, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.5])
@pytest.mark.parametrize("seed", range(3))
def test_a_beam_as_wide_as_the_language_finds_what_brute_force_finds(vocabulary: int, alpha: float, seed: int) -> None:
    language, everything = FakeLanguage(seed, vocabulary), ALL_OUTPUTS[vocabulary]
    for sentence, found in enumerate(search(language, [MAX_LENGTH] * 2, everything, n_best=everything, alpha=alpha)):
        expected = ranked_by_brute_force(language, sentence, alpha)
        assert [hypothesis.ids for hypothesis in found] == [ids for _, ids in expected]
        assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in expected], abs=1e-4)


@given(st.integers(0, 10**6), st.integers(1, 8))
@settings(max_examples=25, deadline=None)
def test_no_beam_beats_an_exhaustive_one(seed: int, beam_size: int) -> None:
    language = FakeLanguage(seed, 4)
    best = search(language, [MAX_LENGTH], ALL_OUTPUTS[4])[0][0]
    assert search(language, [MAX_LENGTH], beam_size)[0][0].score <= best.score + 1e-5
    assert best.score == pytest.approx(ranked_by_brute_force(language, 0, 0.6)[0][0], abs=1e-4)


@given(st.integers(0, 10**6), Limits)
@settings(max_examples=50, deadline=None)
def test_a_beam_of_one_is_greedy_search(seed: int, limits: list[int]) -> None:
    language = FakeLanguage(seed, 5)
    greedy = [found for (found,) in search_language(Greedy(0.6), language, limits)]
    beam = [found[0] for found in search(language, limits, 1)]
    assert [hypothesis.ids for hypothesis in beam] == [hypothesis.ids for hypothesis in greedy]
    assert [hypothesis.score for hypothesis in beam] == pytest.approx([h.score for h in greedy], abs=1e-4)


@given(st.integers(0, 10**6), Limits, st.integers(1, 6), st.floats(0, 2))
@settings(max_examples=50, deadline=None)
def test_hypotheses_are_ranked_unique_within_their_limits_and_scored_as_the_language_says(
    seed: int, limits: list[int], beam_size: int, alpha: float
) -> None:
    language = FakeLanguage(seed, 4)
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
def test_n_best_is_the_head_of_all_that_was_found(seed: int, limits: list[int], beam_size: int) -> None:
    language = FakeLanguage(seed, 4)
    everything = search(language, limits, beam_size, n_best=beam_size)
    assert search(language, limits, beam_size, n_best=2) == [found[:2] for found in everything]


@given(st.integers(0, 10**6), Limits, st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_a_batch_equals_its_sentences_alone_and_finished_sentences_are_dropped(
    seed: int, limits: list[int], beam_size: int
) -> None:
    language = FakeLanguage(seed, 4)
    alone: list[list[Hypothesis]] = []
    steps: list[int] = []
    for sentence, limit in enumerate(limits):
        single = FakeLanguage(seed, 4)
        alone += search(single, [limit], beam_size, n_best=beam_size, sentences=[sentence])
        steps.append(len(single.rows_seen))
        assert single.rows_seen == [1] + [beam_size] * (steps[-1] - 1)
    assert search(language, limits, beam_size, n_best=beam_size) == alone
    beams = [1] + [beam_size] * (max(steps) - 1)
    assert language.rows_seen == [beams[i] * sum(n > i for n in steps) for i in range(max(steps))]


def by_the_book(
    language: FakeLanguage, sentence: int, limit: int, k: int, prefix: Sequence[int] = ()
) -> tuple[list[list[int]], int]:
    """Beam search as the documentation tells it, one hypothesis at a time.

    Returns:
        The k best that it finishes, best first, and the steps it takes.
    """
    beams: list[tuple[float, list[int]]] = [(0.0, [])]
    done: list[list[int]] = []
    steps, surest = 0, -math.inf
    while steps < limit and (len(done) < k or surest < beams[0][0]):
        allowed = range(language.vocabulary) if steps >= len(prefix) else [prefix[steps]]
        steps += 1
        extensions = [
            (total + language.log_probs(sentence, ids)[token], [*ids, token])
            for total, ids in beams
            for token in allowed
            if token == EOS or steps < limit
        ]
        likeliest = sorted(extensions, reverse=True)[: 2 * k]
        ended = [(total, ids[:-1]) for total, ids in likeliest[:k] if ids[-1] == EOS]
        done += [ids for _, ids in ended]
        surest = max([surest, *(total for total, _ in ended)])
        beams = [(total, ids) for total, ids in likeliest if ids[-1] != EOS][:k]
    return sorted(done, key=lambda ids: -score(language, sentence, ids, 0.6))[:k], steps


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 5))
@settings(max_examples=50, deadline=None)
def test_a_narrow_beam_finds_and_stops_as_documented(seed: int, limit: int, beam_size: int) -> None:
    language = FakeLanguage(seed, 4)
    (found,) = search(language, [limit], beam_size, n_best=beam_size)
    expected, steps = by_the_book(language, 0, limit, beam_size)
    assert [hypothesis.ids for hypothesis in found] == expected
    assert len(language.rows_seen) == steps


def test_a_certain_path_is_found_and_nothing_impossible_with_it() -> None:
    assert search(CertainPath([3, 1, 2], 5), [9, 4], 4, n_best=4) == [[Hypothesis([3, 1, 2], 0.0, 0.0)]] * 2


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
    (found,) = Beam(beam_size, 0.0, beam_size)(FewPaths(), NoState(), Task([4], BOS, EOS))
    assert sorted(hypothesis.ids for hypothesis in found) == [[1], [1, 1], [1, 1, 1], [2]]
    assert all(hypothesis.log_prob > float("-inf") for hypothesis in found)


def test_no_sentences_give_no_hypotheses() -> None:
    assert search(FakeLanguage(0, 4), [], 3) == []


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"size": 0}, "the beam size must be at least 1, but is 0"),
        ({"size": 2, "n_best": 0}, "n_best must be at least 1, but is 0"),
        ({"size": 2, "n_best": 3}, "n_best must be at most the beam size, 2, but is 3"),
        ({"size": 2, "length_penalty": -1.0}, "length_penalty must be between 0 and 10"),
    ],
)
def test_impossible_beams_are_refused(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Beam(**values)


# Given beginnings


@pytest.mark.parametrize("vocabulary", [4, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.5])
@pytest.mark.parametrize("seed", range(3))
def test_with_prefixes_a_wide_beam_finds_all_their_continuations(vocabulary: int, alpha: float, seed: int) -> None:
    """Prefixes of each length that is possible, and none, in one batch."""
    language, everything, prefixes = FakeLanguage(seed, vocabulary), ALL_OUTPUTS[vocabulary], [[], [2], [3, 1], [1] * 3]
    searched = search(
        language, [MAX_LENGTH] * 4, everything, n_best=everything, alpha=alpha, prefixes=prefixes
    )  # fmt: skip
    for sentence, found in enumerate(searched):
        expected = ranked_by_brute_force(language, sentence, alpha, prefixes[sentence])
        assert [hypothesis.ids for hypothesis in found] == [ids for _, ids in expected]
        assert [hypothesis.score for hypothesis in found] == pytest.approx([score for score, _ in expected], abs=1e-4)


Prefixes = st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=1, max_size=4)


@given(st.integers(0, 10**6), Prefixes, st.integers(1, 5), st.integers(0, 5))
@settings(max_examples=50, deadline=None)
def test_a_narrow_beam_widens_after_its_prefix_as_documented(
    seed: int, prefixes: list[list[int]], beam_size: int, room: int
) -> None:
    language, limits = FakeLanguage(seed, 4), [len(prefix) + 1 + room for prefix in prefixes]
    for sentence, found in enumerate(search(language, limits, beam_size, n_best=beam_size, prefixes=prefixes)):
        expected, _ = by_the_book(language, sentence, limits[sentence], beam_size, prefixes[sentence])
        assert [hypothesis.ids for hypothesis in found] == expected
        for hypothesis in found:
            assert hypothesis.log_prob == pytest.approx(language.log_prob(sentence, hypothesis.ids), abs=1e-4)


@given(st.integers(0, 10**6), Prefixes, st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_a_batch_with_prefixes_equals_its_sentences_alone(seed: int, prefixes: list[list[int]], beam_size: int) -> None:
    language = FakeLanguage(seed, 4)
    alone = [
        search(language, [7], beam_size, n_best=beam_size, sentences=[sentence], prefixes=[prefix])[0]
        for sentence, prefix in enumerate(prefixes)
    ]
    assert search(language, [7] * len(prefixes), beam_size, n_best=beam_size, prefixes=prefixes) == alone


@given(st.integers(0, 10**6), st.lists(st.integers(0, 6), min_size=1, max_size=4))
@settings(max_examples=30, deadline=None)
def test_a_beam_of_one_goes_on_from_the_beginning_of_the_greedy_output(seed: int, lengths: list[int]) -> None:
    language, limits = FakeLanguage(seed, 4), [7] * len(lengths)
    free = [found for (found,) in search_language(Greedy(0.6), language, limits)]
    prefixes = [found.ids[:length] for found, length in zip(free, lengths, strict=True)]
    again = [found for (found,) in search(language, limits, 1, prefixes=prefixes)]
    assert [hypothesis.ids for hypothesis in again] == [hypothesis.ids for hypothesis in free]
    assert [h.log_prob for h in again] == pytest.approx([h.log_prob for h in free], abs=1e-4)


# Under a model

FORBIDDEN = [0, 1, 2]


def search_with_model(
    model: Transformer, sources: list[list[int]], limits: list[int], beam_size: int
) -> list[list[Hypothesis]]:
    step, src = FullPass(model, FORBIDDEN), pad([[*ids, EOS_ID] for ids in sources])
    return Beam(beam_size, n_best=beam_size)(step, step.encode(src), Task(limits, bos_id=2, eos_id=3))


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
    step, src = FullPass(model, FORBIDDEN), pad([[*ids, EOS_ID] for ids in sources])
    greedy = [found for (found,) in Greedy()(step, step.encode(src), Task(limits, bos_id=2, eos_id=3))]
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


# A run's own search, with what the user says instead


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, Beam(3, 1.2)),
        ({"beam_size": 1}, Greedy(1.2)),
        ({"beam_size": 7, "length_penalty": 0.0}, Beam(7, 0.0)),
        ({"n_best": 2}, Beam(3, 1.2, 2)),
        ({"n_best": 8}, Beam(8, 1.2, 8)),  # the run's beam grows
        ({"beam_size": 4, "n_best": 4}, Beam(4, 1.2, 4)),
        ({"no_repeat_ngram_size": 3}, Beam(3, 1.2, 1, 3)),
        ({"beam_size": 1, "no_repeat_ngram_size": 3}, Greedy(1.2, 3)),
    ],
)
def test_a_search_takes_from_the_run_what_is_not_asked_for(asked: dict[str, Any], expected: Beam | Greedy) -> None:
    assert build_search(DecodingConfig(beam_size=3, length_penalty=1.2), **asked) == expected


def test_a_run_that_searches_greedily_does_so_unless_several_hypotheses_are_asked_for() -> None:
    config = DecodingConfig(beam_size=1)
    assert build_search(config) == Greedy(0.6)
    assert build_search(config, n_best=2) == Beam(2, 0.6, 2)


def test_a_run_that_says_nothing_twice_does_so_unless_told_otherwise() -> None:
    config = DecodingConfig(no_repeat_ngram_size=4)
    assert build_search(config) == Beam(5, 0.6, 1, 4)
    assert build_search(config, 1) == Greedy(0.6, 4)
    assert build_search(config, no_repeat_ngram_size=0) == Beam(5)


@pytest.mark.parametrize("asked", [{"beam_size": 0}, {"beam_size": 2, "n_best": 3}, {"n_best": 0}])
def test_impossible_searches_are_refused(asked: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be at"):
        build_search(DecodingConfig(beam_size=1), **asked)
