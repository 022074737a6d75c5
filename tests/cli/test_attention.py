"""`tfm translate --attention`: shares as JSON Lines, pictures beside them."""

import json
from pathlib import Path

import pytest
from helpers.command import Tfm, error_of, write_lines


def test_a_line_and_a_picture_for_each_translation(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "in.txt", ["one two three", "", "five four"])
    flags = ["--run", tiny_run, "--input", "in.txt", "--output", "out.txt"]
    done = tfm("translate", *flags, "--attention", "maps.jsonl")
    assert done.returncode == 0, error_of(done)
    with_maps = (tmp_path / "out.txt").read_bytes()
    assert tfm("translate", *flags).returncode == 0
    assert (tmp_path / "out.txt").read_bytes() == with_maps
    records = [json.loads(line) for line in (tmp_path / "maps.jsonl").read_text("utf-8").splitlines()]
    assert [one["line"] for one in records] == [1, 2, 3]
    assert records[1]["attention"] is None
    for one in (records[0], records[2]):
        assert one["source"][-1] == one["output"][-1] == "</s>"
        for heads in one["attention"].values():
            for head in heads:
                assert len(head) == len(one["output"])
                for row in head:
                    assert len(row) == len(one["source"])
                    assert sum(row) == pytest.approx(1, abs=1e-3)
    assert sorted(path.name for path in (tmp_path / "maps").iterdir()) == ["line-000001.svg", "line-000003.svg"]


def test_what_is_refused(tfm: Tfm, tiny_run: Path, tmp_path: Path) -> None:
    done = tfm("translate", "--run", tiny_run, "one", "--attention", "maps")
    assert done.returncode == 2 and "give the file a suffix, such as maps.jsonl" in error_of(done)
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\none\n", encoding="utf-8")
    done = tfm("translate", "--run", tiny_run, "--input", "a.srt", "-o", "b.srt", "--attention", "maps.jsonl")
    assert done.returncode == 2 and "--attention is for lines" in error_of(done)
