"""What is doubtful about a training, before it begins."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.tiny_run import Configure, Recorder

from tfm.data.config import TokenizerConfig
from tfm.data.corpus import Corpus
from tfm.data.store import Limits, TokenStore, build_store
from tfm.data.vocabulary_training import build_tokenizer
from tfm.engine.training.prepare import doubts
from tfm.engine.training.train import train
from tfm.seq2seq.training.config import TrainingConfig
from tfm.system.interrupts import Interrupts

Store = Callable[..., TokenStore]
GOOD = [(f"{number} is a number", f"{number} ist eine Zahl") for number in range(1_200)]
SHORT = TrainingConfig(max_steps=100, warmup_steps=10)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Tokenises pairs."""

    def store(pairs: list[tuple[str, str]], *, text_only: bool = False) -> TokenStore:
        tokenizer = build_tokenizer(pairs, TokenizerConfig(type="char"))
        corpus = Corpus("pairs", "1", lambda: iter(pairs), text_only=text_only)
        return build_store(tmp_path / "store", corpus, tokenizer, Limits(100, 9.0))

    return store


def test_there_is_nothing_to_say_of_a_good_corpus(store: Store) -> None:
    assert doubts(store(GOOD), 200, SHORT) == []


def test_few_pairs(store: Store) -> None:
    (doubt,) = doubts(store(GOOD[:300]), 200, SHORT)
    assert doubt.startswith("300 training pairs are very few")
    assert doubts(store([("", tgt) for _, tgt in GOOD[:300]], text_only=True), 200, SHORT) == []


@pytest.mark.parametrize(("count", "named"), [(1, "1 pair:"), (49, "49 pairs:")])
def test_few_validation_pairs(store: Store, count: int, named: str) -> None:
    (doubt,) = doubts(store(GOOD), count, SHORT)
    assert doubt.startswith(f"the validation set has {named}")


def test_identical_sides(store: Store) -> None:
    (doubt,) = doubts(store([(src, src) for src, _ in GOOD[:800]] + GOOD[800:]), 200, SHORT)
    assert doubt == "67% of the training pairs have the same text on both sides; are the files right?"


def test_copies(store: Store) -> None:
    (doubt,) = doubts(store(GOOD[:600] + GOOD[:600]), 200, SHORT)
    assert doubt == "50% of the training pairs are copies of others"


def test_copies_on_purpose_are_none(tmp_path: Path) -> None:
    src, tgt = [src for src, _ in GOOD], [tgt for _, tgt in GOOD]
    tokenizer = build_tokenizer(zip(src, tgt, strict=True), TokenizerConfig(type="char"))
    corpus = Corpus("pairs", "1", lambda: iter(GOOD + GOOD), repeats=True)
    assert doubts(build_store(tmp_path / "store", corpus, tokenizer, Limits(100, 9.0)), 200, SHORT) == []


def test_more_epochs_than_do_good(store: Store) -> None:
    found = store(GOOD)
    tokens = found.report.tgt_tokens + len(found)
    config = TrainingConfig(max_steps=10_000, max_tokens_per_batch=tokens, grad_accum_steps=2)
    (doubt,) = doubts(found, 200, config)
    assert doubt.startswith("10,000 updates show each pair about 20,000 times: the model will know them by heart")
    assert doubts(found, 200, TrainingConfig(max_steps=None, max_time="8h")) == []


def test_they_are_said_once_and_not_again_when_a_run_goes_on(configure: Configure, tmp_path: Path) -> None:
    for steps, times in ((1, 1), (2, 0)):
        reporter = Recorder()
        train(configure(max_steps=steps), run=tmp_path, reporter=reporter, interrupts=Interrupts())
        assert sum("training pairs are very few" in warning for warning in reporter.warned) == times
