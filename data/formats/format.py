"""What a corpus is and what a format is, and what all formats of files share."""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from ...system.errors import DataError
from ...system.files import sha256_bytes
from .. import Pair as Pair
from ..config import DataConfig
from ..reading import stamp_of, survey

Languages = tuple[str, str]
"""Codes of the languages of source and target, each empty where nobody names it."""


@lru_cache(maxsize=1024)
def same_language(code: str, wanted: str) -> bool:
    """Whether a language code is the one wanted, or a regional form of it: `en-GB` is `en`; letter case is ignored."""
    code, wanted = (re.sub("[_@]", "-", one.lower()) for one in (code, wanted))
    return code == wanted or code.startswith(f"{wanted}-")


def fits(code: str, wanted: str) -> bool:
    """Whether a language that a file names, or not, is the one wanted, or a more general form of it."""
    return not code or not wanted or same_language(code, wanted) or same_language(wanted, code)


def common_language(codes: Iterable[str]) -> str:
    """The language that all codes are of; empty if there is none."""
    known = sorted({code for code in codes if code}, key=len)
    return known[0] if known and all(same_language(code, known[0]) for code in known) else ""


class OtherLanguages(DataError):
    """A file that is in none of the languages that the settings name.

    Attributes:
        named: What it is in, with its name.
    """

    def __init__(self, named: str, rest: str) -> None:
        super().__init__(named + rest)
        self.named = named


def unit_of(text_only: bool) -> str:
    """What a row of a corpus is called."""
    return "text" if text_only else "pair"


@dataclass(frozen=True)
class Corpus:
    """A re-readable stream of sentence pairs.

    Args:
        identity: Changes whenever the text does; caches are filed under it.
        remarks: What was recognised in it, in lines for people.
        incomplete: It is usual that much of it is not translated yet.
        repeats: Some of its pairs are in it several times on purpose.
        text_only: The pairs have no source: each is a text for a language model.
        languages: What its files say of them.
        failed: What is wrong with files of a folder that could not be read, and are not in it.
    """

    name: str
    identity: str
    pairs: Callable[[], Iterator[Pair]]
    quick_count: Callable[[], int] | None = None
    remarks: tuple[str, ...] = ()
    incomplete: bool = False
    repeats: bool = False
    text_only: bool = False
    languages: Languages = ("", "")
    failed: tuple[str, ...] = ()

    @property
    def unit(self) -> str:
        """What one of its rows is called."""
        return unit_of(self.text_only)

    def count(self) -> int:
        """The number of pairs in the stream, blank ones included."""
        return self.quick_count() if self.quick_count else sum(1 for _ in self.pairs())


Format = Callable[[str, DataConfig, str], Corpus]
"""Opens a SPEC of one format. `train`, `dev` or `test` is the split for a SPEC that may mean any of them."""


@dataclass(frozen=True)
class FileSummary:
    """What is known of a file once all of it is read.

    Attributes:
        pairs: How many it has, empty ones included.
        languages: Their codes, as the file names them.
        remark: What was found, in a line for people.
    """

    pairs: int
    languages: Languages
    remark: str


def file_format(
    read: Callable[[Path, DataConfig], Iterator[Pair]],
    count: Callable[[Path, DataConfig], int] | None = None,
    *,
    describe: Callable[[Path, DataConfig], str] | None = None,
    look_through: "Callable[[Path, DataConfig], FileSummary] | None" = None,
    incomplete: bool = False,
) -> Format:
    """A format of one file with both sides in it. Its identity depends on its content and on the names of the columns.

    Args:
        count: A quicker way to the number of pairs than reading them, where there is one.
        describe: Says what was recognised, where a file does not say it itself.
        look_through: Says both, and the languages, after a reading of the whole file.
        incomplete: It is usual that much of such a file is not translated yet.
    """

    def open_file(spec: str, config: DataConfig, split: str) -> Corpus:
        del split
        path, named = Path(spec), filter(None, (config.src_language, config.tgt_language))
        salt = (config.src_column, config.tgt_column, *named)
        quick_count = None if count is None else partial(count, path, config)
        corpus = corpus_of_files(spec, [path], salt, lambda: read(path, config), quick_count, config.encoding)
        remarks = () if describe is None else (describe(path, config),)
        corpus = replace(corpus, remarks=corpus.remarks + remarks, incomplete=incomplete)
        if look_through is None:
            return corpus
        found = _looked_through(look_through, path, stamp_of(path), config.languages)
        return replace(
            corpus,
            quick_count=lambda: found.pairs,
            remarks=(*corpus.remarks, found.remark),
            languages=found.languages,
        )

    return open_file


@lru_cache(maxsize=256)
def _looked_through(
    look_through: "Callable[[Path, DataConfig], FileSummary]", path: Path, stamp: object, languages: Languages
) -> FileSummary:
    """The summary of a file, which is read for it; one that has not changed is not read again."""
    del stamp  # part of the key: a file with another stamp is another file
    return look_through(path, DataConfig(src_language=languages[0], tgt_language=languages[1]))


def corpus_of_files(
    name: str,
    paths: list[Path],
    salt: object,
    pairs: Callable[[], Iterator[Pair]],
    count: Callable[[], int] | None,
    encoding: str,
) -> Corpus:
    """A corpus in files of text: identified, guarded by a `Stamp`, with a remark for each byte-order mark.

    Args:
        salt: Whatever else decides how they are read.
        encoding: What the user says that they are in.
    """
    stamp = Stamp(name, lambda: paths)
    surveys = {path: survey(path, encoding) for path in paths}
    identity = identity_of([surveys[path].sha256 for path in paths], (salt, encoding) if encoding else salt)
    remarks = tuple(
        f"{path}: the byte-order mark before its text is left out"
        if one.marked == "utf-8"
        else f"{path}: in {one.marked.upper()}, as its byte-order mark says"
        for path, one in surveys.items()
        if one.marked
    )
    return Corpus(name, identity, stamp.guard(pairs), count, remarks)


def identity_of(hashes: Iterable[str], salt: object = "") -> str:
    """A hash of what is in files, given by their hashes, and of whatever else decides how they are read."""
    return sha256_bytes(f"{[*hashes]} {salt}".encode())


class Stamp:
    """Recognises files without reading them: size, time and place are taken before a reading and compared after it.

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


def first_line(error: Exception) -> str:
    """The first line of what an error of another library says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
