"""Ranks: the processes that train one model together, each on its share of an update's micro-batches.

All ranks hold the same weights. Each computes gradients of its micro-batches, the gradients are added over all ranks
(torch.distributed), and every rank makes the same update. Rank 0, the leader, is the process that the user started: it
alone prepares data, validates, logs, saves and decides; the others follow.

On a CPU the leader starts the followers itself, as plain child processes on pipes, and divides the cores among all:
several processes of few threads train small models faster than one of many, which wait for each other at every
operation. Under `torchrun` (several GPUs or machines) the processes are there already and join by its environment
variables.
"""

import contextlib
import mmap
import os
import shutil
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, distributed

from ...seq2seq.training.batch import Group
from ...system.errors import EnvironmentFault
from ...system.processes import Child

_FOLDER = "tfm-ranks-"
"""Begins the names of folders for meeting points; the leader's process number follows."""
_PATIENCE = timedelta(days=30)
"""Followers wait while the leader validates, however long that takes; they notice its end in other ways."""
_STOP = -1.0
"""Stands for a learning rate where there is no further update."""
_READY = b"ready\n"
_ANY_PORT = 9
_ADDRESS_OF_INTERFACE = 0x8915 if sys.platform == "linux" else 0xC0206921
"""SIOCGIFADDR, as Linux and as BSD and macOS number it."""

Number = TypeVar("Number", int, float)
Wait = Callable[[], object]
"""Returns when all ranks have called it."""


