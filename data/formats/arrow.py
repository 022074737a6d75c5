"""Arrow tables, in Arrow's file format or in its streaming format, which `datasets` writes."""

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
    return record_pairs(zip(repeat(str(path)), _load(path)), config)


def count(path: Path, _: DataConfig) -> int:
    """The number of rows."""
    return len(_load(path))


def _load(path: Path) -> Any:
    import pyarrow as pa
    from datasets import Dataset

    try:
        mapped: Any = pa.memory_map(str(path))
        if mapped.read(6) == b"ARROW1":  # the file format begins with this
            return Dataset(pa.ipc.open_file(mapped).read_all())
        return Dataset.from_file(str(path))
    except Exception as error:  # pyarrow and datasets raise a dozen different types for a damaged file
        raise DataError(f"cannot read {path}: {first_line(error)}") from error


ARROW = FileFormat((".arrow",), read, count)
