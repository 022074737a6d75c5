"""`tfm improve` is killed at any moment: the same command goes on, and ends in the bytes of one that nobody killed."""

import random
import shutil
import signal
from pathlib import Path

import pytest
from helpers.forkserver import ForkServer
from helpers.little_language import IMPROVE, TRAIN, write_language

from tfm.system.files import PARTIAL, sha256_file

from .conftest import Share, Tell

RUNS, KILLS = 10, 10
NOT_COMPARED = {".lock", "timing.jsonl"}
"""Clocks, and what holds a directory."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """At scale the attack is divided, so that two processes have work."""
    if "group" in metafunc.fixturenames:
        metafunc.parametrize("group", range(2 if metafunc.config.getoption("--at-scale") else 1))


@pytest.fixture(scope="module")
def trained(server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that has learned little."""
    folder = tmp_path_factory.mktemp("trained")
    write_language(folder)
    done = server.run(*TRAIN, cwd=folder)
    assert done.code == 0, done.said
    return folder


def fingerprint(folder: Path) -> dict[str, str]:
    files = (path for path in (folder / "r").rglob("*") if path.is_file() and path.name not in NOT_COMPARED)
    return {path.relative_to(folder).as_posix(): sha256_file(path) for path in files}


def test_an_improvement_that_is_killed_again_and_again_is_the_one_that_was_not(
    server: ForkServer, trained: Path, tmp_path: Path, share: Share, tell: Tell, group: int
) -> None:
    command = [*IMPROVE, "--src-text", "text.en"]
    whole = shutil.copytree(trained, tmp_path / "whole")
    done = server.run(*command, cwd=whole)
    assert done.code == 0, done.said
    expected, kills = fingerprint(whole), 0
    assert any("verdict.json" in name for name in expected)
    numbers = range(group, share(1, RUNS), share(1, 2))
    for number in numbers:
        drawn = random.Random(number)
        folder = shutil.copytree(trained, tmp_path / str(number))
        killed, finished = 0, False
        while killed < share(3, KILLS):
            job = server.start(*command, cwd=folder)
            job.ended(done.seconds * drawn.random() * (0.1 if finished else 0.5))
            job.kill(alone=killed % 2 == 0)
            ended = job.wait()
            assert ended.code in (0, -signal.SIGKILL), ended.said
            killed, finished = killed + (ended.code != 0), finished or ended.code == 0
        last = server.run(*command, cwd=folder)
        assert last.code == 0, last.said
        found = fingerprint(folder)
        different = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
        assert not different, (number, different)
        assert not list(folder.rglob(f"*{PARTIAL}"))
        kills += killed
    tell(f"{kills} kills over {len(numbers)} improvements: 0 differences")
