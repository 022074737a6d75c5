"""Corpora: put together from the settings, one after another, under an identity that follows their content."""

from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.tables import LANGUAGES

from tfm.data.config import DataConfig
from tfm.data.corpus import dev_corpus, open_corpus, open_spec
from tfm.data.errors import UsageError

Write = Callable[[str, str | bytes], Path]


def test_several_corpora_are_read_one_after_another(write: Write) -> None:
    src = [str(write("a.de", "eins\n")), str(write("b.de", "zwei\ndrei\n"))]
    tgt = [str(write("a.en", "one\n")), str(write("b.en", "two\nthree\n"))]
    corpus = open_corpus(DataConfig(src=src, tgt=tgt))
    assert list(corpus.pairs()) == [("eins", "one"), ("zwei", "two"), ("drei", "three")]
    assert " + " in corpus.name
    tables = [str(write("a.tsv", "vier\tfour\n")), str(write("b.tsv", "fünf\tfive\n"))]
    assert list(open_corpus(DataConfig(data=tables)).pairs()) == [
        ("vier", "four"),
        ("fünf", "five"),
    ]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (DataConfig(), "no training data"),
        (
            DataConfig(src=["a"], tgt=["b"], data=["toy"]),
            "either --src and --tgt, or --data, not both",
        ),
        (DataConfig(src=["a"]), "--src names 1 files and --tgt 0"),
        (DataConfig(data=["corpus.txt"]), "cannot tell the format of corpus.txt"),
        (DataConfig(data=["corpus"]), "for two text files use --src and --tgt"),
        (DataConfig(data=["hf:"]), "names no data set"),
    ],
)
def test_contradictory_settings(config: DataConfig, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        open_corpus(config)


def test_validation_set(write: Write) -> None:
    src, tgt = str(write("dev.de", "eins\n")), str(write("dev.en", "one\n"))
    assert dev_corpus(DataConfig(data=["toy"])) is None
    corpus = dev_corpus(DataConfig(dev_src=[src], dev_tgt=[tgt]))
    assert corpus is not None and list(corpus.pairs()) == [("eins", "one")]
    with pytest.raises(UsageError, match="--dev-src names 1 files and --dev-tgt 0"):
        dev_corpus(DataConfig(dev_src=[src]))
    with pytest.raises(UsageError, match="not both"):
        dev_corpus(DataConfig(dev_src=[src], dev_tgt=[tgt], dev=["toy"]))


def test_identity_follows_the_content(write: Write) -> None:
    src, tgt = write("a.de", "eins\n"), write("a.en", "one\n")

    def identity() -> str:
        return open_corpus(DataConfig(src=[str(src)], tgt=[str(tgt)])).identity

    first = identity()
    assert identity() == first
    write("a.en", "two\n")
    assert identity() != first
    write("a.en", "one\n")
    assert identity() == first


def test_identity_follows_order_and_columns(write: Write) -> None:
    a, b = str(write("a.tsv", "a\tb\n")), str(write("b.tsv", "c\td\n"))
    orders = [open_corpus(DataConfig(data=data)).identity for data in ([a, b], [b, a], [a])]
    assert len(set(orders)) == 3
    assert open_spec(a, DataConfig()).identity != open_spec(a, LANGUAGES).identity
