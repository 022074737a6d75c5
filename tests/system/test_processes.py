"""Child processes: they run our modules and no files that lie about, end with their block, and leave an obituary."""

import base64
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tfm.system.errors import EnvironmentFault
from tfm.system.processes import Child, Ending

ECHO = ("base64", "-e")
"""A module that reads its stdin to the end, and the argument with which it writes it in another spelling."""


def pid_of(child: Child) -> int:
    return child._process.pid


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_child_reads_and_writes_pipes() -> None:
    with Child(*ECHO, purpose="to test in") as child:
        assert child.ended_within(0.01) is None
        child.stdin.write(b"some words")
        child.stdin.close()
        assert base64.b64decode(child.stdout.read()) == b"some words"
        assert child.wait() == Ending(0, "")


def test_a_child_reads_a_file() -> None:
    with tempfile.TemporaryFile() as stdin:
        stdin.write(b"some words" * 100_000)
        stdin.seek(0)
        with Child(*ECHO, purpose="to test in", stdin=stdin) as child:
            assert base64.b64decode(child.output()) == b"some words" * 100_000


@pytest.mark.parametrize("own_session", [True, False])
def test_the_terminal_reaches_only_a_child_that_reads_a_file(own_session: bool) -> None:
    with tempfile.TemporaryFile() as empty, Child(*ECHO, purpose="", stdin=None if own_session else empty) as child:
        assert (os.getsid(pid_of(child)) != os.getsid(0)) == own_session


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_child_is_killed_at_the_end_of_its_block(interrupted: bool) -> None:
    with suppress(KeyboardInterrupt), Child(*ECHO, purpose="to test in") as child:
        if interrupted:
            raise KeyboardInterrupt
    assert child._process.returncode == -signal.SIGKILL
    assert child.stdin.closed and child.stdout.closed


def test_files_of_the_current_directory_are_no_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "base64.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    with Child(*ECHO, purpose="to test in") as child:
        child.stdin.close()
        assert child.wait().status == 0


def test_a_child_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(EnvironmentFault, match=r"cannot start a process to test in: No such file or directory"):
        Child(*ECHO, purpose="to test in")


def test_a_temporary_directory_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(EnvironmentFault, match=r"cannot write .*none: No such file or directory"):
        Child(*ECHO, purpose="to test in")


def test_the_obituary_of_one_that_failed_is_its_last_line() -> None:
    with Child("base64", "--no-such-option", purpose="to test in") as child:
        ending = child.wait()
    assert ending.complaints.count("\n") > 1, "all that it said is kept"
    assert str(ending).startswith(f"ended with exit code 2: {ending.complaints.splitlines()[-1]}")
    assert str(Ending(3, "")) == "ended with exit code 3"


def test_the_obituary_of_one_that_was_killed_is_the_signal() -> None:
    with Child(*ECHO, purpose="to test in") as child:
        os.kill(pid_of(child), signal.SIGTERM)
        ending = child.ended_within(60)
    assert ending is not None and ending.status == -signal.SIGTERM
    assert str(ending) == "was killed by signal 15 (out of memory?)"


def test_complaints_never_stop_a_child() -> None:
    """More of them than a pipe holds."""
    with Child("timeit", "-n1", "-r1", "import sys; sys.stderr.write('x' * 1_000_000)", purpose="to test in") as child:
        child.output()
        assert child.wait().complaints == "x" * 1_000_000


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_a_child_ends_with_a_killed_parent() -> None:
    script = (
        "from tfm.system.processes import Child\n"
        f"with Child(*{ECHO!r}, purpose='to test in') as child:\n"
        "    print(child._process.pid, flush=True); child.stdout.read()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert runs(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 60
    while runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.02)
