"""Fixtures for the benchmarks: the tiny configuration."""

from helpers.tiny_run import configure, corpus, pairs, train_tiny

__all__ = ["configure", "corpus", "pairs", "train_tiny"]
