"""A vocabulary with symbols for placeholders."""

import pytest
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
