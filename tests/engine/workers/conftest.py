"""A run small enough to train in a second."""

from helpers.tiny_run import configure, corpus, pairs, quick_picture, recorder, train_tiny

__all__ = ["configure", "corpus", "pairs", "quick_picture", "recorder", "train_tiny"]
