"""What a format is, and what all formats of one file share."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from ...system.compression import COMPRESSIONS
from ...system.errors import DataError
from ...system.files import sha256_bytes
from ..config import DataConfig
from ..reading import stamp_of, survey

Pair = tuple[str, str]
"""A source sentence and its translation; both empty where a line was unreadable and is to be skipped."""


class Opened(NamedTuple):
    """What a SPEC names, ready to be read.

    Attributes:
        name: What the user called it, for messages.
        identity: Changes whenever the text does.
        pairs: Opens the stream of pairs anew at each call.
        quick_count: A quicker way to the number of pairs than reading them, where there is one.
        remarks: What was recognised in it and may not be what the user meant, in lines for people.
        incomplete: It is usual that much of it is not translated yet.
    """

    name: str
    identity: str
    pairs: Callable[[], Iterator[Pair]]
    quick_count: Callable[[], int] | None = None
    remarks: tuple[str, ...] = ()
    incomplete: bool = False


class Format(Protocol):
    """One way to name and to store pairs."""

    @property
    def notation(self) -> str:
        """How a SPEC of this format looks, for messages: a suffix (`.tsv`), a prefix and a name (`hf:NAME`), a word."""
        ...

    def fits(self, spec: str) -> bool:
        """Whether a SPEC is of this format."""
        ...

    def open(self, spec: str, config: DataConfig, split: str) -> Opened:
        """Opens a SPEC that fits.

        Args:
            split: `train`, `dev` or `test`, for a SPEC that may mean any of them.
        """
        ...


@dataclass(frozen=True)
class FileFormat:
    """A format of one file with both sides in it, known by the file's suffix.

    The identity of such a file depends on its content and on the names of the columns.

    Args:
        suffixes: With their dots; `.gz`, `.bz2`, `.xz` and `.zst` may follow them.
        describe: Says what was recognised, where a file does not say it itself.
    """

    suffixes: tuple[str, ...]
    read: Callable[[Path, DataConfig], Iterator[Pair]]
    count: Callable[[Path, DataConfig], int] | None = None
    describe: Callable[[Path, DataConfig], str] | None = None
    incomplete: bool = False

    @property
    def notation(self) -> str:
        """The suffixes."""
        return " ".join(self.suffixes)

    def fits(self, spec: str) -> bool:
        """Whether the name ends in one of the suffixes, compressed or not."""
        return suffix_of(Path(spec)) in self.suffixes

    def open(self, spec: str, config: DataConfig, split: str) -> Opened:
        """Opens the file; it has no splits."""
        del split
        path, read, count = Path(spec), self.read, self.count
        stamp = Stamp(spec, lambda: [path])
        identity = identity_of([survey(path).sha256], (config.src_column, config.tgt_column))
        remarks = marks([path]) + (() if self.describe is None else (self.describe(path, config),))
        quick_count = None if count is None else lambda: count(path, config)
        pairs = stamp.guard(lambda: read(path, config))
        return Opened(spec, identity, pairs, quick_count, remarks, self.incomplete)


def suffix_of(path: Path) -> str:
    """The suffix that says what is in a file, in small letters: `.tsv` of `pairs.TSV.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in COMPRESSIONS]
    return suffixes[-1] if suffixes else ""


def identity_of(hashes: Iterable[str], salt: object = "") -> str:
    """A hash of what is in files, given by their hashes, and of whatever else decides how they are read."""
    return sha256_bytes(f"{[*hashes]} {salt}".encode())


class Stamp:
    """By what files are known again without reading them: taken before they are read, and compared afterwards.

    A corpus is read several times: for its hash, its vocabulary, its pieces. A file or folder that is replaced between
    two of these would be half of one and half of another text.

    Args:
        paths: Says which files they are, also which are new in a folder.
    """

    def __init__(self, name: str, paths: Callable[[], Iterable[Path]]) -> None:
        self._name, self._paths = name, paths
        self._then = self._now()

    def _now(self) -> list[tuple[Path, tuple[int, ...]]]:
        found: list[tuple[Path, tuple[int, ...]]] = []
        for path in self._paths():
            with contextlib.suppress(OSError):  # what is wrong with it is said by who reads it
                found.append((path, stamp_of(path)))
        return found

    def guard(self, pairs: Callable[[], Iterator[Pair]]) -> Callable[[], Iterator[Pair]]:
        """A stream that ends in an error if the files are not what they were.

        Raises:
            DataError: Where the stream begins or ends.
        """

        def guarded() -> Iterator[Pair]:
            self._check()
            yield from pairs()
            self._check()

        return guarded

    def _check(self) -> None:
        if self._now() != self._then:
            raise DataError(
                f"{self._name} was replaced, moved or written to while it was being read, which would mix two texts;"
                " leave it alone until training begins, and run the same command again"
            )


def marks(paths: Iterable[Path]) -> tuple[str, ...]:
    """What there is to say of byte-order marks."""
    marked = [path for path in paths if survey(path).has_mark]
    return tuple(f"{path}: the byte-order mark before its text is left out" for path in marked)


def first_line(error: Exception) -> str:
    """The first line of what an error of another library says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
