"""Settings of data and tokenizer refuse what cannot work."""

import math
from typing import Any

import pytest

from tfm.data.config import MAX_VOCAB_SIZE, DataConfig, TokenizerConfig


@pytest.mark.parametrize("ratio", [0.5, -1, math.nan, math.inf])
def test_length_ratio_is_a_number_from_one(ratio: float) -> None:
    with pytest.raises(ValueError, match="max_length_ratio must be at least 1"):
        DataConfig(max_length_ratio=ratio)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocab_size", 0),
        ("vocab_size", -1),
        ("vocab_size", MAX_VOCAB_SIZE + 1),
        ("character_coverage", 0.97),
        ("character_coverage", 1.1),
        ("character_coverage", math.nan),
        ("max_sentences", 0),
    ],
)
def test_impossible_tokenizer_settings_are_refused(key: str, value: Any) -> None:
    with pytest.raises(ValueError, match=key):
        TokenizerConfig(**{key: value})


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(ValueError, match=r"(?s)vocab_size.*\n.*character_coverage.*\n.*max_sentences"):
        TokenizerConfig(vocab_size=0, character_coverage=2, max_sentences=0)
