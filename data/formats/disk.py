"""Folders that `save_to_disk` of the library `datasets` has written."""

from itertools import repeat
from pathlib import Path
from typing import Any

from ...system.errors import DataError, UsageError
from ..config import DataConfig
from ..reading import hash_file
from .columns import record_pairs
from .format import Opened, Stamp, first_line, identity_of

_MARKS = ("dataset_info.json", "dataset_dict.json")
"""Files that such a folder has: of one table, of several with names."""
_SPLITS = {"train": ("train",), "dev": ("validation", "dev", "valid"), "test": ("test",)}
"""What the table of each purpose may be called."""


class DiskFormat:
    """A folder with one table, or with one for each split."""

    notation = "a folder written by save_to_disk"

    def fits(self, spec: str) -> bool:
        """Whether the folder has what that function writes."""
        return any((Path(spec) / mark).is_file() for mark in _MARKS)

    def open(self, spec: str, config: DataConfig, split: str) -> Opened:
        """Opens the table, by default that of the split that is asked for."""
        from datasets import DatasetDict, load_from_disk

        def files() -> list[Path]:
            return sorted(path for path in Path(spec).rglob("*") if path.is_file())

        stamp = Stamp(spec, files)
        try:
            found: Any = load_from_disk(spec)
        except Exception as error:  # pyarrow and datasets raise a dozen different types for a damaged file
            raise DataError(f"cannot read {spec}: {first_line(error)}") from error
        if isinstance(found, DatasetDict):
            name = next((name for name in _SPLITS[split] if name in found), None)
            if name is None:
                raise UsageError(
                    f"{spec} has no {_SPLITS[split][0]}, but {', '.join(map(str, found))}; name one: {spec}/NAME"
                )
            found = found[name]
            split = name
        identity = identity_of(map(hash_file, files()), (split, config.src_column, config.tgt_column))
        pairs = stamp.guard(lambda: record_pairs(zip(repeat(spec), found), config))
        return Opened(spec, identity, pairs, lambda: len(found))


DISK = DiskFormat()
