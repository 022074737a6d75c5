"""How many cores there are: those of the machine, or what a container gets of them."""

import os
import sys
from pathlib import Path

import pytest

from tfm.cli.startup import set_up_libraries
from tfm.data.encoding import encode_pairs
from tfm.data.tokenizer import Tokenizer
from tfm.system import cores as cores_module
from tfm.system.cores import available_cores


class Linux:
    """A machine of eight cores, and the files by which Linux tells of groups."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.own_groups("0::/\n")
        monkeypatch.setattr(cores_module, "GROUPS", folder / "cgroup")
        monkeypatch.setattr(cores_module, "OWN_GROUPS", folder / "own")
        monkeypatch.setattr(cores_module, "allowed_cores", lambda: 8)
        monkeypatch.setattr("tfm.cli.startup.allowed_cores", lambda: 8)

    def own_groups(self, text: str) -> None:
        (self.folder / "own").write_text(text)

    def write(self, name: str, text: str) -> None:
        path = self.folder / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def old_limit(self, folder: str, quota: int, period: int = 100_000) -> None:
        self.write(f"{folder}/cpu.cfs_quota_us", str(quota))
        self.write(f"{folder}/cpu.cfs_period_us", str(period))


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Linux:
    return Linux(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("limit", "cores"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("50000 100000", 1),
        ("6400000 100000", 8),
        ("25000 50000", 1),
        ("", 8),
        ("100000 0", 8),
        ("many", 8),
    ],
)
def test_the_quota_of_a_container_counts(linux: Linux, limit: str, cores: int) -> None:
    linux.write("cpu.max", limit)
    assert available_cores() == cores


@pytest.mark.parametrize(("quota", "cores"), [(-1, 8), (300_000, 3), (250_000, 3), (0, 8)])
@pytest.mark.parametrize("mounted", ["cpu", "cpu,cpuacct"])
def test_the_first_kind_of_groups_counts_too(linux: Linux, quota: int, cores: int, mounted: str) -> None:
    linux.own_groups("5:memory:/m\n4:cpu,cpuacct:/docker/abc\n")
    linux.old_limit(mounted, quota)
    assert available_cores() == cores


@pytest.mark.parametrize("limited", ["user.slice/mine", "user.slice"])
def test_a_limit_of_a_group_or_of_one_around_it_counts(linux: Linux, limited: str) -> None:
    linux.own_groups("0::/user.slice/mine\n")
    linux.write("cpu.max", "max 100000")
    linux.write(f"{limited}/cpu.max", "400000 100000")
    linux.write("user.slice/other/cpu.max", "100000 100000")
    assert available_cores() == 4


def test_the_smallest_limit_counts(linux: Linux) -> None:
    linux.own_groups("3:cpu:/a/b\n0::/\n")
    linux.old_limit("cpu/a", 500_000)
    linux.old_limit("cpu/a/b", 700_000)
    linux.write("cpu.max", "600000 100000")
    assert available_cores() == 5


def test_without_such_files_the_cores_are_those_that_it_may_run_on(linux: Linux) -> None:
    (linux.folder / "own").unlink()
    assert available_cores() == 8


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
def test_no_more_than_it_may_run_on() -> None:
    assert 1 <= available_cores() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(("own", "threads"), [(None, "3"), ("5", "5")])
def test_torch_computes_with_so_many_threads_unless_the_user_says_how_many(
    linux: Linux, monkeypatch: pytest.MonkeyPatch, own: str | None, threads: str
) -> None:
    for name in ("OMP_NUM_THREADS", "GOMP_SPINCOUNT", "ONEDNN_PRIMITIVE_CACHE_CAPACITY"):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    set_up_libraries()
    assert "OMP_NUM_THREADS" not in os.environ, "nothing is limited"
    if own is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", own)
    linux.write("cpu.max", "300000 100000")
    set_up_libraries()
    assert os.environ["OMP_NUM_THREADS"] == threads


def test_a_corpus_is_encoded_by_so_many_processes(linux: Linux, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def encode_in_children(chunks: object, tokenizer: object, processes: int) -> list[object]:
        del chunks, tokenizer
        asked.append(processes)
        return []

    monkeypatch.setattr("tfm.data.encoding.CHUNKS_ALONE", 1)
    monkeypatch.setattr("tfm.data.encoding._encode_in_children", encode_in_children)
    linux.write("cpu.max", "300000 100000")
    assert list(encode_pairs([("a", "b")], object.__new__(Tokenizer))) == []
    assert asked == [3]
