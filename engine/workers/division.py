"""How an update is divided: each batch into parts, and the parts among processes."""

from collections import Counter
from dataclasses import dataclass
from itertools import product

SMALLEST_PART = 256
"""Tokens that a part has at least; below, a process spends more time on calls than on numbers."""
_SHARING = 50
"""What it costs to add up the gradients of several processes in shared memory, in tokens; twice that by sockets."""
_OVERHEAD = 5_000_000
"""What the calls around one matrix cost, in multiplications."""
_WAITING = 0.15
"""Share of a thread's time that one more thread costs it: threads wait for each other at every operation."""
_MEMORY = 800_000_000
"""Bytes that a process takes, besides those that grow with the model."""
_BYTES_A_PARAMETER = 26
"""Weight, gradient, two moments, the memory that is shared, and the copies that come and go."""
_GOOD_ENOUGH = 1.1
"""A division may cost so many times the least if it has fewer processes, as each takes memory."""


@dataclass(frozen=True)
class Division:
    """Who computes what of an update.

    Attributes:
        parts: Parts into which each batch is cut.
    """

    ranks: int
    threads: int
    parts: int

    def __str__(self) -> str:
        processes, threads = _counted(self.ranks, "process", "es"), _counted(self.threads, "thread", "s")
        return f"{processes} of {threads}" + (f", batches in {self.parts} parts" if self.parts > 1 else "")


def _counted(number: int, noun: str, plural: str) -> str:
    return f"{number} {noun}{plural if number != 1 else ''}"


def part_overhead(matrices: Counter[tuple[int, int]]) -> float:
    """What a part costs beside its tokens, in tokens: the calls, which are as many for a small part as for a large one.

    Args:
        matrices: How many matrices of each shape (in, out) a model has.
    """
    multiplications = sum(count * rows * columns for (rows, columns), count in matrices.items())
    return _OVERHEAD * matrices.total() / multiplications


def affordable_ranks(memory: int | None, parameters: int) -> int | None:
    """How many processes half of a machine's memory (bytes; None: unknown) has room for; None for any number."""
    return None if memory is None else max(memory // 2 // (_MEMORY + _BYTES_A_PARAMETER * parameters), 1)


def divide(
    cores: int,
    *,
    batches: int,
    tokens: int,
    overhead: float,
    most_ranks: int | None = None,
    ranks: int | None = None,
    parts: int | None = None,
) -> Division:
    """The division that is about as fast as any, with the fewest processes, then the fewest parts.

    An update takes as long as the rank with most parts, which computes one after the other, each with all its threads.
    What costs how much was measured on two cores (benchmarks/README.md); for more it is an estimate.

    Args:
        cores: Threads to give away.
        batches: Batches of an update.
        tokens: Most tokens of a batch.
    """

    def cost(division: tuple[int, int]) -> float:
        ranks, parts = division
        threads = max(cores // ranks, 1)
        most = -(-batches * parts // ranks)  # of one rank, rounded up
        each = tokens / parts * (1 + _WAITING * (threads - 1)) / threads + overhead
        return most * each + (_SHARING if ranks > 1 else 0)

    counts = range(1, min(cores, most_ranks or cores) + 1) if ranks is None else [ranks]
    cuts = range(1, max(tokens // SMALLEST_PART, 1) + 1) if parts is None else [parts]
    candidates = list(product(counts, cuts))
    least = min(map(cost, candidates))
    chosen_ranks, chosen_parts = min(each for each in candidates if cost(each) <= _GOOD_ENOUGH * least)
    return Division(chosen_ranks, max(cores // chosen_ranks, 1), chosen_parts)
