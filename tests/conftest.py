"""Fixtures for all tests: no network, no large thread pools, a tiny run to look at."""

import os
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers.command import Completed, Tfm, run_command
from helpers.forkserver import ForkServer

from tfm.cli.startup import set_up_libraries

pytest_plugins = ["helpers.small_run", "helpers.written_files"]

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).parent.parent / ".pytest_cache" / "home")  # not that of whoever tests
# The models of these tests are tiny: threads would spend most of their time waiting for each other, all the more where
# two processes test. A test that needs more threads sets them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
set_up_libraries()  # before torch is loaded, as the command does
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever starts the tests in the background (nohup, &) has them ignore Ctrl-C, and every command that they start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Attacks are made in full where that is asked for."""
    parser.addoption("--at-scale", action="store_true", help="make all attempts of tests/attacks, not a few of them")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Shows what the tests measured."""
    for report in terminalreporter.getreports("passed"):
        for name, figure in report.user_properties:
            if name == "figure" and report.when == "call":
                terminalreporter.write_line(f"{report.nodeid.split('::')[-1]}: {figure}")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """tfm makes no connection unless a data set is asked for by name."""

    def refuse(*_: object) -> None:
        raise AssertionError("a test tried to open a network connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def closed_terminals_count() -> Iterator[None]:
    """SIGHUP is answered in this process, even if the tests were started by nohup, which has it ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def in_tmp_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test runs inside an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Starts commands without waiting for imports."""
    with ForkServer(tmp_path_factory.mktemp("forkserver")) as running:
        yield running


@pytest.fixture(scope="session")
def forked(request: pytest.FixtureRequest) -> Tfm:
    """Runs the command as `run_command` does, without waiting for imports; the fork server needs Linux.

    With `before=`, `module:name` of a function that is called in the process of the command first.
    """
    if sys.platform != "linux":
        return lambda *arguments, before="", **options: run_command(*arguments, **options)
    server: ForkServer = request.getfixturevalue("server")

    def run(
        *arguments: object,
        cwd: Path,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float = 240,
        before: str = "",
    ) -> Completed:
        ended = server.run(*arguments, cwd=cwd, stdin=stdin, env=env, seconds=timeout, before=before)
        return Completed(["tfm", *map(str, arguments)], ended.code, ended.stdout, ended.stderr)

    return run


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The real corpora for slow tests."""
    folder = os.environ.get("TFM_CORPORA")
    if not folder:
        pytest.skip("needs real corpora: set TFM_CORPORA to the folder that holds them")
    return Path(folder)
