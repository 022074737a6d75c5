"""Shared by the tests of tfm.data: files, corpora in memory, a tokenizer of each kind, `datasets` without a network."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tfm.data.config import TokenizerConfig
from tfm.data.corpus import Corpus, Pair
from tfm.data.tokenizer import Tokenizer
from tfm.data.toy import toy_pairs
from tfm.data.vocabulary_training import build_tokenizer

BuildCorpus = Callable[[list[Pair]], Corpus]


@pytest.fixture(scope="session")
def corpus_of() -> BuildCorpus:
    """A corpus over a list of pairs."""
    return lambda pairs: Corpus("the corpus", f"{hash(tuple(pairs))}", lambda: iter(pairs))


@pytest.fixture(scope="session")
def toy_sentences() -> list[Pair]:
    """Two hundred pairs of the toy language."""
    return list(toy_pairs("train", size=200))


@pytest.fixture(scope="session")
def tokenizers(toy_sentences: list[Pair]) -> dict[str, Tokenizer]:
    """A tokenizer of the toy language of each type, joint and (named `TYPE separate`) with two vocabularies."""
    src, tgt = [pair[0] for pair in toy_sentences], [pair[1] for pair in toy_sentences]
    return {
        f"{kind}{' separate' * separate}": build_tokenizer(
            zip(src, tgt, strict=True), TokenizerConfig(vocab_size=400, type=kind, separate=separate)
        )
        for kind in ("unigram", "bpe", "char", "word")
        for separate in (False, True)
    }


@pytest.fixture(scope="session")
def tokenizer(tokenizers: dict[str, Tokenizer]) -> Tokenizer:
    """A joint unigram tokenizer."""
    return tokenizers["unigram"]


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keeps `datasets` off the network, quiet, and its cache inside the test's directory."""
    import datasets

    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "hf-cache")
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()
