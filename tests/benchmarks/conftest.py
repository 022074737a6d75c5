"""Fixtures for the benchmarks: the tiny configuration."""

from helpers.tiny_run import configure, corpus, pairs

__all__ = ["configure", "corpus", "pairs"]
