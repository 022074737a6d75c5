"""No n-gram twice: against the definition, and in searches whose outputs can all be listed."""

from collections.abc import Sequence

import pytest
import torch
from helpers.languages import BOS, EOS, CertainPath, FakeLanguage, all_outputs, search_language
from hypothesis import given, settings
from hypothesis import strategies as st

from tfm.seq2seq.decoding.beam import Beam
from tfm.seq2seq.decoding.greedy import Greedy
from tfm.seq2seq.decoding.search import IMPOSSIBLE, Task, forbid_repeats

VOCABULARY = 5
Ids = st.lists(st.integers(1, VOCABULARY - 1), max_size=12)
Sizes = st.integers(1, 4)


def repeats(ids: Sequence[int], size: int) -> bool:
    """Whether some `size` tokens in a row stand twice in an output."""
    ngrams = [tuple(ids[i : i + size]) for i in range(len(ids) - size + 1)]
    return len(set(ngrams)) < len(ngrams)


@given(st.lists(Ids, min_size=1, max_size=4), Sizes)
@settings(max_examples=100, deadline=None)
def test_what_would_repeat_an_ngram_is_impossible_and_nothing_else(outputs: list[list[int]], size: int) -> None:
    length = min(map(len, outputs))
    outputs = [ids[:length] for ids in outputs if not repeats(ids[:length], size)]
    if not outputs:
        return
    before = torch.randn(len(outputs), VOCABULARY)
    ids = torch.tensor([[BOS, *output] for output in outputs])
    task = Task([20] * len(outputs), BOS, EOS)
    after = forbid_repeats(before.clone(), ids, size, task, range(len(outputs)))
    for row, output in enumerate(outputs):
        for token in range(VOCABULARY):
            forbidden = token != EOS and repeats([*output, token], size)
            assert after[row, token] == (IMPOSSIBLE if forbidden else before[row, token])


def test_a_row_whose_prefix_goes_on_is_left_alone_beside_one_that_is_free() -> None:
    task = Task([9, 9], BOS, EOS, prefixes=[[1, 2, 1, 2], [1]])
    ids = torch.tensor([[BOS, 1, 2, 1]] * 4)  # two rows for each sentence
    after = forbid_repeats(torch.zeros(4, VOCABULARY), ids, 2, task, [0, 1])
    assert after[:2].eq(0).all()
    assert (after[2:, 2] == IMPOSSIBLE).all()
    assert after[2:, [0, 1, 3, 4]].eq(0).all()


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_wide_beam_finds_what_brute_force_finds_among_outputs_without_repetitions(size: int, seed: int) -> None:
    language = FakeLanguage(seed, 4)
    outputs = [ids for ids in all_outputs(4, 5) if not repeats(ids, size)]
    expected = sorted(outputs, key=lambda ids: -language.log_prob(0, ids) / ((6 + len(ids)) / 6) ** 0.6)
    found = search_language(Beam(200, 0.6, 200, size), language, [5])[0]
    assert [hypothesis.ids for hypothesis in found] == expected
    assert [h.log_prob for h in found] == pytest.approx([language.log_prob(0, ids) for ids in expected], abs=1e-4)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 9), min_size=1, max_size=5), Sizes)
@settings(max_examples=50, deadline=None)
def test_a_beam_of_one_is_greedy_search_and_neither_repeats_itself(seed: int, limits: list[int], size: int) -> None:
    language = FakeLanguage(seed, 4)
    greedy = [found.ids for (found,) in search_language(Greedy(0.6, size), language, limits)]
    assert [found[0].ids for found in search_language(Beam(1, 0.6, 1, size), language, limits)] == greedy
    assert not any(repeats(ids, size) for ids in greedy)


@given(st.integers(0, 10**6), st.lists(st.lists(st.integers(1, 3), max_size=4), min_size=1, max_size=4), Sizes)
@settings(max_examples=50, deadline=None)
def test_a_batch_with_prefixes_equals_its_sentences_alone(seed: int, prefixes: list[list[int]], size: int) -> None:
    language = FakeLanguage(seed, 4)
    for search in (Greedy(0.6, size), Beam(3, 0.6, 3, size)):
        together = search_language(search, language, [8] * len(prefixes), prefixes)
        alone = [search_language(search, language, [8], [p], [i])[0] for i, p in enumerate(prefixes)]
        assert [[h.ids for h in found] for found in together] == [[h.ids for h in found] for found in alone]
        assert all(found[0].ids[: len(p)] == p for found, p in zip(together, prefixes, strict=True))


def test_a_loop_is_left_and_a_guard_of_0_lets_it_go_on() -> None:
    loop = [1, 2, 3] * 5
    for search in (Greedy(), Beam(5)):
        assert search_language(search, CertainPath(loop, 5), [16])[0][0].ids == loop
    almost = _AlmostCertain(loop, 5)
    assert search_language(Greedy(0.6, 4), almost, [16])[0][0].ids[:6] == [1, 2, 3, 1, 2, 3]
    assert not repeats(search_language(Greedy(0.6, 4), almost, [16])[0][0].ids, 4)
    assert not repeats(search_language(Beam(3, 0.6, 1, 4), almost, [16])[0][0].ids, 4)


class _AlmostCertain(CertainPath):
    """Goes round its path, but other tokens are possible."""

    def logits(self, sentence: int, prefix: list[int]) -> list[float]:
        return [max(logit, -5.0 - token) for token, logit in enumerate(super().logits(sentence, prefix))]


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="no_repeat_ngram_size must be at least 0, but is -1"):
        Greedy(no_repeat_ngram_size=-1)
    with pytest.raises(ValueError, match="no_repeat_ngram_size must be at least 0, but is -1"):
        Beam(5, no_repeat_ngram_size=-1)
