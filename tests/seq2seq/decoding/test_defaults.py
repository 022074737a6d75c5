"""A run's own search, with what the user says instead."""

from typing import Any

import pytest

from tfm.seq2seq.decoding.beam import Beam
from tfm.seq2seq.decoding.config import DecodingConfig
from tfm.seq2seq.decoding.defaults import build_search
from tfm.seq2seq.decoding.greedy import Greedy


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
