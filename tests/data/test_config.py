"""Settings of data and tokenizer refuse what cannot work."""

import math
from pathlib import Path
from typing import Any

import pytest

from tfm.configs import load_config, merge, parse_config
from tfm.configs.loader import parse_assignment
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


def test_a_tilde_is_what_a_shell_makes_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/me")
    names = ["~/x.en", "~", "a~/b", "./~/c", "~nobody-of-this-name/d", "hf:~/e"]
    expected = ["/users/me/x.en", "/users/me", *names[2:]]
    assert DataConfig(dev_src=names).dev_src == expected
    assert names[0] == "~/x.en", "the caller's own list stays"
    file = tmp_path / "mine.yaml"
    file.write_text("data:\n  src: [~/x.en]\n  tgt:\n    - ~/x.de\n")
    data = parse_config(merge(load_config(str(file)), parse_assignment("data.dev=[~/dev.tsv]"))).data
    assert (data.src, data.tgt, data.dev) == (["/users/me/x.en"], ["/users/me/x.de"], ["/users/me/dev.tsv"])
