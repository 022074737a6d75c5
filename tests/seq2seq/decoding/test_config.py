"""Defaults of the search, their ranges, and the longest output they allow."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.seq2seq.decoding.config import DecodingConfig, check_n_best


@pytest.mark.parametrize(
    "values",
    [
        {"beam_size": 0},
        {"length_penalty": -0.1},
        {"length_penalty": 10.5},
        {"length_penalty": float("nan")},
        {"no_repeat_ngram_size": -1},
        {"max_length_factor": 0.0},
        {"max_length_factor": float("inf")},
        {"max_length_offset": -1},
    ],
)
def test_a_value_out_of_range_is_named(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        DecodingConfig(**values)


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(ValueError, match=r"(?s)beam_size.*length_penalty.*max_length_offset"):
        DecodingConfig(beam_size=0, length_penalty=-1, max_length_offset=-1)


def test_longest_output_is_a_multiple_of_the_source_plus_an_offset() -> None:
    config = DecodingConfig(max_length_factor=1.5, max_length_offset=3)
    assert config.max_decode_len(10, max_seq_len=100) == 18
    assert config.max_decode_len(0, max_seq_len=100) == 3


@given(st.integers(0, 1000), st.integers(2, 300), st.floats(0.01, 100), st.integers(0, 100))
def test_longest_output_fits_the_model_and_holds_eos(
    src_length: int, max_seq_len: int, factor: float, offset: int
) -> None:
    config = DecodingConfig(max_length_factor=factor, max_length_offset=offset)
    assert 1 <= config.max_decode_len(src_length, max_seq_len) <= max_seq_len


def test_no_more_than_a_beam_of_hypotheses() -> None:
    check_n_best(3, 3)
    for n_best in (0, 4):
        with pytest.raises(ValueError, match=f"n_best must be at .*, but is {n_best}"):
            check_n_best(n_best, 3)
