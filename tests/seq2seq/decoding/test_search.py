"""What all searches share: the length penalty, scores, and the end that a length limit forces."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tfm.seq2seq.decoding.search import finished, force_eos, length_normaliser


@given(st.integers(1, 500), st.floats(0, 10))
def test_length_penalty_is_that_of_gnmt(length: int, alpha: float) -> None:
    assert length_normaliser(length, alpha) == pytest.approx((5 + length) ** alpha / (5 + 1) ** alpha)


def test_alpha_0_compares_log_probabilities() -> None:
    assert finished([7, 8, 9], -2.5, 0.0).score == -2.5


@given(st.lists(st.integers(4, 9), max_size=20), st.floats(-100, -0.001), st.floats(0, 5))
def test_score_divides_by_the_penalty_of_the_length_with_eos(ids: list[int], log_prob: float, alpha: float) -> None:
    hypothesis = finished(ids, log_prob, alpha)
    assert hypothesis.ids == ids
    assert hypothesis.log_prob == log_prob
    assert hypothesis.score == pytest.approx(log_prob / ((5 + len(ids) + 1) / 6) ** alpha)


def test_eos_is_the_only_choice_at_the_limit() -> None:
    log_probs = torch.randn(3, 5).log_softmax(dim=-1)
    forced = force_eos(log_probs, torch.tensor([False, True, False]), 3)
    assert torch.equal(forced[[0, 2]], log_probs[[0, 2]])
    assert forced[1, 3] == log_probs[1, 3]
    assert forced[1, [0, 1, 2, 4]].tolist() == [float("-inf")] * 4


def test_nothing_is_forced_before_the_limit() -> None:
    log_probs = torch.randn(3, 5)
    assert torch.equal(force_eos(log_probs, torch.zeros(3, dtype=torch.bool), 3), log_probs)
