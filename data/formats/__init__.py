"""Formats of parallel text: one module for each, and one table of all.

A new format of files is a module with a function that streams the pairs of a file, and one line in `FORMATS`.
Two text files side by side (`lines.py`) are no SPEC, so they are not in the table.
"""

from pathlib import Path

from ...system.errors import DataError, UsageError
from .arrow import ARROW
from .csv import CSV
from .disk import DISK
from .format import FileFormat, Format, suffix_of
from .gettext import MO, PO
from .hub import HUB
from .jsonl import JSONL
from .parquet import PARQUET
from .tmx import TMX
from .toy import TOY_LANGUAGE
from .tsv import TSV
from .xliff import XLIFF

FORMATS: tuple[Format, ...] = (HUB, DISK, TOY_LANGUAGE, TSV, CSV, JSONL, PARQUET, ARROW, TMX, XLIFF, PO, MO)
"""All formats of a SPEC. The first one that fits is taken."""

SUFFIXES = tuple(suffix for known in FORMATS if isinstance(known, FileFormat) for suffix in known.suffixes)
"""Suffixes of the files that can be read."""


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


def format_of(spec: str) -> Format:
    """The format of a SPEC."""
    for known in FORMATS:
        if known.fits(spec):
            return known
    others = [f"or {known.notation}" for known in FORMATS if not isinstance(known, FileFormat)]
    raise UsageError(
        f"cannot tell the format of {spec}: name a file that ends in {', '.join([*sorted(SUFFIXES), *others])};"
        " for two text files use --src and --tgt"
    )