class SharedMemory:
    """Room for one tensor of each rank of a machine, and for their sum.

    Through the loopback interface every byte is copied several times: for the gradient of a model of 4.6 million
    parameters two processes need 24 ms, in shared memory 6 ms (benchmarks/journal.md).

    The memory belongs to a file without a name, which only Linux has (memfd). The leader makes it and its children
    inherit it, so that nothing is left behind when a process is killed. Elsewhere, and where memory is short, there is
    no room, and ranks use sockets.

    Args:
        file: Number of the open file, for a child; the leader opens one.
    """

    def __init__(self, file: int | None = None) -> None:
        self.file = file
        self._rows: Tensor | None = None  # (ranks + 1, bytes): one row for each rank, the last one for the sum

    def open(self) -> None:
        """Makes the file, without room, if this system has such files."""
        try:
            self.file = os.memfd_create("tfm-ranks")
        except (AttributeError, OSError):
            self.file = None

    def close(self) -> None:
        """Gives the file back; its memory goes when the last process has ended or closed it."""
        if self.file is not None:
            os.close(self.file)
        self.file = self._rows = None

    def reserve(self, ranks: int, size: int) -> bool:
        """Makes room for a tensor of `size` bytes of each rank, if there is any. One rank does that for all."""
        if self.file is None:
            return False
        try:
            os.posix_fallocate(self.file, 0, (ranks + 1) * _padded(size))
        except OSError:  # memory is short
            return False
        return True

    def attach(self, ranks: int, size: int) -> None:
        """Maps the room that one of the ranks has reserved."""
        assert self.file is not None
        room = mmap.mmap(self.file, (ranks + 1) * _padded(size))
        self._rows = torch.frombuffer(room, dtype=torch.uint8).view(ranks + 1, _padded(size))

    def fits(self, tensor: Tensor) -> bool:
        """Whether there is room for a tensor."""
        on_host = tensor.device.type == "cpu" and tensor.is_contiguous()
        return self._rows is not None and on_host and tensor.nbytes <= self._rows.size(1)

    def all_reduce(self, tensor: Tensor, rank: int, wait: Wait) -> None:
        """Replaces a tensor by its sum over all ranks, the same to the last bit in each.

        Each rank lays its tensor down, adds one part up over all ranks, in their order, and picks up the whole sum.
        Nobody writes what another may still read: rows are read between the two waits only, and the next sum is
        written after the next wait. The tensor `fits`, and is of the same shape and type in each rank.
        """
        flat = tensor.view(-1)
        *rows, total = (row[: tensor.nbytes].view(tensor.dtype) for row in self._all_rows())
        rows[rank].copy_(flat)
        wait()
        part = slice(len(flat) * rank // len(rows), len(flat) * (rank + 1) // len(rows))
        total[part] = rows[0][part]
        for row in rows[1:]:
            total[part] += row[part]
        wait()
        flat.copy_(total)

    def all_gather(self, tensor: Tensor, ends: Sequence[int], rank: int, wait: Wait) -> None:
        """Fills in the parts of a flat tensor, which `fits`, that other ranks have computed; see `Ranks.all_gather`."""
        parts = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        rows = [row[: tensor.nbytes].view(tensor.dtype) for row in self._all_rows()]
        rows[rank][parts[rank]] = tensor[parts[rank]]
        wait()
        for other, part in enumerate(parts):
            if other != rank:
                tensor[part] = rows[other][part]
        wait()

    def _all_rows(self) -> Tensor:
        assert self._rows is not None
        return self._rows


def _padded(size: int) -> int:
    """Rows begin at multiples of what a cache line holds."""
    return -(-size // 64) * 64


@dataclass(frozen=True)
class Ranks(Group):
    """This process among the ranks of a run; alone unless said otherwise."""

    rank: int = 0
    count: int = 1
    threads: int | None = None
    """Threads that each rank computes with, where the leader divides the cores; None under torchrun."""
    memory: SharedMemory = field(default_factory=SharedMemory, compare=False, repr=False)
    """Shared by a leader and the followers that it has started. There is no room in it under torchrun."""
    local_rank: int = 0
    """Which of the ranks of its machine it is; known under torchrun alone."""

    def all_reduce(self, tensor: Tensor) -> None:
        """Replaces the tensor by its sum over all ranks."""
        if self.count == 1:
            return
        if self.memory.fits(tensor):
            self.memory.all_reduce(tensor, self.rank, distributed.barrier)
        else:
            distributed.all_reduce(tensor)

    def all_gather(self, tensor: Tensor, ends: Sequence[int]) -> None:
        """Fills in what the other ranks have computed of a flat tensor: their parts, in order, end at `ends`."""
        if self.count == 1:
            return
        if self.memory.fits(tensor):
            self.memory.all_gather(tensor, ends, self.rank, distributed.barrier)
            return
        for rank, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            distributed.broadcast(tensor[start:end], src=rank)

    def share_memory(self, size: int) -> None:
        """Makes room for tensors of `size` bytes in memory that all ranks see, where that is possible."""
        if self.count > 1 and self._broadcast(int(self.rank == 0 and self.memory.reserve(self.count, size))):
            self.memory.attach(self.count, size)

    def send_rate(self, learning_rate: float) -> None:
        """For the leader: lets the followers make one more update, at this learning rate."""
        self._broadcast(learning_rate)

    def stop(self) -> None:
        """For the leader: tells the followers that there is nothing more to do."""
        self._broadcast(_STOP)

    def rates(self) -> Iterator[float]:
        """For a follower: the learning rate of each update that the leader makes."""
        while (learning_rate := self._broadcast(_STOP)) != _STOP:
            yield learning_rate

    def send_home(self) -> None:
        """For the leader of a run that is finished: tells those whom torchrun has started, who wait for its start."""
        if self.count > 1 and self.threads is None:
            with joined(self):
                self.broadcast(b"")

    def broadcast(self, content: bytes = b"") -> bytes:
        """Gives all ranks the bytes that the leader passes. Bytes, for nothing that is read here may run code."""
        size = self._broadcast(len(content))
        if self.count == 1 or size == 0:
            return content
        message = torch.frombuffer(bytearray(content or size), dtype=torch.uint8)  # room for what comes, if empty
        distributed.broadcast(message, src=0)
        return message.numpy().tobytes()

    def _broadcast(self, number: Number) -> Number:
        """Gives all ranks the leader's number; all pass one of the same type."""
        message = torch.tensor([number], dtype=torch.float64 if isinstance(number, float) else torch.int64)
        if self.count > 1:
            distributed.broadcast(message, src=0)
        return type(number)(message.item())

    def all_of(self, here: bool) -> list[bool]:
        """What each rank says; all ask at the same time."""
        said = torch.zeros(self.count, dtype=torch.int64)
        said[self.rank] = int(here)
        self.all_reduce(said)
        return said.bool().tolist()

    @contextlib.contextmanager
    def others_idle(self) -> Iterator[None]:
        """For the leader: inside the block it computes on the cores of all, who wait for it."""
        with using_threads(None if self.threads is None else self.threads * self.count):
            yield


def started_by_torchrun() -> Ranks | None:
    """This process's place among those that torchrun started; None if it was started otherwise."""
    if not distributed.is_torchelastic_launched():
        return None
    rank, count, local_rank = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    return Ranks(rank, count, local_rank=local_rank)


@contextlib.contextmanager
def using_threads(count: int | None) -> Iterator[None]:
    """Inside the block torch computes with `count` threads; None changes nothing."""
    if count is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def joined(ranks: Ranks, follower: str = "") -> Iterator[None]:
    """Joins all ranks for as long as the block lasts; EnvironmentFault if one of them dies.

    The leader of ranks that nobody has started starts them: each runs the module `follower`.
    """
    if ranks.count == 1:
        with using_threads(ranks.threads):
            yield
    elif ranks.threads is None:
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        with _interface_of_gloo(interface_towards(os.environ["MASTER_ADDR"])):
            distributed.init_process_group(backend, timeout=_PATIENCE)
            try:
                yield
            finally:
                distributed.destroy_process_group()
    else:
        with _followers(ranks, follower):
            yield


@contextlib.contextmanager
def _followers(ranks: Ranks, module: str) -> Iterator[None]:
    followers: list[Child] = []
    remove_what_the_killed_left(_FOLDER)
    temporary = tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{os.getpid()}-")
    loopback = {"linux": "lo", "darwin": "lo0"}.get(sys.platform)
    with temporary as folder, _interface_of_gloo(loopback), using_threads(ranks.threads), ExitStack() as children:
        meeting_point = Path(folder) / "store"
        ranks.memory.open()
        children.callback(ranks.memory.close)
        try:
            for rank in range(1, ranks.count):
                follower = _start(module, Ranks(rank, ranks.count, ranks.threads, ranks.memory), meeting_point)
                followers.append(children.enter_context(follower))
            for follower in followers:
                if follower.stdout.readline() != _READY:
                    raise RuntimeError("a follower did not start")
            _meet(ranks, meeting_point)
            yield
        except RuntimeError as error:
            endings = (follower.ended_within(1 / len(followers)) for follower in followers)  # within a second in all
            if (ending := next(filter(None, endings), None)) is None:
                raise
            raise EnvironmentFault(
                f"a training process {ending}; run the same command to continue, with --set training.ranks=1 for one"
                " process"
            ) from error
        finally:
            for follower in followers:
                follower.kill()
            if distributed.is_initialized():
                distributed.destroy_process_group()


def remove_what_the_killed_left(prefix: str) -> None:
    """Removes temporary folders whose name is the prefix and the number of a process of this user that is dead."""
    if os.name != "posix":  # elsewhere nobody can be asked whether a process lives without sending it a signal
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        number = folder.name.removeprefix(prefix).partition("-")[0]
        if number.isdigit() and not folder.is_symlink() and not _is_alive(int(number)):
            shutil.rmtree(folder, ignore_errors=True)  # what belongs to another user stays


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True


def _start(module: str, ranks: Ranks, meeting_point: Path) -> Child:
    """Starts a follower. Its stdin is a pipe that closes when the leader dies; then it ends, too."""
    file = ranks.memory.file
    arguments = ranks.rank, ranks.count, ranks.threads, meeting_point, -1 if file is None else file
    return Child(module, *arguments, purpose="to train in", inherits=() if file is None else (file,))


def _meet(ranks: Ranks, meeting_point: Path) -> None:
    store = distributed.FileStore(str(meeting_point), ranks.count)  # pyright: ignore[reportPrivateImportUsage]
    distributed.init_process_group("gloo", store=store, rank=ranks.rank, world_size=ranks.count, timeout=_PATIENCE)


def interface_towards(host: str) -> str | None:
    """The network interface of this machine that leads to a host; None where the system does not say.

    Gloo takes the address that this machine's name stands for. On many systems that is one of the loopback interface,
    at which no other machine reaches it.
    """
    try:
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((host, _ANY_PORT))  # sends nothing
            own = socket.inet_aton(probe.getsockname()[0])
            for _, name in socket.if_nameindex():
                with contextlib.suppress(OSError):  # it has no address
                    request = struct.pack("256s", os.fsencode(name))
                    if fcntl.ioctl(probe.fileno(), _ADDRESS_OF_INTERFACE, request)[20:24] == own:
                        return name
    except (ImportError, OSError):  # Windows; a host that has no IPv4 address, or no name server
        pass
    return None


@contextlib.contextmanager
def _interface_of_gloo(name: str | None) -> Iterator[None]:
    """Lets ranks talk through an interface, unless the user has named one."""
    key = "GLOO_SOCKET_IFNAME"
    if name is None or key in os.environ:
        yield
        return
    os.environ[key] = name
    try:
        yield
    finally:
        os.environ.pop(key, None)


def started_follower(arguments: list[str]) -> Ranks:
    """For a process that a leader started: joins it, and ends when the leader does, however that ends."""
    rank, count, threads, file = map(int, (*arguments[:3], arguments[4]))

    def end_with_the_leader() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=end_with_the_leader, daemon=True).start()
    ranks = Ranks(rank, count, threads, SharedMemory(None if file < 0 else file))
    torch.set_num_threads(threads)
    sys.stdout.buffer.write(_READY)
    sys.stdout.buffer.flush()
    _meet(ranks, Path(arguments[3]))
    return ranks
