"""Formats of parallel text: one module for each, and one table of all.

A new format of files is a module with a function that streams the pairs of a file, and one line in `FORMATS`.
Two text files side by side (`lines.py`) are no SPEC, so they are not in the table.
"""

from ..errors import UsageError
from .arrow import ARROW
from .csv import CSV
from .format import FileFormat, Format
from .hub import HUB
from .jsonl import JSONL
from .parquet import PARQUET
from .toy import TOY_LANGUAGE
from .tsv import TSV

FORMATS: tuple[Format, ...] = (HUB, TOY_LANGUAGE, TSV, CSV, JSONL, PARQUET, ARROW)
"""All formats of a SPEC. The first one that fits is taken."""

SUFFIXES = tuple(known.suffix for known in FORMATS if isinstance(known, FileFormat))
"""Suffixes of the files that can be read."""


def format_of(spec: str) -> Format:
    """The format of a SPEC.

    Raises:
        UsageError: It fits none.
    """
    for known in FORMATS:
        if known.fits(spec):
            return known
    others = [f"or {known.notation}" for known in FORMATS if not isinstance(known, FileFormat)]
    raise UsageError(
        f"cannot tell the format of {spec}: name a file that ends in {', '.join([*sorted(SUFFIXES), *others])};"
        " for two text files use --src and --tgt"
    )
