"""The columns that hold the two sides: found by configured name, by common name, or because there are only two."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.tables import LANGUAGES, jsonl, pairs_of

from tfm.data.config import DataConfig
from tfm.data.corpus import Pair
from tfm.data.errors import DataError

Write = Callable[[str, str | bytes], Path]


def test_translation_field(write: Write) -> None:
    path = write("a.jsonl", jsonl([{"id": 1, "translation": {"en": "a dog", "de": "ein Hund"}}]))
    assert pairs_of(path, LANGUAGES) == [("ein Hund", "a dog")]
    assert pairs_of(path) == [("a dog", "ein Hund")], "without column names: in their order"


@pytest.mark.parametrize(
    ("columns", "config", "expected"),
    [
        (["tgt", "src"], DataConfig(), ("1", "0")),
        (["other", "target", "source"], DataConfig(), ("2", "1")),
        (["english", "german"], DataConfig(), ("0", "1")),
        (["en", "fr", "de"], LANGUAGES, ("2", "0")),
    ],
)
def test_columns_are_found(write: Write, columns: list[str], config: DataConfig, expected: Pair) -> None:
    row = {column: str(index) for index, column in enumerate(columns)}
    assert pairs_of(write("a.jsonl", jsonl([row])), config) == [expected]
    assert pairs_of(write("a.csv", ",".join(columns) + "\n" + ",".join(row.values()) + "\n"), config) == [expected]


@pytest.mark.parametrize(("columns", "config"), [(["src"], DataConfig()), (["en", "fr"], LANGUAGES)])
def test_columns_that_are_not_there_are_listed(write: Write, columns: list[str], config: DataConfig) -> None:
    path = write("a.csv", ",".join(columns) + "\n")
    with pytest.raises(
        DataError,
        match=f"no columns .* among {', '.join(map(repr, columns))}; name them: --src-column",
    ):
        pairs_of(path, config)
