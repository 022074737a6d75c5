"""Text alone: pairs whose source is empty, from files and from the toy language."""

from pathlib import Path

import pytest

from tfm.data.config import DataConfig
from tfm.data.corpus import dev_corpus, open_corpus
from tfm.data.formats.text import open_text
from tfm.data.holdout import hold_out
from tfm.data.toy import toy_pairs
from tfm.system.errors import DataError, UsageError


def test_each_line_is_a_text(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("one\n\ntwo three\n", encoding="utf-8")
    opened = open_text(str(tmp_path / "t.txt"), "train", skip_bad=False)
    assert list(opened.pairs()) == [("", "one"), ("", ""), ("", "two three")]
    assert opened.quick_count is not None and opened.quick_count() == 3


def test_bad_lines_are_refused_or_skipped(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"one\n\xff\n")
    with pytest.raises(DataError, match=r"t.txt:2 byte 1: invalid UTF-8"):
        list(open_text(str(tmp_path / "t.txt"), "train", skip_bad=False).pairs())
    assert list(open_text(str(tmp_path / "t.txt"), "train", skip_bad=True).pairs())[1] == ("", "")


def test_toy_is_the_english_side() -> None:
    opened = open_text("toy", "dev", skip_bad=False)
    assert [text for _, text in opened.pairs()] == [english for english, _ in toy_pairs("dev", size=500)]


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        open_text(str(tmp_path / "no.txt"), "train", skip_bad=False)


def test_corpora_of_texts_are_joined_and_held_out_by_their_text(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("".join(f"{name} {i % 50}\n" for i in range(100)), encoding="utf-8")
    corpus = open_corpus(DataConfig(text=[str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]))
    assert corpus.text_only and corpus.count() == 200
    rest, held = hold_out(corpus, seed=1)
    assert rest.text_only and held.text_only
    train, dev = {text for _, text in rest.pairs()}, {text for _, text in held.pairs()}
    assert dev and not train & dev
    assert len(train) + len(dev) == 100


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (DataConfig(text=["toy"], data=["toy"]), "give either --text, for a language model, or pairs"),
        (DataConfig(text=["toy"], dev=["toy"]), "the validation set of a language model is text"),
        (DataConfig(data=["toy"], dev_text=["toy"]), "--dev-text goes with --text"),
    ],
)
def test_text_and_pairs_are_not_mixed(config: DataConfig, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        open_corpus(config)
        dev_corpus(config)
