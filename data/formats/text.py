"""Plain text: two files side by side, texts alone for a language model, and the toy language by its name."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from ...system.errors import DataError
from ..config import DataConfig
from ..reading import count_lines, read_lines
from .format import Corpus, Format, Pair, corpus_of_files

TOY = "toy"
TOY_SIZES = {"train": 40_000, "dev": 500, "test": 1_000}


def open_two_files(src: Path, tgt: Path, *, skip_bad: bool) -> Corpus:
    """Opens two files: line n of one is the translation of line n of the other.

    Args:
        skip_bad: Make a pair empty where a side is not UTF-8, instead of raising.
    """
    name = f"{src} and {tgt}"
    return corpus_of_files(name, [src, tgt], skip_bad, lambda: _pairs(src, tgt, skip_bad), lambda: count_lines(src))


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
    """The line from which two files of different lengths seem to be shifted, in words."""
    import numpy as np
    import numpy.typing as npt

    from ..alignment import first_slip  # nobody who reads good files waits for this

    def lengths(path: Path) -> npt.NDArray[np.int32]:
        return np.fromiter((len(line or "") for line in read_lines(path, skip_bad=True)), np.int32)

    slip = first_slip(lengths(src), lengths(tgt))
    return "" if slip is None else f"; the first line that slips is likely to be near {slip + 1:,}"


def open_text(spec: str, split: str, *, skip_bad: bool) -> Corpus:
    """Opens a text file, or the English side of the toy language by the name `toy`.

    Args:
        skip_bad: Make a line empty that is not UTF-8, instead of raising.
    """
    if spec == TOY:
        size = TOY_SIZES[split]
        name, identity = f"the toy language's English ({split})", f"toy-english-{split}-{size}"
        from ..toy import toy_pairs

        corpus = Corpus(name, identity, lambda: _texts(en for en, _ in toy_pairs(split, size=size)), lambda: size)
    else:
        path = Path(spec)
        salt = "text", skip_bad
        corpus = corpus_of_files(
            spec, [path], salt, lambda: _texts(read_lines(path, skip_bad=skip_bad)), lambda: count_lines(path)
        )
    return replace(corpus, text_only=True)


def _texts(lines: Iterable[str | None]) -> Iterator[Pair]:
    return (("", line or "") for line in lines)


def _open_toy(spec: str, config: DataConfig, split: str) -> Corpus:
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


TOY_LANGUAGE = Format(TOY, lambda spec: spec == TOY, _open_toy)
