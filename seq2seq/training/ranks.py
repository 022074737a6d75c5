"""Ranks: the processes that train one model together, each on its share of an update's micro-batches.

All ranks hold the same weights. Each computes gradients of its micro-batches, the gradients are added over all ranks
(torch.distributed), and every rank makes the same update. Rank 0, the leader, is the process that the user started: it
alone prepares data, validates, logs, saves and decides; the others follow.

On a CPU the leader starts the followers itself: several processes of one thread each train small models faster than one
process of several threads, which wait for each other at every operation. Under `torchrun` (several GPUs or machines)
the processes are there already and join by its environment variables.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, distributed

from ...data.errors import EnvironmentFault
from .config import TrainingConfig

_PATIENCE = timedelta(days=30)
"""Followers wait while the leader validates, however long that takes; they notice its end in other ways."""
_STOP = -1


@dataclass(frozen=True)
class Ranks:
    """This process among the ranks of a run; alone unless said otherwise."""

    rank: int = 0
    count: int = 1
    threads: int | None = None
    """Threads that each rank computes with, where the leader chose them."""

    def share(self, micro_batches: range) -> range:
        """Those of an update's micro-batches that are this rank's."""
        return micro_batches[self.rank :: self.count]

    def add_up(self, tensor: Tensor) -> None:
        """Replaces the tensor by its sum over all ranks."""
        if self.count > 1:
            distributed.all_reduce(tensor)

    def go_on(self, max_steps: int | None) -> None:
        """Tells the followers to make one more update, and of how many in all (None: not known yet)."""
        self._tell(max_steps or 0)

    def stop(self) -> None:
        """Tells the followers that there is nothing more to do."""
        self._tell(_STOP)

    def updates(self) -> Iterator[int | None]:
        """For a follower: at each update that the leader asks for, of how many it is in all."""
        while (max_steps := self._tell(_STOP)) != _STOP:
            yield max_steps or None

    def _tell(self, number: int) -> int:
        message = torch.tensor([number])
        if self.count > 1:
            distributed.broadcast(message, src=0)
        return int(message.item())

    def hand_out(self, message: Any = None) -> Any:
        """Gives all ranks what the leader passes."""
        messages = [message]
        if self.count > 1:
            distributed.broadcast_object_list(messages, src=0)
        return messages[0]


def count_ranks(config: TrainingConfig, device: torch.device) -> int:
    """Processes to start: one per core on a CPU, but no more than an update has micro-batches."""
    if device.type != "cpu":
        return 1
    return config.ranks or min(torch.get_num_threads(), config.grad_accum_steps)


@contextlib.contextmanager
def joined_ranks(config: TrainingConfig, device: torch.device, follow: Callable[[Ranks], None]) -> Iterator[Ranks]:
    """Joins the ranks that `torchrun` started, or starts followers, for as long as the block lasts.

    Args:
        config: How many to start.
        device: Where rank 0 computes.
        follow: What a follower does; a module's function, for it is looked up by name in the new process.

    Raises:
        EnvironmentFault: A follower died.
    """
    count = count_ranks(config, device)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        distributed.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
        try:
            yield Ranks(distributed.get_rank(), distributed.get_world_size())
        finally:
            distributed.destroy_process_group()
    elif count == 1:
        yield Ranks()
    else:
        with _started(follow, count, max(torch.get_num_threads() // count, 1)) as ranks:
            yield ranks


@contextlib.contextmanager
def _started(follow: Callable[[Ranks], None], count: int, threads: int) -> Iterator[Ranks]:
    threads_before = torch.get_num_threads()
    with tempfile.TemporaryDirectory(prefix="tfm-ranks-") as folder:
        meeting_point = str(Path(folder) / "store")
        context = multiprocessing.get_context("spawn")
        followers = [
            context.Process(target=_follow, args=(follow, Ranks(rank, count, threads), meeting_point), daemon=True)
            for rank in range(1, count)
        ]
        with _signals_blocked():  # a follower inherits that: Ctrl-C is the leader's to answer
            for follower in followers:
                follower.start()
        try:
            _join(Ranks(0, count, threads), meeting_point)
            yield Ranks(0, count, threads)
        except RuntimeError as error:
            died = connection.wait([follower.sentinel for follower in followers], timeout=1)
            if not died:
                raise
            dead = next(follower for follower in followers if follower.sentinel in died)
            raise EnvironmentFault(_obituary(dead)) from error
        finally:
            if distributed.is_initialized():
                distributed.destroy_process_group()
            for follower in followers:
                follower.join(timeout=1)
                follower.kill()
            torch.set_num_threads(threads_before)


def _obituary(process: BaseProcess) -> str:
    code = process.exitcode or 0
    how = f"was killed by signal {-code} (out of memory?)" if code < 0 else f"ended with exit code {code}"
    return f"a training process {how}; run the same command to continue, with --set training.ranks=1 for one process"


def _follow(follow: Callable[[Ranks], None], ranks: Ranks, meeting_point: str) -> None:
    """The life of a follower."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def die_with_the_leader() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=die_with_the_leader, daemon=True).start()
    _join(ranks, meeting_point)
    try:
        follow(ranks)
    except RuntimeError:
        if parent.is_alive():  # otherwise the connection broke because the leader is gone, and said why
            raise
    finally:
        distributed.destroy_process_group()


def _join(ranks: Ranks, meeting_point: str) -> None:
    torch.set_num_threads(ranks.threads or 1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo0" if sys.platform == "darwin" else "lo")
    store = distributed.FileStore(meeting_point, ranks.count)
    distributed.init_process_group("gloo", store=store, rank=ranks.rank, world_size=ranks.count, timeout=_PATIENCE)


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
