"""Plain text: two files side by side, texts alone for a language model, and the toy language by its name."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from ...system.errors import DataError
from ..config import DataConfig
from ..reading import count_lines, open_bytes, read_lines
from . import suffix_of
from .format import Corpus, Pair, corpus_of_files

TEST_SETS = (".sgm", ".sgml")
"""Suffixes of WMT's test sets: the sources in one file, the references in another, segment by segment."""
TOY = "toy"
TOY_SIZES = {"train": 40_000, "dev": 500, "test": 1_000}


def open_two_files(src: Path, tgt: Path, config: DataConfig) -> Corpus:
    """Opens two files: line n of one is the translation of line n of the other.

    Args:
        config: Says their encoding; with `bad_lines` a pair becomes empty where a side is not in it.
    """
    name, salt = f"{src} and {tgt}", config.bad_lines == "skip"
    return corpus_of_files(
        name, [src, tgt], salt, lambda: _pairs(src, tgt, config), lambda: _count(src, config), config.encoding
    )


def _lines(path: Path, config: DataConfig) -> Iterator[str | None]:
    """The sentences of a file: its lines, or the segments of a test set in SGML."""
    if suffix_of(path) in TEST_SETS:
        return _segments(path, config)
    return read_lines(path, skip_bad=config.bad_lines == "skip", encoding=config.encoding)


def _segments(path: Path, config: DataConfig) -> Iterator[str]:
    """What stands in each `<seg>` of a file of WMT's test sets, entities as their characters."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    with open_bytes(path, encoding=config.encoding) as file:
        found = 0
        for _, segment in etree.iterparse(file, html=True, encoding="utf-8", tag="seg", no_network=True):
            found += 1
            yield " ".join("".join(segment.itertext()).split("\n")).strip()
            segment.clear()
        if not found:
            raise DataError(f"{path} has no <seg>: it is no test set")


def _count(path: Path, config: DataConfig) -> int:
    if suffix_of(path) in TEST_SETS:
        return sum(1 for _ in _segments(path, config))
    return count_lines(path, config.encoding)


def _pairs(src: Path, tgt: Path, config: DataConfig) -> Iterator[Pair]:
    missing = object()
    src_lines, tgt_lines = _lines(src, config), _lines(tgt, config)
    for number, (s, t) in enumerate(zip_longest(src_lines, tgt_lines, fillvalue=missing)):
        if s is missing or t is missing:
            longer = number + 1 + sum(1 for _ in (tgt_lines if s is missing else src_lines))
            counts = (number, longer) if s is missing else (longer, number)
            raise DataError(
                f"{src} has {counts[0]:,} lines and {tgt} {counts[1]:,}; the two files must match line by line"
                f"{_where(src, tgt, config)}"
            )
        yield (s, t) if isinstance(s, str) and isinstance(t, str) else ("", "")


def _where(src: Path, tgt: Path, config: DataConfig) -> str:
    """The line from which two files of different lengths seem to be shifted, in words."""
    import numpy as np
    import numpy.typing as npt

    from ..alignment import first_slip  # nobody who reads good files waits for this

    def lengths(path: Path) -> npt.NDArray[np.int32]:
        lines = _lines(path, replace(config, bad_lines="skip"))
        return np.fromiter((len(line or "") for line in lines), np.int32)

    slip = first_slip(lengths(src), lengths(tgt))
    return "" if slip is None else f"; the first line that slips is likely to be near {slip + 1:,}"


def open_text(spec: str, split: str, config: DataConfig) -> Corpus:
    """Opens a text file, or the English side of the toy language by the name `toy`.

    Args:
        config: Says its encoding; with `bad_lines` a line that is not in it becomes empty.
    """
    if spec == TOY:
        size = TOY_SIZES[split]
        name, identity = f"the toy language's English ({split})", f"toy-english-{split}-{size}"
        from ..toy import toy_pairs

        corpus = Corpus(name, identity, lambda: _texts(en for en, _ in toy_pairs(split, size=size)), lambda: size)
    else:
        path = Path(spec)
        salt = "text", config.bad_lines == "skip"
        corpus = corpus_of_files(
            spec, [path], salt, lambda: _texts(_lines(path, config)), lambda: _count(path, config), config.encoding
        )
    return replace(corpus, text_only=True)


def _texts(lines: Iterable[str | None]) -> Iterator[Pair]:
    return (("", line or "") for line in lines)


def open_toy(spec: str, config: DataConfig, split: str) -> Corpus:
    """Pairs that are made up while they are read. Their identity depends on the split and its size."""
    del spec, config
    from ..toy import toy_pairs

    size = TOY_SIZES[split]
    return Corpus(
        f"the toy language ({split})",
        f"toy-{split}-{size}",
        lambda: toy_pairs(split, size=size),
        lambda: size,
        languages=("en", "de"),
    )
