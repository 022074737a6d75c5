"""The same few pairs in every kind of table, and how to read them back."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from tfm.data.config import DataConfig
from tfm.data.corpus import Pair, open_spec

PAIRS = [
    ("ein Hund", "a dog"),
    ('mit "Komma", hier', "with, comma"),
    ("zwei\u2028halbe", "two halves"),
]
LANGUAGES = DataConfig(src_column="de", tgt_column="en")


def pairs_of(spec: str | Path, config: DataConfig | None = None) -> list[Pair]:
    """All pairs of a SPEC."""
    return list(open_spec(str(spec), config or DataConfig()).pairs())


def table(src: str = "src", tgt: str = "tgt") -> Any:
    """The pairs as an Arrow table."""
    return pa.table({src: [s for s, _ in PAIRS], tgt: [t for _, t in PAIRS]})


def jsonl(rows: list[Any]) -> str:
    """Rows as JSON Lines."""
    return "".join(json.dumps(row) + "\n" for row in rows)
