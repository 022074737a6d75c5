"""JSON Lines."""

import bz2
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.tables import PAIRS, jsonl, pairs_of

from tfm.data.config import DataConfig
from tfm.data.corpus import open_spec
from tfm.system.errors import DataError

Write = Callable[[str, str | bytes], Path]


def test_jsonl(write: Write) -> None:
    rows = [{"src": s, "tgt": t, "id": 1} for s, t in PAIRS] + [{"src": None, "tgt": "x"}]
    assert pairs_of(write("a.jsonl", jsonl(rows) + "\n")) == [
        *PAIRS,
        ("", ""),
        ("", ""),
    ]
    assert pairs_of(write("a.jsonl.bz2", bz2.compress(jsonl(rows[:3]).encode()))) == PAIRS


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not a JSON object: "),
        ("[1]", "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
        ('{"src": 1, "tgt": "x"}', "source and target must be strings"),
        (
            '{"a": "x", "b": "y", "c": "z"}',
            "no src and tgt, which the rows before have",
        ),
    ],
)
def test_damaged_jsonl_names_its_line(write: Write, line: str, message: str) -> None:
    with pytest.raises(DataError, match=f"a.jsonl:2: {message}"):
        pairs_of(write("a.jsonl", jsonl([{"src": "a", "tgt": "b"}]) + line + "\n"))


def test_the_columns_of_jsonl_are_picked_once(tmp_path: Path) -> None:
    path = tmp_path / "swapped.jsonl"
    path.write_text('{"en": "dog", "de": "Hund"}\n{"de": "Katze", "en": "cat"}\n')
    assert list(open_spec(str(path), DataConfig()).pairs()) == [("dog", "Hund"), ("cat", "Katze")]
    path.write_text('{"en": "dog", "de": "Hund"}\n{"en": "cat", "fr": "chat"}\n')
    with pytest.raises(DataError, match="no en and de, which the rows before have"):
        list(open_spec(str(path), DataConfig()).pairs())
