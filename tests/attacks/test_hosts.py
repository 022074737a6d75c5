"""Several hosts under torchrun, none of which sees the disk of another: network namespaces, each with its own folder.

They need root on Linux, and skip elsewhere.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from helpers.tiny_command import RUN, Settings, command, differences, fingerprint

Tell = Callable[[str], None]
Share = Callable[[int, int], int]

SETTINGS: Settings = {
    "training": {"precision": "fp32", "max_steps": 60, "checkpoint_every": 5, "validate_every": 30, "log_every": 1}
}
PORT = 29611

pytestmark = pytest.mark.timeout(1800)


def ip(*words: object) -> None:
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True)


class Host:
    """A network namespace with a folder. The leader's is the first one; it alone has a configuration and a corpus."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder = number, folder
        self.name, self.wire = f"tfm{os.getpid()}-{number}", f"tfm{number}x{os.getpid() % 100_000}"
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)

    def start(self, name: str, hosts: int, *, processes: int = 1) -> "subprocess.Popen[bytes]":
        """Starts `tfm train` in a folder below its own, in all its processes; what they say is in the file `said`."""
        torchrun = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={hosts}", f"--node-rank={self.number}"]
        place = [f"--nproc-per-node={processes}", "--master-addr=10.77.0.1", f"--master-port={PORT}", "--no-python"]
        train = ["--", sys.executable, "-m", "tfm.cli", "train", "--run", RUN, "--config", "tiny.yaml"]
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        with open(self.folder / "said", "wb") as said:
            return subprocess.Popen(
                ["ip", "netns", "exec", self.name, *torchrun, *place, *train],
                cwd=folder,
                env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(self.temporary)},
                stdout=said,
                stderr=said,
            )

    @property
    def said(self) -> str:
        return (self.folder / "said").read_text()

    def crash(self) -> None:
        """Ends all its processes at once, as a power cut would."""
        found = subprocess.run(["ip", "netns", "pids", self.name], check=True, capture_output=True, text=True)
        for process in found.stdout.split():
            os.kill(int(process), signal.SIGKILL)

    def set_wire(self, state: str) -> None:
        """`down` takes its wire away: no connection is closed, nothing arrives."""
        ip("-n", self.name, "link", "set", self.wire, state)


MakeHosts = Callable[[int], list[Host]]


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[MakeHosts]:
    """Makes hosts, joined by a switch."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("network namespaces need root on Linux")
    switch = f"tfm{os.getpid()}-s"
    with ExitStack() as clean:

        def make(count: int) -> list[Host]:
            try:
                ip("netns", "add", switch)
            except (OSError, subprocess.CalledProcessError):
                pytest.skip("network namespaces cannot be made here")
            clean.callback(ip, "netns", "del", switch)
            ip("-n", switch, "link", "add", "switch", "type", "bridge")
            ip("-n", switch, "link", "set", "switch", "up")
            made = [Host(number, tmp_path / f"host{number}") for number in range(count)]
            for host in made:
                ip("netns", "add", host.name)
                clean.callback(ip, "netns", "del", host.name)
                clean.callback(host.crash)
                ip("link", "add", host.wire, "netns", host.name, "type", "veth", "peer", "port", "netns", switch)
                ip("-n", switch, "link", "set", "port", "name", f"port{host.number}")
                ip("-n", switch, "link", "set", f"port{host.number}", "master", "switch", "up")
                ip("-n", host.name, "link", "set", "lo", "up")
                ip("-n", host.name, "link", "set", host.wire, "up")
                ip("-n", host.name, "addr", "add", f"10.77.0.{host.number + 1}/24", "dev", host.wire)
            return made

        yield make


def train(hosts: list[Host], name: str, corpus: Path, *, processes: int = 1) -> dict[str, str]:
    """Trains to the end on all hosts; what came of it."""
    command(hosts[0].folder / name, corpus, SETTINGS)
    started = [host.start(name, len(hosts), processes=processes) for host in hosts]
    assert [process.wait(600) for process in started] == [0] * len(hosts), "".join(host.said for host in hosts)
    for host in hosts[1:]:
        assert not list((host.folder / name).iterdir()) and not list(host.temporary.glob("tfm-*"))
    return fingerprint(hosts[0].folder / name)


def steps(run: Path) -> int:
    metrics = run / "metrics.jsonl"
    return metrics.read_text().count("\n") if metrics.exists() else 0


def errors(host: Host) -> list[str]:
    return re.findall("^tfm: error: .*", host.said, re.MULTILINE)


def train_until(step: int, hosts: list[Host], name: str) -> "list[subprocess.Popen[bytes]]":
    """Starts a training, and returns when it has made some more updates."""
    run = hosts[0].folder / name / RUN
    started = [host.start(name, len(hosts)) for host in hosts]
    wanted, until = steps(run) + step, time.monotonic() + 300
    while steps(run) < wanted:
        assert started[0].poll() is None and time.monotonic() < until, "".join(host.said for host in hosts)
        time.sleep(0.01)
    return started


def test_a_host_that_dies_is_named_and_the_same_command_goes_on(
    hosts: MakeHosts, corpus_files: Path, share: Share, tell: Tell
) -> None:
    """Two hosts give, though killed, what two processes of one give."""
    both = hosts(2)
    whole = train(both[:1], "one host", corpus_files, processes=2)
    command(both[0].folder / "killed", corpus_files, SETTINGS)
    kills = share(2, 10)
    for number in range(kills):
        started = train_until(random.Random(number).randrange(3, 6), both, "killed")
        victim = 1 - number % 2
        other = both[1 - victim]
        both[victim].crash()
        for process in started:
            process.wait(150)
        assert re.search(r"exitcode *: 5 \(", other.said), other.said
        said = errors(other)
        assert len(said) == 1 and said[0].endswith("run the same command to continue"), other.said
        assert ("rank 1 (on " if victim else "torchrun has ended on the machine of rank 0") in said[0]
    assert not differences(whole, train(both, "killed", corpus_files))
    tell(f"{kills} deaths of one of two hosts: 0 differences")


@pytest.mark.slow
def test_a_wire_that_is_cut_ends_both_hosts(hosts: MakeHosts, corpus_files: Path) -> None:
    both = hosts(2)
    whole = train(both, "whole", corpus_files)
    command(both[0].folder / "cut", corpus_files, SETTINGS)
    started = train_until(7, both, "cut")
    both[1].set_wire("down")
    started[0].wait(400)
    until = time.monotonic() + 400
    while not errors(both[1]) and time.monotonic() < until:
        time.sleep(0.5)
    assert len(errors(both[0])) == 1 and "rank 1 (on " in errors(both[0])[0], both[0].said
    assert re.search(r"exitcode *: 5 \(", both[0].said)
    assert len(errors(both[1])) == 1 and "rank 1 does not reach the machine of rank 0" in errors(both[1])[0]
    for host, process in zip(both, started, strict=True):
        host.crash()
        process.wait(60)
    both[1].set_wire("up")
    assert not differences(whole, train(both, "cut", corpus_files))


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_hosts_give_what_as_many_processes_of_one_give(hosts: MakeHosts, corpus_files: Path, count: int) -> None:
    made = hosts(count)
    assert not differences(
        train(made[:1], "one host", corpus_files, processes=count), train(made, "all hosts", corpus_files)
    )
