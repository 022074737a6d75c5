"""Which lines are fit to be translated."""

from pathlib import Path

import pytest
from helpers.command import write_lines

from tfm.engine.improve import sources
from tfm.engine.improve.sources import TAGS, fit_lines, open_lines, read_pairs, write_pairs
from tfm.system.errors import DataError


def test_lines_that_bring_nothing_or_must_not_be_seen_are_left_out(tmp_path: Path) -> None:
    lines = [
        "new",
        "",
        "known",
        "  new ",
        "of dev",
        "another",
        f"{TAGS['back']} made",
        "x" * 2000,
        "another",
        "e\u0301",
    ]
    said: list[str] = []
    text = open_lines(write_lines(tmp_path / "text", lines), "")
    assert fit_lines(text, ["known"], ["of  dev"], said.append) == ["new", "another", "\u00e9"]
    for reason in (
        "1 blank",
        "1 among the training pairs",
        "2 there before",
        "1 in the validation set",
        "2 no sentence",
    ):
        assert reason in said[0]


def test_of_a_long_text_a_sample_is_taken_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_LINES", 50)
    text = open_lines(write_lines(tmp_path / "text", [f"{i:04}" for i in range(1000)]), "")
    found = fit_lines(text, [], [], lambda _: None)
    assert len(found) == 50 and found == sorted(found) and found[-1] > "0500"
    assert fit_lines(text, [], [], lambda _: None) == found


def test_a_text_in_another_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("für alle\n".encode("cp1252"))
    assert fit_lines(open_lines(tmp_path / "text", "cp1252"), [], [], lambda _: None) == ["für alle"]
    with pytest.raises(DataError, match="--encoding"):
        fit_lines(open_lines(tmp_path / "text", ""), [], [], lambda _: None)


def test_pairs_come_back_as_they_were_written_once(tmp_path: Path) -> None:
    pairs = [("a\tb", 'c "d"'), (f"{TAGS['back']} e\u2028f", "\x85g")]
    path = tmp_path / "deep" / "pairs.jsonl"
    write_pairs(path, pairs)
    assert read_pairs(path) == pairs
    write_pairs(path, [])
    assert read_pairs(path) == pairs
