"""Tab-separated lines without a header: source, target, and whatever follows."""

from collections.abc import Iterator
from pathlib import Path

from ..config import DataConfig
from ..errors import DataError
from ..reading import count_lines, read_lines
from .format import FileFormat, Pair


def read(path: Path, config: DataConfig) -> Iterator[Pair]:
    """The first two fields of each line; a blank line is an empty pair."""
    for number, line in enumerate(read_lines(path, skip_bad=config.bad_lines == "skip"), start=1):
        if line is None or not line.strip():
            yield "", ""
            continue
        fields = line.split("\t")
        if len(fields) < 2:
            raise DataError(f"{path}:{number}: no tab; a .tsv line is source<TAB>target")
        yield fields[0], fields[1]


TSV = FileFormat((".tsv",), read, count_lines)
