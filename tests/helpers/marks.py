"""Marks of tests that not every system can run, or that the quick suite need not."""

import os
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import pytest

needs_memfd = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no files without a name")


def pairwise(variants: Iterable[dict[str, Any]]) -> list[Any]:
    """Parameters of a test: each choice, and each two choices together, is in a quick variant; the others are slow.

    Args:
        variants: Choices by the name of their setting, often a product of all.
    """
    seen, found = set[Any](), list[Any]()
    for variant in variants:
        chosen = sorted(variant.items())
        new = {*chosen, *combinations(chosen, 2)} - seen
        seen |= new
        found.append(pytest.param(variant, marks=() if new else pytest.mark.slow))
    return found
