"""How an update is divided: it serves the cores there are, and never more processes than it takes."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfm.engine.training.setup import SMALLEST_PART, Division, affordable_ranks, divide, part_overhead

MULTI30K: dict[str, Any] = {"batches": 2, "tokens": 2048, "overhead": 140}


@pytest.mark.parametrize(
    ("cores", "batches", "tokens", "expected"),
    [
        (1, 2, 2048, Division(1, 1, 1)),
        (2, 2, 2048, Division(2, 1, 1)),  # as presets have it: one process for each batch
        (2, 1, 2048, Division(1, 2, 1)),  # not worth a second process
        (4, 2, 2048, Division(4, 1, 2)),
        (8, 2, 2048, Division(8, 1, 4)),
        (16, 2, 2048, Division(8, 2, 4)),
        (4, 6, 4096, Division(4, 1, 2)),  # 12 parts, 3 for each; 6 batches would be 2 for two of them, 1 for the others
        (8, 2, 300, Division(2, 4, 1)),  # too small to be cut
    ],
)
def test_updates_of_presets_on_machines_of_many_sizes(
    cores: int, batches: int, tokens: int, expected: Division
) -> None:
    assert divide(cores, batches=batches, tokens=tokens, overhead=140) == expected


@given(
    cores=st.integers(1, 70), batches=st.integers(1, 8), tokens=st.integers(1, 10_000), overhead=st.floats(0, 10_000)
)
def test_a_division_can_be_computed(cores: int, batches: int, tokens: int, overhead: float) -> None:
    found = divide(cores, batches=batches, tokens=tokens, overhead=overhead)
    assert 1 <= found.ranks <= batches * found.parts, "a process has nothing to do"
    assert found.ranks * found.threads <= cores
    assert found.parts == 1 or tokens // found.parts >= SMALLEST_PART


@given(cores=st.integers(1, 64), ranks=st.integers(1, 16), parts=st.integers(1, 16))
def test_what_is_given_is_taken(cores: int, ranks: int, parts: int) -> None:
    assert divide(cores, **MULTI30K, ranks=ranks).ranks == ranks
    assert divide(cores, **MULTI30K, parts=parts).parts == parts


def test_processes_asked_for_are_given_equal_shares() -> None:
    assert divide(2, **MULTI30K, ranks=4) == Division(4, 1, 2)
    assert divide(1, **MULTI30K, ranks=2) == Division(2, 1, 1)


def test_memory_limits_processes() -> None:
    tiny, base = 2_000_000, 60_000_000
    assert affordable_ranks(None, base) is None
    assert affordable_ranks(8 << 30, tiny) == 5
    assert affordable_ranks(12 << 30, base) == 2
    assert affordable_ranks(1 << 20, base) == 1
    assert divide(8, **MULTI30K, most_ranks=affordable_ranks(8 << 30, tiny)).ranks == 4
    assert divide(8, **MULTI30K, most_ranks=None).ranks == 8


def test_the_calls_of_a_small_model_count_more() -> None:
    assert part_overhead(Counter({(128, 128): 10, (128, 256): 2})) > part_overhead(Counter({(512, 512): 12}))
    assert part_overhead(Counter({(512, 512): 12})) == part_overhead(Counter({(512, 512): 24}))


def test_it_reads_as_words() -> None:
    assert str(Division(1, 2, 1)) == "1 process of 2 threads"
    assert str(Division(8, 1, 4)) == "8 processes of 1 thread, batches in 4 parts"
