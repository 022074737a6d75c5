"""Data sets of the Hugging Face hub, or in a local folder: `hf:NAME[/SUBSET][:SPLIT][@REVISION]`."""

from itertools import repeat
from pathlib import Path
from typing import Any

from ...system.errors import DataError, UsageError
from ...system.files import sha256_bytes
from ..config import DataConfig
from ..reading import hash_file
from .columns import record_pairs
from .format import Opened, Stamp, first_line, identity_of

PREFIX = "hf:"


class HubFormat:
    """A data set by its name. Its identity depends on its content, its split and the names of the columns."""

    notation = f"{PREFIX}NAME"

    def fits(self, spec: str) -> bool:
        """Whether it begins with `hf:`."""
        return spec.startswith(PREFIX)

    def open(self, spec: str, config: DataConfig, split: str) -> Opened:
        """Loads the data set, by default the split that is asked for."""
        from datasets import load_dataset

        name, subset, named_split, revision = parse_hub_spec(spec)
        if not name:
            raise UsageError(f"{spec} names no data set; write hf:NAME[/SUBSET][:SPLIT][@REVISION]")
        folder = Path(name)

        def local_files() -> list[Path]:
            return sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []

        stamp = Stamp(spec, local_files)
        split = named_split or {"dev": "validation"}.get(split, split)
        try:
            dataset: Any = load_dataset(name, subset, split=split, revision=revision)
        except Exception as error:  # the hub client raises network, lookup and value errors of many libraries
            raise DataError(f"cannot load {spec} (split {split}): {first_line(error)}") from error
        # The library's fingerprint of local files follows their dates; what is in them is what counts.
        local = local_files()
        content = identity_of(map(hash_file, local)) if local else dataset._fingerprint
        identity = sha256_bytes(f"{content} {split} {config.src_column} {config.tgt_column}".encode())
        pairs = stamp.guard(lambda: record_pairs(zip(repeat(spec), dataset), config))
        return Opened(spec, identity, pairs, lambda: len(dataset))


HUB = HubFormat()


def parse_hub_spec(spec: str) -> tuple[str, str | None, str | None, str | None]:
    """Splits `hf:NAME[/SUBSET][:SPLIT][@REVISION]` into name, subset, split and revision.

    A hub name is `owner/name` or an old one-word name; a third component is the subset. A path to a local directory
    (one that starts with `.` or `/`, or exists) is taken whole.
    """
    rest = spec.removeprefix(PREFIX)
    if Path(rest).exists():
        return rest, None, None, None
    rest, _, revision = rest.partition("@")
    rest, _, split = rest.partition(":")  # at the first colon: a split can be a slice, `train[:1000]`
    name, subset = rest, None
    if not rest.startswith((".", "/")) and not Path(rest).exists() and rest.count("/") == 2:
        name, _, subset = rest.rpartition("/")
    return name, subset, split or None, revision or None
