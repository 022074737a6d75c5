"""Formats of parallel text: a few modules of formats that are alike."""

from pathlib import Path

from ...system.compression import COMPRESSIONS

FORMATS = {
    ".tsv": ("tables", "TSV"),
    ".csv": ("tables", "CSV"),
    ".jsonl": ("tables", "JSONL"),
    ".json": ("tables", "JSON"),
    ".xlsx": ("sheets", "SHEET"),
    ".ods": ("sheets", "SHEET"),
    ".parquet": ("arrow", "PARQUET"),
    ".arrow": ("arrow", "ARROW"),
    ".tmx": ("tmx", "TMX"),
    ".xlf": ("xliff", "XLIFF"),
    ".xliff": ("xliff", "XLIFF"),
    ".sdlxliff": ("xliff", "XLIFF"),
    ".mqxliff": ("xliff", "XLIFF"),
    ".mxliff": ("xliff", "XLIFF"),
    ".txlf": ("xliff", "XLIFF"),
    ".po": ("gettext", "PO"),
    ".mo": ("gettext", "MO"),
}
"""The module that reads the files of each suffix, and the `Format` in it. It is imported when such a file is opened."""
SUFFIXES = tuple(FORMATS)
"""Suffixes of the files that can be read."""
PREFIX = "hf:"
"""What names a data set of the hub."""


def suffix_of(path: Path) -> str:
    """The suffix that says what is in a file, in small letters: `.tsv` of `pairs.TSV.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSIONS]
    return suffixes[-1] if suffixes else ""


def is_saved_folder(spec: str) -> bool:
    """Whether a SPEC is a folder that `save_to_disk` of the library `datasets` has written: one table, or several."""
    return any((Path(spec) / mark).is_file() for mark in ("dataset_info.json", "dataset_dict.json"))


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
