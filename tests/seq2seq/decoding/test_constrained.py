"""Search for outputs that contain phrases, judged by brute force among all outputs of a language."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from helpers.languages import BOS, EOS, CertainPath, FakeLanguage, all_outputs
from helpers.phrases import Phrases, contains, plain
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.seq2seq.decoding.beam import Beam
from tfm.seq2seq.decoding.constrained import MOST_PENALTY, ConstrainedBeam
from tfm.seq2seq.decoding.phrases import Phrase, Spelling
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
    alpha: float = 0.4,
    only_in_phrases: tuple[int, ...] = (),
    prefixes: Sequence[Sequence[int]] = (),
    once: int = 0,
    expected: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    beam = ConstrainedBeam(Beam(size, alpha, n_best, once), only_in_phrases)
    task = Task([limit] * len(phrases), BOS, EOS, prefixes, phrases=phrases, expected=expected)
    return beam(language, language.state(*range(len(phrases))), task)


def score(language: FakeLanguage, sentence: int, ids: Sequence[int]) -> float:
    return language.log_prob(sentence, list(ids)) / ((5 + len(ids) + 1) / 6) ** 0.4


AFTER_2, BEFORE_3 = Spelling((1,), after=frozenset({2, BOS})), Spelling((1,), before=frozenset({3}))


@pytest.mark.parametrize(
    "phrases",
    [
        [plain(1)],
        [plain(2, 3)],
        [plain(1), plain(3)],
        [plain(1), plain(1)],
        [plain(2, 2)],
        [plain(1, 2), plain(2, 3)],
        [Phrase((Spelling((1, 2)), Spelling((1, 3)), Spelling((3, 3))))],
        [Phrase((Spelling((3, 1)), AFTER_2))],
        [Phrase((BEFORE_3,)), plain(3)],
        [Phrase((AFTER_2, Spelling((3, 3)))), Phrase((BEFORE_3, Spelling((2, 1))))],
        [],
    ],
)
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


def with_5(phrase: Phrase) -> Phrase:
    """A phrase with one more spelling that is possible everywhere."""
    before = [None if one.before is None else one.before | {5} for one in phrase.spellings]
    spellings = [replace(one, before=allowed) for one, allowed in zip(phrase.spellings, before, strict=True)]
    return Phrase((*spellings, Spelling((5,))))


@given(st.integers(0, 10**6), st.lists(Phrases, min_size=1, max_size=3), st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_every_output_has_its_phrases_and_the_score_that_the_language_gives_it(
    seed: int, phrases: list[list[Phrase]], size: int
) -> None:
    language = FakeLanguage(seed, 6)
    free = [[with_5(phrase) for phrase in wanted] for wanted in phrases]
    for sentence, found in enumerate(search(language, free, size, limit=14, n_best=size)):
        assert found
        for hypothesis in found:
            assert contains(hypothesis.ids, free[sentence])
            assert len(hypothesis.ids) < 14
            assert hypothesis.score == pytest.approx(score(language, sentence, hypothesis.ids), abs=1e-4)


@given(st.integers(0, 10**6), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_what_stands_only_in_phrases_comes_as_often_as_they_do(seed: int, size: int) -> None:
    language = FakeLanguage(seed, 6)
    around = frozenset({1, 2, BOS})
    apart = Phrase((Spelling((5,), around, around), Spelling((3, 5), None, around)))
    phrases = [[plain(4), plain(4)], [apart], []]
    found = [one[0].ids for one in search(language, phrases, size, limit=8, only_in_phrases=(4, 5))]
    assert [(ids.count(4), ids.count(5)) for ids in found] == [(2, 0), (0, 1), (0, 0)]
    place = found[1].index(5)
    assert set(found[1][place + 1 : place + 2]) <= around and (not place or found[1][place - 1] in {1, 2, 3})


def test_phrases_come_where_they_are_likely() -> None:
    """A wide enough beam prefers the output that the language would give anyhow."""
    language = CertainPath([3, 1, 2, 3], vocabulary=5)
    assert search(language, [[plain(1, 2)]], 4, limit=9)[0][0].ids == [3, 1, 2, 3]
    assert search(language, [[]], 4, limit=9)[0][0].ids == [3, 1, 2, 3]


def test_a_phrase_that_is_likely_late_is_not_placed_early() -> None:
    """The outputs that have it too early end first, and more of them than the search keeps."""
    path = [3, 4, 3, 4, 3, 4, 5, 1, 2]

    class Likely(FakeLanguage):
        def logits(self, sentence: int, prefix: list[int]) -> list[float]:
            expected = path[len(prefix)] if prefix == path[: len(prefix)] and len(prefix) < len(path) else EOS
            return [4.0 if token == expected else 0.0 for token in range(self.vocabulary)]

    assert search(Likely(0, 6), [[plain(1, 2)]], 2, limit=14)[0][0].ids == path


def test_nothing_is_waited_for_that_has_not_come_for_long() -> None:
    """Here an output without its phrase goes on for ever, and is always likelier than one that has ended."""

    class Endless(FakeLanguage):
        def logits(self, sentence: int, prefix: list[int]) -> list[float]:
            certain = EOS if 1 in prefix else 3
            return [6.0 if token == certain else 0.0 for token in range(self.vocabulary)]

    language = Endless(0, 6)
    ((found, *_),) = search(language, [[plain(1)]], 2, limit=500, alpha=0.0, expected=[8])
    assert 1 in found.ids
    assert len(language.rows_seen) < 50


@pytest.mark.parametrize("length", [4, 10, 20, 30])
def test_a_long_output_is_waited_for_where_its_phrase_comes_late(length: int) -> None:
    """Outputs that have it at once have long ended when the likeliest one ends."""
    path = [*[3, 4] * length, 1, 3, 4]

    class Late(FakeLanguage):
        def logits(self, sentence: int, prefix: list[int]) -> list[float]:
            if prefix != path[: len(prefix)]:
                return [6.0 if token == EOS else 0.0 for token in range(self.vocabulary)]
            wanted = path[len(prefix)] if len(prefix) < len(path) else EOS
            early = 3.0 if not prefix else -2.0
            return [5.0 if token == wanted else early if token == 1 else 0.0 for token in range(self.vocabulary)]

    for expected in ([], [2 * length]):
        ((found, *_),) = search(Late(0, 6), [[plain(1)]], 4, limit=200, expected=expected)
        assert found.ids == path


@pytest.mark.parametrize("seed", range(4))
def test_a_length_penalty_has_a_limit(seed: int) -> None:
    """Else the dearer a phrase is, the more an output would gain by being long."""
    by_penalty = [
        search(FakeLanguage(seed, VOCABULARY), [[plain(1, 2)]], 6, limit=9, n_best=6, alpha=alpha)
        for alpha in (0.2, MOST_PENALTY, 1.5)
    ]
    assert by_penalty[1] == by_penalty[2] != by_penalty[0]


def test_more_phrases_than_there_is_room_for() -> None:
    language = FakeLanguage(1, 6)
    ((found, *_),) = search(language, [[plain(1, 2, 3), plain(4), plain(5, 5)]], 3, limit=4)
    assert len(found.ids) <= 3 and (found.ids[:3] == [1, 2, 3] or 4 in found.ids)


def test_an_output_begins_with_its_prefix_and_the_prefix_may_have_a_phrase() -> None:
    language = FakeLanguage(2, 6)
    found = search(language, [[plain(3)], [plain(3)]], 4, limit=8, prefixes=[[3, 1], [2]], only_in_phrases=(3,))
    assert found[0][0].ids[:2] == [3, 1] and found[0][0].ids.count(3) == 1
    assert found[1][0].ids[:1] == [2] and found[1][0].ids.count(3) == 1


def test_a_phrase_may_repeat_what_else_comes_once() -> None:
    language = FakeLanguage(3, 5)
    ((found, *_),) = search(language, [[plain(1, 2), plain(1, 2)]], 6, limit=12, once=1)
    others = [token for token in found.ids if token not in (1, 2)]
    assert contains(found.ids, [plain(1, 2), plain(1, 2)]) and len(others) == len(set(others))


@pytest.mark.parametrize(
    ("values", "problem"), [((0, 0.6, 1), "beam size"), ((2, -1.0, 1), "length_penalty"), ((2, 0.6, 3), "n_best")]
)
def test_values_out_of_range(values: tuple[int, float, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ConstrainedBeam(Beam(*values))
