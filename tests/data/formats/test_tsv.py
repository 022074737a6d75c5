"""Tab-separated lines."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.tables import pairs_of

from tfm.data.errors import DataError

Write = Callable[[str, str | bytes], Path]


def test_tsv(write: Write) -> None:
    path = write("a.tsv", "ein Hund\ta dog\r\n\nzwei\ttwo\tthird field\n")
    assert pairs_of(path) == [("ein Hund", "a dog"), ("", ""), ("zwei", "two")]
    with pytest.raises(DataError, match=r"b\.tsv:2: no tab"):
        pairs_of(write("b.tsv", "a\tb\nno tab here\n"))
