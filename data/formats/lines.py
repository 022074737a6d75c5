"""Two text files: line n of one is the translation of line n of the other."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from ...system.errors import DataError
from ..reading import count_lines, read_lines, survey
from .format import Opened, Pair, Stamp, identity_of, marks


def open_two_files(src: Path, tgt: Path, *, skip_bad: bool) -> Opened:
    """Opens the two sides.

    Args:
        skip_bad: Make a pair empty where a side is not UTF-8, instead of raising.
    """
    name = f"{src} and {tgt}"
    stamp = Stamp(name, lambda: (src, tgt))
    identity = identity_of([survey(src).sha256, survey(tgt).sha256], skip_bad)
    remarks = marks([src, tgt] if src != tgt else [src])
    return Opened(name, identity, stamp.guard(lambda: _pairs(src, tgt, skip_bad)), lambda: count_lines(src), remarks)


def _pairs(src: Path, tgt: Path, skip_bad: bool) -> Iterator[Pair]:
    missing = object()
    src_lines, tgt_lines = read_lines(src, skip_bad=skip_bad), read_lines(tgt, skip_bad=skip_bad)
    for number, (s, t) in enumerate(zip_longest(src_lines, tgt_lines, fillvalue=missing)):
        if s is missing or t is missing:
            longer = number + 1 + sum(1 for _ in (tgt_lines if s is missing else src_lines))
            counts = (number, longer) if s is missing else (longer, number)
            raise DataError(
                f"{src} has {counts[0]:,} lines and {tgt} {counts[1]:,}; the two files must match line by line"
                f"{_where(src, tgt)}"
            )
        yield (s, t) if isinstance(s, str) and isinstance(t, str) else ("", "")


def _where(src: Path, tgt: Path) -> str:
    """Where two files of different lengths seem to slip."""
    import numpy as np
    import numpy.typing as npt

    from ..alignment import first_slip  # nobody who reads good files waits for this

    def lengths(path: Path) -> npt.NDArray[np.int32]:
        return np.fromiter((len(line or "") for line in read_lines(path, skip_bad=True)), np.int32)

    slip = first_slip(lengths(src), lengths(tgt))
    return "" if slip is None else f"; the first line that slips is likely to be near {slip + 1:,}"
