"""`tfm tokenize`: builds, reports, shows, refuses."""

from pathlib import Path

import pytest
from helpers.command import Tfm, error_of, write_lines

FILES = ["--src", "train.en", "--tgt", "train.de"]


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "word"])
@pytest.mark.parametrize("separate", [False, True])
def test_builds_and_reports(tfm: Tfm, corpus: Path, kind: str, separate: bool) -> None:
    flags = ["--separate"] if separate else []
    done = tfm("tokenize", *FILES, "--type", kind, "--vocab-size", 320, "--output", "vocab", *flags)
    assert done.returncode == 0, error_of(done)
    out = done.stdout.decode()
    assert f"vocabulary: {kind}, {'separate' if separate else 'joint'}" in out
    assert out.count("pieces per word") == 2
    assert "100.00 % of characters covered" in out
    assert out.count("▁") > 4
    names = {path.name for path in (corpus / "vocab").glob("*.model")}
    assert names == ({"src.model", "tgt.model"} if separate else {"tokenizer.model"})


def test_shows_pieces_and_ids_of_a_saved_vocabulary(tfm: Tfm, corpus: Path) -> None:
    assert tfm("tokenize", *FILES, "--type", "word", "--output", "vocab").returncode == 0
    done = tfm("tokenize", "--output", "vocab", "--show", "one two")
    assert done.stdout.decode().splitlines()[0] == "pieces: ▁one ▁two"
    ids = done.stdout.decode().splitlines()[1].removeprefix("ids:").split()
    assert len(ids) == 2
    assert all(int(i) > 3 for i in ids)


def test_a_size_too_large_is_reduced_and_said(tfm: Tfm, corpus: Path) -> None:
    done = tfm("tokenize", *FILES, "--vocab-size", 9000, "--output", "vocab")
    assert done.returncode == 0
    assert "9,000 asked, the corpus supports" in error_of(done)


def test_a_size_too_small_names_the_least(tfm: Tfm, corpus: Path) -> None:
    done = tfm("tokenize", *FILES, "--vocab-size", 50, "--output", "vocab")
    assert done.returncode == 3
    least = int(error_of(done).partition("--vocab-size ")[2].split()[0])
    assert not (corpus / "vocab").exists()
    assert tfm("tokenize", *FILES, "--vocab-size", least, "--output", "vocab").returncode == 0


def test_wrong_use(tfm: Tfm, corpus: Path) -> None:
    write_lines(corpus / "blank.txt", ["", " ", ""])
    (corpus / "taken").mkdir()
    for arguments, code, words in [
        (["--output", "vocab"], 2, "nothing to do"),
        (["--src", "train.em", "--tgt", "train.de", "--output", "v"], 3, "did you mean train.en?"),
        (["--src", "blank.txt", "--tgt", "blank.txt", "--output", "v"], 3, "no usable line"),
        ([*FILES, "--output", "taken"], 2, "exists already"),
        ([*FILES, "--type", "bytes", "--output", "v"], 2, "tokenizer.type"),
        (["--output", "nowhere", "--show", "x"], 4, "not a tokenizer directory"),
    ]:
        done = tfm("tokenize", *arguments)
        assert done.returncode == code, error_of(done)
        assert words in error_of(done)
