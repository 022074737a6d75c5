"""How much of its phrases a hypothesis has, judged by trying all ways to place them."""

from collections.abc import Sequence
from itertools import pairwise

from helpers.languages import BOS, EOS
from helpers.phrases import Phrases, contains
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.seq2seq.decoding.phrases import Phrase, PhraseProgress, Spelling


def progress_of(
    phrases: Sequence[Phrase], ids: Sequence[int], only: frozenset[int] = frozenset()
) -> PhraseProgress | None:
    progress: PhraseProgress | None = PhraseProgress(tuple(phrases), only)
    for previous, token in pairwise([BOS, *ids]):
        progress = progress and progress.after(previous, token)
    return progress


@given(Phrases, st.lists(st.integers(1, 4), max_size=9))
@settings(max_examples=600, deadline=None)
def test_nothing_is_missing_where_all_phrases_can_be_placed(phrases: list[Phrase], ids: list[int]) -> None:
    progress = progress_of(phrases, ids)
    assert progress is not None
    assert (progress.missing(([BOS, *ids])[-1]) == 0) == contains(ids, phrases)
    assert progress.tokens <= sum(phrase.longest for phrase in phrases)
    assert (progress.tokens == sum(phrase.longest for phrase in phrases)) == contains(ids, phrases)


@given(Phrases, st.lists(st.integers(1, 4), max_size=6), st.sets(st.integers(1, 4)))
@settings(max_examples=600, deadline=None)
def test_what_stands_only_in_phrases_stands_nowhere_else(phrases: list[Phrase], ids: list[int], only: set[int]) -> None:
    progress = progress_of(phrases, ids, frozenset(only))
    done = progress is not None and not progress.missing(([BOS, *ids])[-1])
    assert done == contains(ids, phrases, only)


@given(Phrases, st.lists(st.integers(1, 4), max_size=6))
@settings(max_examples=200, deadline=None)
def test_what_is_wanted_brings_it_further(phrases: list[Phrase], ids: list[int]) -> None:
    progress, previous = progress_of(phrases, ids), ([BOS, *ids])[-1]
    assert progress is not None
    for token in progress.wanted(previous):
        further = progress.after(previous, token)
        assert further is not None and further.tokens > progress.tokens


def test_progress_in_any_spelling_counts_and_one_that_is_broken_off_begins_anew() -> None:
    phrases = (Phrase((Spelling((1, 2, 3)), Spelling((1, 4)), Spelling((5,)))), Phrase((Spelling((6,)),)))
    for ids, tokens, wanted in [
        ([], 0, {1, 5, 6}),
        ([1], 2, {4}),
        ([1, 2], 2, {3}),
        ([1, 2, 4], 0, {1, 5, 6}),
        ([1, 4], 3, {6}),
        ([1, 6], 1, {1, 5}),
        ([5], 3, {6}),
        ([6, 1, 2, 3], 4, set()),
    ]:
        progress = progress_of(phrases, ids)
        assert progress is not None and (progress.tokens, progress.wanted(0)) == (tokens, wanted)


def test_a_phrase_waits_for_a_token_that_comes_in_phrases_only() -> None:
    """What 2 could meet at once is left for the last 1, which has no other place."""
    phrases = [Phrase((Spelling((1, 1)),)), Phrase((Spelling((1,)), Spelling((2,))))]
    progress = progress_of(phrases, [1, 1, 2, 1], frozenset({1}))
    assert progress is not None and not progress.missing(1)


def test_what_stands_around_a_spelling() -> None:
    phrase = Phrase((Spelling((1,), after=frozenset({BOS, 2}), before=frozenset({3})), Spelling((4, 1))))
    for ids, is_there in [
        ([1], True),
        ([1, 3], True),
        ([1, 2], False),
        ([3, 1], False),
        ([2, 1], True),
        ([2, 1, 1], False),
        ([3, 4, 1, 2], True),
    ]:
        progress = progress_of([phrase], ids)
        assert progress is not None and (progress.missing(ids[-1]) == 0) == is_there
    ended = progress_of([phrase], [1], frozenset({1}))
    assert ended is not None and ended.only == {3} and ended.after(1, 2) is None and EOS not in ended.wanted(1)
