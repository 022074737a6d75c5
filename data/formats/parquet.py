"""Parquet tables."""

from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

from ...system.errors import DataError
from ..config import DataConfig
from .columns import record_pairs
from .format import FileFormat, Pair, first_line


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """Two columns of each row."""
    from datasets import Dataset

    try:
        rows: Any = Dataset.from_parquet(str(path))
    except Exception as error:  # pyarrow and datasets raise a dozen different types for a damaged file
        raise DataError(f"cannot read {path}: {first_line(error)}") from error
    return record_pairs(zip(repeat(str(path)), rows), config)


def count(path: Path, _: DataConfig) -> int:
    """The number of rows, which is written at the end of the file."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.read_metadata(path).num_rows
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"cannot read {path}: {first_line(error)}") from error


PARQUET = FileFormat((".parquet",), read, count)
