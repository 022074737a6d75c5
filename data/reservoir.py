"""Reservoir sampling: a sample of a stream whose length is not known before its end."""

import random
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Reservoir(Generic[Item]):
    """At most so many items of a stream, each equally likely, the same ones whenever the stream is the same.

    Args:
        size: How many.
        seed: Decides which.

    Attributes:
        kept: Those of the stream so far.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.kept: list[Item] = []
        self._size, self._seen, self._rng = size, 0, random.Random(seed)

    def add(self, item: Item) -> None:
        """Takes the next item of the stream, or leaves it."""
        self._seen += 1
        if len(self.kept) < self._size:
            self.kept.append(item)
        elif (place := self._rng.randrange(self._seen)) < self._size:
            self.kept[place] = item
