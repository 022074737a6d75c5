"""Text alone, one line after the other, for a language model: pairs whose source is empty."""

from collections.abc import Iterator
from pathlib import Path

from ..reading import count_lines, read_lines, survey
from ..toy import toy_pairs
from .format import Opened, Pair, Stamp, identity_of, marks
from .toy import TOY, TOY_SIZES


def open_text(spec: str, split: str, *, skip_bad: bool) -> Opened:
    """Opens a text file, or the English side of the toy language by the name `toy`.

    Args:
        skip_bad: Make a line empty that is not UTF-8, instead of raising.
    """
    if spec == TOY:
        size = TOY_SIZES[split]
        name, identity = f"the toy language's English ({split})", f"toy-english-{split}-{size}"
        return Opened(name, identity, lambda: _toy_texts(split, size), lambda: size)
    path = Path(spec)
    stamp = Stamp(spec, lambda: [path])
    identity = identity_of([survey(path).sha256], ("text", skip_bad))
    return Opened(spec, identity, stamp.guard(lambda: _texts(path, skip_bad)), lambda: count_lines(path), marks([path]))


def _toy_texts(split: str, size: int) -> Iterator[Pair]:
    return (("", english) for english, _ in toy_pairs(split, size=size))


def _texts(path: Path, skip_bad: bool) -> Iterator[Pair]:
    return (("", line or "") for line in read_lines(path, skip_bad=skip_bad))
