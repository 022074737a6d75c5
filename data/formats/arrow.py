"""Tables that the library `datasets` reads: files of Arrow and Parquet, folders of `save_to_disk`, and data sets of the
Hugging Face hub or in a local folder: `hf:NAME[/SUBSET][:SPLIT][@REVISION]`."""

from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from typing import Any

from ...system.errors import DataError, UsageError
from ...system.files import sha256_bytes
from ..config import DataConfig
from ..reading import hash_file
from . import parse_hub_spec
from .columns import record_pairs
from .format import Corpus, Format, Stamp, file_format, first_line, identity_of

_SPLITS = {"train": ("train",), "dev": ("validation", "dev", "valid"), "test": ("test",)}
"""What the table of each purpose may be called."""


def _loaded(name: str, load: Callable[[str], Any]) -> Any:
    try:
        return load(name)
    except Exception as error:  # pyarrow and datasets raise a dozen different types for a damaged file
        raise DataError(f"cannot read {name}: {first_line(error)}") from error


def _arrow_table(name: str) -> Any:
    """Rows in Arrow's file format, or in its streaming format, which `datasets` writes."""
    import pyarrow as pa
    from datasets import Dataset

    mapped: Any = pa.memory_map(name)
    if mapped.read(6) == b"ARROW1":  # the file format begins with this
        return Dataset(pa.ipc.open_file(mapped).read_all())
    return Dataset.from_file(name)


def _parquet_table(name: str) -> Any:
    from datasets import Dataset

    return Dataset.from_parquet(name)


def _parquet_count(name: str) -> int:
    from pyarrow import parquet

    return parquet.read_metadata(name).num_rows  # which is written at the end of the file


def _table(load: Callable[[str], Any], count: Callable[[str], int]) -> Format:
    return file_format(
        lambda path, config: record_pairs(zip(repeat(str(path)), _loaded(str(path), load)), config),
        lambda path, _: _loaded(str(path), count),
    )


ARROW = _table(_arrow_table, lambda name: len(_arrow_table(name)))
PARQUET = _table(_parquet_table, _parquet_count)


def _files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []


def open_disk(spec: str, config: DataConfig, split: str) -> Corpus:
    """Opens the one table of a folder, or by default that of the split that is asked for."""
    from datasets import DatasetDict, load_from_disk

    stamp = Stamp(spec, lambda: _files_in(Path(spec)))
    found: Any = _loaded(spec, load_from_disk)
    if isinstance(found, DatasetDict):
        name = next((name for name in _SPLITS[split] if name in found), None)
        if name is None:
            raise UsageError(
                f"{spec} has no {_SPLITS[split][0]}, but {', '.join(map(str, found))}; name one: {spec}/NAME"
            )
        found = found[name]
        split = name
    identity = identity_of(map(hash_file, _files_in(Path(spec))), (split, config.src_column, config.tgt_column))
    pairs = stamp.guard(lambda: record_pairs(zip(repeat(spec), found), config))
    return Corpus(spec, identity, pairs, lambda: len(found))


def open_hub(spec: str, config: DataConfig, split: str) -> Corpus:
    """Loads a data set, by default the split that is asked for. Content, split and columns are its identity."""
    from datasets import load_dataset

    name, subset, named_split, revision = parse_hub_spec(spec)
    if not name:
        raise UsageError(f"{spec} names no data set; write hf:NAME[/SUBSET][:SPLIT][@REVISION]")
    stamp = Stamp(spec, lambda: _files_in(Path(name)))
    split = named_split or {"dev": "validation"}.get(split, split)
    try:
        dataset: Any = load_dataset(name, subset, split=split, revision=revision)
    except Exception as error:  # the hub client raises network, lookup and value errors of many libraries
        raise DataError(f"cannot load {spec} (split {split}): {first_line(error)}") from error
    # The library's fingerprint of local files follows their dates; what is in them is what counts.
    local = [hash_file(path) for path in _files_in(Path(name))]
    content = identity_of(local) if local else dataset._fingerprint
    identity = sha256_bytes(f"{content} {split} {config.src_column} {config.tgt_column}".encode())
    pairs = stamp.guard(lambda: record_pairs(zip(repeat(spec), dataset), config))
    return Corpus(spec, identity, pairs, lambda: len(dataset))
