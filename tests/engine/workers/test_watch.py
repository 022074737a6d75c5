"""Processes that torchrun started say of each other how they ended."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.tiny_run import Configure
from torch import distributed

from tfm.configs import render_config
from tfm.engine.runs.directory import RunDirectory
from tfm.engine.workers import watch as watch_module
from tfm.engine.workers.watch import watched
from tfm.system.errors import EnvironmentFault, Interrupted, InterruptedAtOnce
from tfm.system.interrupts import Interrupts

Join = Callable[[int], watch_module._Watch]


@pytest.fixture
def join(monkeypatch: pytest.MonkeyPatch) -> Iterator[Join]:
    """Three processes, all of them this one, and a store between them."""
    store = distributed.HashStore()  # pyright: ignore[reportPrivateImportUsage]
    monkeypatch.setattr(distributed, "rendezvous", lambda url: iter([(store, 0, 3)]))
    monkeypatch.setattr(watch_module, "_BEAT", 0.02)
    monkeypatch.setattr(watch_module, "_PATIENCE", 0.5)
    watches: list[watch_module._Watch] = []

    def begin(rank: int) -> watch_module._Watch:
        watches.append(watch_module._Watch(rank, 3))
        while not watches[-1]._count_of(rank):
            time.sleep(0.01)
        return watches[-1]

    yield begin
    for watch in watches:
        watch._left.set()
    time.sleep(0.1)


def kill(watch: watch_module._Watch) -> None:
    """No more signs of life, and no farewell."""
    watch._left.set()
    time.sleep(0.1)


def fail(error: BaseException) -> None:
    with watched(0, 3, Interrupts()):
        raise error


@pytest.mark.parametrize("error", [RuntimeError("Connection closed by peer"), Interrupted("interrupted", 15)])
def test_who_has_died_is_said(join: Join, error: BaseException) -> None:
    join(1)
    kill(join(2))
    with pytest.raises(EnvironmentFault, match=r"^rank 2 \(on .+\) has died: .* run the same command to continue$"):
        fail(error)


def test_what_another_has_died_of_is_said(join: Join) -> None:
    join(1).leave("the store is not there")
    join(2)
    with pytest.raises(EnvironmentFault, match=r"^rank 1 \(on .+\) has ended: the store is not there$"):
        fail(RuntimeError("Connection closed by peer"))


def test_a_farewell_that_comes_after_the_connection_has_broken_is_waited_for(join: Join) -> None:
    other = join(1)
    threading.Timer(0.2, other.leave, ["memory was not enough"]).start()
    with pytest.raises(EnvironmentFault, match="has ended: memory was not enough"):
        fail(RuntimeError("Connection closed by peer"))


@pytest.mark.parametrize("error", [RuntimeError("a bug"), Interrupted("interrupted"), InterruptedAtOnce("at once")])
def test_an_error_is_itself_where_all_the_others_live_or_were_sent_home(join: Join, error: BaseException) -> None:
    join(1)
    join(2).leave()
    with pytest.raises(type(error), match=str(error)):
        fail(error)


def test_an_error_is_itself_where_the_others_have_not_come_yet(join: Join) -> None:
    del join
    with pytest.raises(RuntimeError, match="a bug"):
        fail(RuntimeError("a bug"))


def test_only_the_leader_talks_unless_it_has_died(join: Join) -> None:
    leader, me = join(0), join(1)
    kill(join(2))
    assert me.obituary(Interrupted("interrupted")) == ""
    kill(leader)
    assert (me.obituary(RuntimeError("closed")) or "").startswith("rank 0 (on ")


@pytest.mark.parametrize(("rank", "dead", "said"), [(0, 2, True), (1, 0, True), (1, 2, False)])
def test_silence_ends_a_process_that_nothing_else_would_wake_up(
    join: Join, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], rank: int, dead: int, said: bool
) -> None:
    """A machine that has gone closes no connection: the leader looks for all, the others for the leader."""
    codes: list[int] = []

    def leave(code: int) -> None:
        codes.append(code)
        kill(watch)

    monkeypatch.setattr(watch_module, "_SILENCE", 0.3)
    monkeypatch.setattr(os, "_exit", leave)
    watch = join(rank)
    for other in range(3):
        watch._store.set(f"tfm/host/{other}", "there")
    watch._store.add(f"tfm/beats/{dead}", 1)
    for _ in range(50):
        for other in range(3):
            watch._store.add(f"tfm/beats/{other}", 0 if other in (rank, dead) else 1)
        time.sleep(0.02)
    assert codes == ([5] if said else [])
    assert (f"tfm: error: rank {dead} (on there) has died" in capfd.readouterr().err) == said


class Torchrun:
    """`tfm train` in two processes, which write to one file."""

    def __init__(self, folder: Path, configure: Configure, *, steps: int) -> None:
        self.run, self._said = folder / "run", folder / "said"
        config = folder / "config.yaml"
        config.write_text(render_config(configure(max_steps=steps, validate_every=10**6, log_every=1, ranks=None)))
        self._script = folder / "rank.sh"
        self._script.write_text(
            f'[ "$RANK" = 1 ] && cd "$ELSEWHERE"; echo "$$ is $RANK"; exec {sys.executable} -m tfm.cli "$@"\n'
        )
        self._command = [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--no-python"),
            *("--", "sh", str(self._script), "train", "--config", str(config), "--run", "run"),
        ]
        self._folder = folder

    def start(self, *more: str, elsewhere: Path | None = None) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "ELSEWHERE": str(elsewhere or self._folder)}
        with open(self._said, "wb") as said:
            return subprocess.Popen(
                [*self._command, *more], stdout=said, stderr=said, env=environment, cwd=self._folder
            )

    @property
    def said(self) -> str:
        return self._said.read_text()

    def rank(self, number: int) -> int:
        """Its process."""
        return int(next(found[1] for found in re.finditer(r"(\d+) is (\d)", self.said) if found[2] == str(number)))

    def steps(self) -> int:
        metrics = self.run / "metrics.jsonl"
        return metrics.read_text().count("\n") if metrics.exists() else 0


@pytest.mark.timeout(400)
def test_a_rank_of_torchrun_that_is_killed_is_named_and_the_run_goes_on(configure: Configure, tmp_path: Path) -> None:
    torchrun = Torchrun(tmp_path, configure, steps=100_000)
    training = torchrun.start()
    while torchrun.steps() < 6:
        assert training.poll() is None, torchrun.said
        time.sleep(0.02)
    os.kill(torchrun.rank(1), signal.SIGKILL)
    training.wait(100)
    errors = re.findall("tfm: error: .*", torchrun.said)
    assert len(errors) == 1 and re.search(r"rank 1 \(on .*\) has died: .* run the same command", errors[0])
    assert re.search(r"exitcode *: 5 \(", torchrun.said), "that of the leader"
    step = int(RunDirectory(torchrun.run).checkpoints()[-1].name.removeprefix("step-"))
    assert torchrun.start("--max-steps", str(step + 2)).wait(100) == 0, torchrun.said
    assert f"continuing at step {step}" in torchrun.said


def test_a_process_ends_where_the_store_has_gone(
    join: Join, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Nobody else would end it. The leader sees the connections break."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)

    def gone(*_: object) -> int:
        raise RuntimeError("Connection reset by peer")

    watches = [join(0), join(1)]
    for watch in watches:
        monkeypatch.setattr(watch, "_count_of", gone)
        watch._beats.join(5)
    assert codes == [5] and "torchrun has ended on the machine of rank 0" in capfd.readouterr().err
    assert "torchrun has ended" in (watches[0].obituary(RuntimeError("closed")) or "")
    assert watches[0].obituary(Interrupted("interrupted", 15)) is None


def test_a_process_ends_where_a_call_of_the_store_does_not_return(
    join: Join, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    codes: list[int] = []
    back = threading.Event()

    def leave(code: int) -> None:
        codes.append(code)
        kill(watch)
        back.set()

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(watch_module, "_SILENCE", 0.2)
    watch = join(1)
    monkeypatch.setattr(watch, "_count_of", lambda rank: back.wait(10))
    assert back.wait(5)
    assert codes == [5] and "rank 1 does not reach the machine of rank 0" in capfd.readouterr().err


@pytest.mark.timeout(200)
def test_ranks_need_no_shared_folder(configure: Configure, tmp_path: Path) -> None:
    """The leader hands out what the other does not see, and nothing of it is left."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    torchrun = Torchrun(tmp_path, configure, steps=10)
    assert torchrun.start(elsewhere=elsewhere).wait(150) == 0, torchrun.said
    assert not list(elsewhere.iterdir())
    assert RunDirectory(torchrun.run).checkpoints()
