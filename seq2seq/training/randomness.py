"""Counter-based randomness: every random choice of training is seeded by what it is for, never by what came before."""

import hashlib

import torch


def counter_seed(seed: int, purpose: str, *counters: int) -> int:
    """A 63-bit seed that is a function of its arguments alone.

    Args:
        seed: The run's seed.
        purpose: `dropout`, `weights`, ..: keeps the streams of different uses apart.
        counters: For example step and micro-batch.
    """
    text = " ".join([str(seed), purpose, *map(str, counters)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1


def seed_torch(seed: int, purpose: str, *counters: int) -> None:
    """Sets torch's global generators, of all devices, to the state that the counters name."""
    torch.manual_seed(counter_seed(seed, purpose, *counters))
