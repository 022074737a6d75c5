"""Files of run directories from strangers: nothing waits, nothing is followed, nothing too large is read."""

import json
import os
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from tfm.system.errors import ModelError
from tfm.system.untrusted import check_fields, parse_object, read_plain, refuse_links


def test_a_plain_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abcdef")
    assert read_plain(tmp_path / "a", 6) == b"abcdef"


def test_a_small_file_takes_little_memory_whatever_may_be_allowed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    tracemalloc.start()
    assert read_plain(tmp_path / "a", 10**10) == b"abc"
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_what_is_no_plain_file_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, words in (
        ("link", "is a symbolic link"),
        ("folder", "not a plain file|Is a directory"),
        ("pipe", "is not a plain file"),
        ("absent", "cannot read .*absent: No such file"),
    ):
        with pytest.raises(ModelError, match=words):
            read_plain(tmp_path / name, 100)
    with pytest.raises(ModelError, match="/dev/zero is not a plain file"):
        read_plain(Path("/dev/zero"), 100)


def test_size_is_looked_at_before_content(tmp_path: Path) -> None:
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(ModelError, match=r"larger than such a file can be \(1,000 bytes\)"):
        read_plain(tmp_path / "sparse", 1000)


@pytest.mark.parametrize("content", [b"", b"[]", b"3", b"{", b"\xff", b"[" * 100_000, b'{"a": ' * 100_000])
def test_anything_but_a_json_object_is_refused(content: bytes) -> None:
    with pytest.raises(ModelError, match=r"x\.json is damaged: it is not"):
        parse_object(content, Path("x.json"))


@dataclass
class Fields:
    count: int = 0
    share: float = 0.0
    yes: bool = False
    name: str = ""
    kind: Literal["a", "b"] = "a"
    more: dict[str, Any] | None = None
    each: list[float] | None = None


@pytest.mark.parametrize(
    "content",
    [
        {"count": 3, "share": 1, "yes": True, "name": "Ä", "kind": "b", "more": {}},
        {"share": float("inf"), "more": None},
        {"each": [1.5, 2]},
        {"each": []},
        {},
    ],
)
def test_values_of_the_right_types_pass(content: dict[str, Any]) -> None:
    check_fields(content, Fields, Path("x.json"))


@pytest.mark.parametrize(
    "content",
    [
        {"count": True},
        {"count": 1.0},
        {"count": "1"},
        {"count": 10**30},
        {"count": None},
        {"share": True},
        {"share": "1"},
        {"share": 10**30},
        {"yes": 1},
        {"name": 1},
        {"name": "\x1b[31m"},
        {"name": "x" * 1001},
        {"kind": "c"},
        {"kind": ["a"]},
        {"more": []},
        {"each": 1.0},
        {"each": ["1"]},
        {"each": {}},
        {"other": 1},
        {"\x1b" * 100: 1},
    ],
    ids=lambda content: repr(content)[:40],
)
def test_values_of_other_types_are_refused_in_one_short_line(content: dict[str, Any]) -> None:
    with pytest.raises(ModelError) as caught:
        check_fields(content, Fields, Path("x.json"))
    assert len(str(caught.value)) < 200 and "\n" not in str(caught.value)


def test_links_below_a_directory_are_refused_and_the_directory_itself_may_be_one(tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "checkpoints" / "step-000010").mkdir(parents=True)
    (run / "config.yaml").write_text("")
    (tmp_path / "alias").symlink_to(run)
    refuse_links(tmp_path / "alias")
    refuse_links(tmp_path / "absent")
    for link in (run / "cache", run / "checkpoints" / "x.partial", run / "checkpoints" / "step-000010" / "model.json"):
        link.symlink_to("/")
        with pytest.raises(ModelError, match="is a symbolic link, and nothing outside the run is to be changed"):
            refuse_links(run)
        link.unlink()
    refuse_links(run)


def test_json_of_ours_is_read_back(tmp_path: Path) -> None:
    assert parse_object(json.dumps({"a": [1, {"b": None}]}).encode(), tmp_path) == {"a": [1, {"b": None}]}
