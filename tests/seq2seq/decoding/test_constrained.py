"""Search for outputs that contain phrases, judged by brute force among all outputs of a language."""

from collections.abc import Sequence

import pytest
from helpers.languages import BOS, EOS, CertainPath, FakeLanguage, all_outputs
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.seq2seq.decoding.beam import Beam
from tfm.seq2seq.decoding.constrained import ConstrainedBeam, Phrase, Progress
from tfm.seq2seq.decoding.search import Hypothesis, Task

MAX_LENGTH = 5
VOCABULARY = 4


def search(
    language: FakeLanguage,
    phrases: Sequence[Sequence[Phrase]],
    size: int,
    *,
    limit: int = MAX_LENGTH,
    n_best: int = 1,
    alpha: float = 0.6,
    only_in_phrases: tuple[int, ...] = (),
    prefixes: Sequence[Sequence[int]] = (),
    once: int = 0,
) -> list[list[Hypothesis]]:
    beam = ConstrainedBeam(Beam(size, alpha, n_best, once), only_in_phrases)
    task = Task([limit] * len(phrases), BOS, EOS, prefixes, phrases=phrases)
    return beam(language, language.state(*range(len(phrases))), task)


def contains(ids: Sequence[int], phrases: Sequence[Phrase]) -> bool:
    """Whether an output has each phrase, those that are equal at different places."""
    for phrase in set(phrases):
        count, place = 0, 0
        while place <= len(ids) - len(phrase):
            found = tuple(ids[place : place + len(phrase)]) == phrase
            count, place = count + found, place + (len(phrase) if found else 1)
        if count < phrases.count(phrase):
            return False
    return True


def score(language: FakeLanguage, sentence: int, ids: Sequence[int]) -> float:
    return language.log_prob(sentence, list(ids)) / ((5 + len(ids) + 1) / 6) ** 0.6


@pytest.mark.parametrize("phrases", [[(1,)], [(2, 3)], [(1,), (3,)], [(1,), (1,)], [(2, 2)], []])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_as_wide_as_the_language_finds_the_best_output_that_has_the_phrases(
    phrases: list[Phrase], seed: int
) -> None:
    language = FakeLanguage(seed, VOCABULARY)
    outputs = [ids for ids in all_outputs(VOCABULARY, MAX_LENGTH) if contains(ids, phrases)]
    for sentence, found in enumerate(search(language, [phrases] * 2, 4**MAX_LENGTH)):
        best = max(outputs, key=lambda ids: score(language, sentence, ids))
        assert found[0].ids == best
        assert found[0].score == pytest.approx(score(language, sentence, best), abs=1e-4)


Phrases = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple), max_size=3)


@given(st.integers(0, 10**6), st.lists(Phrases, min_size=1, max_size=3), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_every_output_has_its_phrases_and_the_score_that_the_language_gives_it(
    seed: int, phrases: list[list[Phrase]], size: int
) -> None:
    language = FakeLanguage(seed, 6)
    for sentence, found in enumerate(search(language, phrases, size, limit=14, n_best=size)):
        assert found
        for hypothesis in found:
            assert all(contains(hypothesis.ids, [phrase]) for phrase in phrases[sentence])
            assert len(hypothesis.ids) < 14
            assert hypothesis.score == pytest.approx(score(language, sentence, hypothesis.ids), abs=1e-4)


@given(st.integers(0, 10**6), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_what_stands_only_in_phrases_comes_as_often_as_they_do(seed: int, size: int) -> None:
    language = FakeLanguage(seed, 6)
    phrases = [[(4,), (4,)], [(5,)], []]
    for wanted, found in zip(phrases, search(language, phrases, size, limit=8, only_in_phrases=(4, 5)), strict=True):
        for token in (4, 5):
            assert found[0].ids.count(token) == sum(phrase == (token,) for phrase in wanted)


def test_phrases_come_where_they_are_likely() -> None:
    """A wide enough beam prefers the output that the language would give anyhow."""
    language = CertainPath([3, 1, 2, 3], vocabulary=5)
    assert search(language, [[(1, 2)]], 4, limit=9)[0][0].ids == [3, 1, 2, 3]
    assert search(language, [[]], 4, limit=9)[0][0].ids == [3, 1, 2, 3]


def test_more_phrases_than_there_is_room_for() -> None:
    language = FakeLanguage(1, 6)
    ((found, *_),) = search(language, [[(1, 2, 3), (4,), (5, 5)]], 3, limit=4)
    assert len(found.ids) <= 3 and (found.ids[:3] == [1, 2, 3] or 4 in found.ids)


def test_an_output_begins_with_its_prefix_and_the_prefix_may_have_a_phrase() -> None:
    language = FakeLanguage(2, 6)
    found = search(language, [[(3,)], [(3,)]], 4, limit=8, prefixes=[[3, 1], [2]], only_in_phrases=(3,))
    assert found[0][0].ids[:2] == [3, 1] and found[0][0].ids.count(3) == 1
    assert found[1][0].ids[:1] == [2] and found[1][0].ids.count(3) == 1


def test_a_phrase_may_repeat_what_else_comes_once() -> None:
    language = FakeLanguage(3, 5)
    ((found, *_),) = search(language, [[(1, 2), (1, 2)]], 6, limit=12, once=1)
    others = [token for token in found.ids if token not in (1, 2)]
    assert contains(found.ids, [(1, 2), (1, 2)]) and len(others) == len(set(others))


def test_a_phrase_that_is_broken_off_begins_anew() -> None:
    progress = Progress(((1, 2), (3,)), (0, 0))
    for token, met in [(1, (1, 0)), (3, (0, 1)), (1, (1, 1)), (1, (1, 1)), (2, (2, 1)), (1, (2, 1))]:
        progress = progress.after(token)
        assert progress.met == met
    assert not progress.missing and progress.wanted() == set()


@pytest.mark.parametrize(
    ("values", "problem"), [((0, 0.6, 1), "beam size"), ((2, -1.0, 1), "length_penalty"), ((2, 0.6, 3), "n_best")]
)
def test_values_out_of_range(values: tuple[int, float, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ConstrainedBeam(Beam(*values))
