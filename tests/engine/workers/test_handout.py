"""What one process has, the others get: by their own disk if it is there, else in copies."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfm.engine.workers.handout import hand_out, handed_out
from tfm.engine.workers.ranks import Ranks
from tfm.system.errors import EnvironmentFault
from tfm.system.files import sha256_bytes

SCRIPT = """
import json, os, sys
from pathlib import Path
from torch import distributed
from tfm.engine.workers.handout import hand_out, handed_out
from tfm.engine.workers.ranks import Ranks
from tfm.system.files import sha256_file

store, rank, local_rank, folder, *names = sys.argv[1:]
os.chdir(folder)
distributed.init_process_group("gloo", store=distributed.FileStore(store, 3), rank=int(rank), world_size=3)
ranks = Ranks(int(rank), 3, local_rank=int(local_rank))
if rank == "0":
    hand_out(ranks, [Path(name) for name in names])
    ranks.all_of(False)
    print("[]")
else:
    with handed_out(ranks) as found:
        print(json.dumps([[str(path), {file.name: sha256_file(file) for file in path.iterdir()}] for path in found]))
        ranks.all_of(False)  # the one who made copies waits for the others
distributed.destroy_process_group()  # without it gloo's threads abort a process whose peers have left first
"""

CONTENT = {"one": {"a.bin": bytes(range(256)) * 100_000, "empty": b""}, "two": {"b": b"other"}}
"""Of two directories; the first file travels in two parts."""

Found = list[tuple[str, dict[str, str]]]


def write(folder: Path, content: dict[str, dict[str, bytes]]) -> None:
    for name, files in content.items():
        (folder / name).mkdir(parents=True)
        for file, found in files.items():
            (folder / name / file).write_bytes(found)


def run_three(tmp_path: Path, folders: list[Path], local_ranks: list[int]) -> list[Found]:
    """What each of three ranks has found; each in a folder of its own."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, tmp_path / "store", str(rank), str(local_rank), folder, *CONTENT],
            env={**os.environ, "TMPDIR": str(temporary), "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
        )
        for rank, (folder, local_rank) in enumerate(zip(folders, local_ranks, strict=True))
    ]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0]
    assert not list(temporary.iterdir()), "a copy is left behind"
    return [json.loads(one) for one in said]


def check(found: Found) -> None:
    hashes = [{name: sha256_bytes(content) for name, content in files.items()} for files in CONTENT.values()]
    assert [files for _, files in found] == hashes


def test_who_sees_the_files_takes_them_where_they_are_and_the_others_get_copies(tmp_path: Path) -> None:
    """The third has directories of the same name, but with other content."""
    leader, other, third = (tmp_path / name for name in ("leader", "other", "third"))
    write(leader, CONTENT)
    write(other, CONTENT)
    write(third, {**CONTENT, "two": {"b": b"mine"}})
    _, second, last = run_three(tmp_path, [leader, other, third], [0, 0, 0])
    check(second)
    check(last)
    assert [path for path, _ in second] == ["one", "two"]
    assert all("tfm-copies-" in path for path, _ in last)
    assert (third / "two" / "b").read_bytes() == b"mine"


def test_processes_of_one_machine_share_a_copy(tmp_path: Path) -> None:
    leader, other = tmp_path / "leader", tmp_path / "other"
    write(leader, CONTENT)
    other.mkdir()
    _, second, last = run_three(tmp_path, [leader, other, other], [0, 0, 1])
    check(last)
    assert second == last


def test_one_process_hands_nothing_out(tmp_path: Path) -> None:
    hand_out(Ranks(), [tmp_path / "is not there"])


def test_a_copy_that_is_not_what_was_sent_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = iter([json.dumps({"one": {"a": "0" * 64}}).encode(), b"content", b""])
    monkeypatch.setattr(Ranks, "broadcast", lambda self: next(sent))
    monkeypatch.setattr(Ranks, "all_of", lambda self, here: [False, here])
    with pytest.raises(EnvironmentFault, match="is not what the leader has sent"), handed_out(Ranks(1, 2)):
        pass
