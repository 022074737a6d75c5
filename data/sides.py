"""Whether the two sides of a validation set have been swapped. Sides are known by their groups of three letters."""

from collections import Counter
from collections.abc import Iterable, Sequence

from .cleaning import clean
from .placeholders import Pair

SAMPLE = 2_000
"""Pairs that are looked at, from all over a corpus."""
FEWEST_PAIRS, FEWEST_GROUPS = 10, 300
"""Of a side; fewer say too little."""
CLEARLY = 1.5
"""So many times closer to the other side of the training data has each side of a validation set to be."""


def sample_rows(count: int) -> range:
    """Rows of a corpus, evenly from all over it, few enough to be looked at."""
    return range(0, count, max(-(-count // SAMPLE), 1))


def swap_remark(train: Iterable[Pair], dev: Sequence[Pair]) -> str | None:
    """What to say of a validation set whose sources are in the language of the targets, and the other way round.

    Nothing is said where both sides are written alike, as in copies, nor of one side alone.
    """
    dev = [dev[row] for row in sample_rows(len(dev))]
    train_sides, dev_sides = _groups(train), _groups(dev)
    if len(dev) < FEWEST_PAIRS or min(side.total() for side in (*train_sides, *dev_sides)) < FEWEST_GROUPS:
        return None
    for side in (0, 1):
        own = _overlap(dev_sides[side], train_sides[side])
        if _overlap(dev_sides[side], train_sides[1 - side]) <= max(CLEARLY * own, 0.1):
            return None
    return (
        "the sides of the validation set seem to be swapped: its sources look like the targets of the training data,"
        " and its targets like the sources; name its files, or columns, the other way round"
    )


def _groups(pairs: Iterable[Pair]) -> tuple[Counter[str], Counter[str]]:
    """How often each group of three characters is found in the sources, and in the targets."""
    sides = Counter[str](), Counter[str]()
    for pair in pairs:
        for found, text in zip(sides, pair, strict=True):
            padded = f" {clean(text).lower()} "
            found.update(padded[i : i + 3] for i in range(len(padded) - 2))
    return sides


def _overlap(one: Counter[str], other: Counter[str]) -> float:
    """The share that two distributions have in common: 0 of nothing, 1 of all."""
    size, other_size = one.total(), other.total()
    return sum(min(count / size, other[group] / other_size) for group, count in one.items())
