"""Formats of parallel text: a few modules of formats that are alike. `data.corpus` has the table of all."""

from pathlib import Path

from ...system.compression import COMPRESSIONS
from ...system.errors import DataError

_XLIFF = (".xlf", ".xliff", ".sdlxliff", ".mqxliff")
SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet", ".arrow", ".tmx", *_XLIFF, ".po", ".mo")
"""Suffixes of the files that can be read: said here, so that a refusal of one need not load how all are read."""

NOT_LINES = frozenset(SUFFIXES) - {".tsv"} | {
    ".srt",
    ".vtt",
    ".pot",
    ".mxliff",
    ".txlf",
    ".xml",
    ".html",
    ".json",
    ".docx",
    ".xlsx",
    ".odt",
    ".pdf",
    ".zip",
}
"""Suffixes of files whose lines are no sentences. Those of a `.tsv` may be: several references of a source."""

_TAKE_OUT = "its lines are not sentences; take the texts out of it first, one per line"


def refuse_known_format(path: Path, instead: str = _TAKE_OUT) -> None:
    """Refuses a file whose lines would be taken for sentences and are none.

    Args:
        instead: What to do with it, if it is a file of pairs.
    """
    suffix = suffix_of(path)
    if suffix in NOT_LINES:
        raise DataError(f"{path} is not plain text: {instead if suffix in SUFFIXES else _TAKE_OUT}")


def suffix_of(path: Path) -> str:
    """The suffix that says what is in a file, in small letters: `.tsv` of `pairs.TSV.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSIONS]
    return suffixes[-1] if suffixes else ""
