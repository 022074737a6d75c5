"""How large a corpus is."""

from pathlib import Path

from helpers.command import write_lines

from tfm.data.config import DataConfig
from tfm.data.corpus import open_corpus
from tfm.data.size import CorpusSize, measure


def test_letters_are_those_of_the_lines_and_pairs_have_both_sides(tmp_path: Path) -> None:
    write_lines(tmp_path / "src", ["ab a", "", "é"])
    write_lines(tmp_path / "tgt", ["ба", "日本 ", "한!"])
    corpus = open_corpus(DataConfig(src=[str(tmp_path / "src")], tgt=[str(tmp_path / "tgt")]))
    size = measure(corpus)
    assert size == CorpusSize(pairs=2, src_letters=4 + 0 + 1, tgt_letters=2 + 7 + 4, characters=len("ab éба日本한!"))
    assert size.letters == 18
    assert measure(corpus) == size, "it can be read again"


def test_pieces_are_about_a_fourth_of_the_letters() -> None:
    assert CorpusSize(1, 0, 300, 9).tgt_pieces == 75
