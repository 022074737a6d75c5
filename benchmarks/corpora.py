"""The text that the benchmarks run on: Multi30k where it is to be had, else the built-in toy language."""

import argparse
import os
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from common import BenchmarkError, note, stream_lines

Sides = tuple[Path, Path]
"""Two text files, line by line translations of each other."""


@dataclass(frozen=True)
class Files:
    """A corpus as text files.

    Attributes:
        name: For the report.
        train, dev, test: Source and target of each part.
    """

    name: str
    train: Sides
    dev: Sides
    test: Sides


def add_corpus_argument(parser: argparse.ArgumentParser) -> None:
    """`--corpus DIR`."""
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR",
        help="holds train, valid and test2016, each as .en and .de; default: multi30k under $TFM_CORPORA, and without"
        " that the built-in toy language",
    )


def find_corpus(given: Path | None, work: Path) -> Files:
    """The corpus asked for, or the one there is; says which.

    Raises:
        BenchmarkError: The directory given lacks a file.
    """
    folder = corpus_folder(given)
    if folder is None:
        note("Corpus: no --corpus and no TFM_CORPORA, so the built-in toy language; its vocabulary is small.")
        return _toy(work / "tfm-toy")
    parts = [(folder / f"{part}.en", folder / f"{part}.de") for part in ("train", "valid", "test2016")]
    for path in (path for part in parts for path in part):
        if not path.is_file():
            raise BenchmarkError(f"{folder} is not a corpus of the benchmarks: there is no {path.name} in it")
    note(f"Corpus: {folder.name}.")
    return Files(folder.name, *parts)


def corpus_folder(given: Path | None) -> Path | None:
    """The directory asked for, or Multi30k's; None where there is neither."""
    if given is None and "TFM_CORPORA" in os.environ:
        return Path(os.environ["TFM_CORPORA"]) / "multi30k"
    return given


def _toy(folder: Path) -> Files:
    from tfm.data.toy import toy_pairs

    sizes = {"train": 40_000, "dev": 500, "test": 1_000}
    parts = [write_pairs(folder / part, toy_pairs(part, size=size)) for part, size in sizes.items()]
    return Files("the toy language", *parts)


def write_pairs(stem: Path, pairs: Iterable[tuple[str, str]]) -> Sides:
    """Writes pairs to STEM.en and STEM.de."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = stem.with_name(stem.name + ".en"), stem.with_name(stem.name + ".de")
    with open(paths[0], "w", encoding="utf-8") as src, open(paths[1], "w", encoding="utf-8") as tgt:
        for s, t in pairs:
            src.write(s + "\n")
            tgt.write(t + "\n")
    return paths


def head(sides: Sides, stem: Path, lines: int) -> Sides:
    """The first lines of both files, as files of their own.

    Raises:
        BenchmarkError: The files have different numbers of lines, or are not UTF-8.
    """
    pairs = zip(*map(stream_lines, sides), strict=True)
    try:
        written = write_pairs(stem, islice(pairs, lines))
        deque(pairs, maxlen=0)  # reads on to the end, where files of different lengths show
    except ValueError as error:
        raise BenchmarkError(f"{sides[0]} and {sides[1]} have different numbers of lines") from error
    return written
