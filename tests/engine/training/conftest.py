"""A run small enough to train in a second."""

from collections.abc import Iterator

import pytest
from helpers.tiny_run import configure, corpus, pairs, recorder, train_tiny

__all__ = ["configure", "corpus", "pairs", "recorder", "train_tiny"]


@pytest.fixture(scope="module", autouse=True)
def quick_picture() -> Iterator[None]:
    """A stand-in for the learning curve: hundreds of trainings would each draw for half a second.

    `test_curve` draws it, and so does each training of the installed command.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfm.engine.runs.log.learning_curve", lambda records, config: b"a picture")
        yield
