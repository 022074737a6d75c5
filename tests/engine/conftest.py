"""A vocabulary with symbols for placeholders, and a browser."""

from collections.abc import Iterator
from typing import Any

import pytest
from helpers.chromium import CHROMIUM
from helpers.learned import marked_pairs

from tfm.data.config import TokenizerConfig
from tfm.data.tokenizer import Tokenizer
from tfm.data.vocabulary_training import build_tokenizer


@pytest.fixture(scope="session")
def marked_tokenizer() -> Tokenizer:
    """A vocabulary with symbols for placeholders."""
    tokenizer = build_tokenizer(marked_pairs(), TokenizerConfig(vocab_size=320))
    assert tokenizer.has_placeholders
    return tokenizer


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()
