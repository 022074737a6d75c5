"""Which hardware computes, in which precision, with how many threads; batches that share the cores of a CPU."""

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import torch

from ..seq2seq.out_of_memory import in_halves
from ..system.errors import UsageError

CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Where Linux tells a container how many bytes it may use."""
_TELL_MALLOC = "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_"
MAX_THREADS = 8
"""Python itself runs on one thread at a time; more threads than these would mostly wait for it."""
Item = TypeVar("Item")
Result = TypeVar("Result")


def pick_device(name: str = "auto") -> torch.device:
    """The device that `--device` names, if it is there; `auto` takes CUDA, then Apple's MPS, then the CPU."""
    available = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available, "cpu": lambda: True}
    if name == "auto":
        name = next(device for device, present in available.items() if present())
    if name not in available:
        raise UsageError(f"device must be auto, cpu, cuda or mps, but is {name!r}")
    if not available[name]():
        raise UsageError(f"this machine or this build of torch has no {name} device; use --device cpu")
    return torch.device(name)


def own_device(name: str) -> torch.device:
    """The device of this rank: of several GPUs in a machine, the one that torchrun gave it."""
    if name != "cuda":
        return torch.device(name)
    index, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if index >= count:
        raise UsageError(f"this machine has {count} GPUs; use torchrun --nproc-per-node {count}")
    return torch.device("cuda", index)


def computes_bf16(device: torch.device) -> bool:
    """Whether a GPU has hardware for bf16; Apple's is taken for one that has none."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def processor_name() -> str:
    """`AMD EPYC`, say, as far as it is known."""
    return torch.cpu.get_capabilities().get("cpu_name") or platform.machine()


def describe_processor() -> str:
    """The processor, and the vector instructions that torch uses on it: `AMD EPYC (AVX512)`."""
    return f"{processor_name()} ({torch.backends.cpu.get_cpu_capability()})"


def describe_precision(dtype: torch.dtype, device: torch.device) -> str:
    """`fp32`, or `bf16` with, on a CPU, the instructions that compute it."""
    if dtype != torch.bfloat16:
        return "fp32"
    names = {"amx_bf16": "AMX", "avx512_bf16": "AVX512-BF16"}
    capabilities = torch.cpu.get_capabilities() if device.type == "cpu" else {}
    instructions = [name for key, name in names.items() if capabilities.get(key)]
    return f"bf16 by {instructions[0]}" if instructions else "bf16"


def physical_memory() -> int | None:
    """Bytes of memory that this machine, or the container in it, has; None where the system does not tell."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    try:
        return min(memory, int(CONTAINER_LIMIT.read_text()))
    except (ValueError, OSError):  # no limit is the word "max"
        return memory


def peak_memory(processes: int) -> int | None:
    """Bytes of memory that this process and those that it has started have needed; None where no system tells.

    Of several `processes` that train alike, what they share is counted once on Linux, and elsewhere in each.
    """
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own, children = (peak if sys.platform == "darwin" else 1024 * peak for peak in peaks)
    now = _memory_of_tree(os.getpid())
    return max(own, children, processes * own if now is None else now)


def _memory_of_tree(pid: int) -> int | None:
    """What a process and its descendants have now, shared pages counted once; None elsewhere than on Linux."""
    total, pending = 0, [Path("/proc") / str(pid)]
    try:
        while pending:
            process = pending.pop()
            for children in (process / "task").glob("*/children"):
                pending += [Path("/proc") / child for child in children.read_text().split()]
            lines = (process / "smaps_rollup").read_text().splitlines()
            total += next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    except (OSError, ValueError, StopIteration):
        return None
    return total


def keep_freed_memory() -> None:
    """Tells glibc to keep freed memory instead of returning it to the kernel.

    By default every large temporary array is mapped from the kernel and faulted in page by page anew at each operation,
    which costs a third of the time of a training step on a CPU, and a tenth of a beam search over many sentences.
    Elsewhere than on glibc, and where the environment already tells it something, this does nothing.
    """
    if not sys.platform.startswith("linux") or any(name in os.environ for name in _TELL_MALLOC):
        return
    m_trim_threshold, m_mmap_max = -1, -4
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(m_mmap_max, 0)  # no array has a mapping of its own, however large
        libc.mallopt(m_trim_threshold, (1 << 31) - 1)
    except (OSError, AttributeError):
        pass


class Stopped(Exception):
    """Another thread has failed, or the user has interrupted: the result is not needed any more."""


def by_length(lengths: Sequence[int], max_tokens: int, *, cores: int = 1, min_tokens: int = 0) -> list[list[int]]:
    """Batches of items of similar length, as their positions.

    The longest come first, so that the largest batch meets the memory limit at once. Lengths are without eos.

    Args:
        max_tokens: Most positions of a batch, eos and padding included. One item may have more.
        cores: This many work on batches at once. If there are several, a batch has at most half of a core's share of
            what is then left. So batches get smaller, and all cores end at about the same time.
        min_tokens: Batches do not get smaller than this.
    """
    batches: list[list[int]] = []
    left, limit = sum(lengths) + len(lengths), max_tokens
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if batches and (len(batches[-1]) + 1) * (lengths[batches[-1][0]] + 1) <= limit:
            batches[-1].append(row)
        else:
            batches.append([row])
            if cores > 1:
                limit = min(max(left // (2 * cores), min_tokens), max_tokens)
        left -= lengths[row] + 1
    return batches


def cores_for_batches(device: torch.device) -> int:
    """How many batches are computed at once.

    On a GPU several threads would only get in each other's way, on MPS fatally.
    """
    return min(torch.get_num_threads(), MAX_THREADS) if device.type == "cpu" else 1


def in_batches(
    device: torch.device,
    function: Callable[[Sequence[Item], Callable[[], None]], Iterable[Result]],
    items: Sequence[Item],
    batches: Sequence[Sequence[int]],
) -> list[Result]:
    """Applies a function to items, batch by batch: on a CPU one on each core, elsewhere one after the other.

    A batch that memory is too small for is computed in halves.

    Args:
        function: Takes items and a check, see `on_all_cores`; gives a result for each item, in order.
        batches: Positions of the items; each is in one batch.
    """

    def work(batch: Sequence[int], check: Callable[[], None]) -> list[Result]:
        return in_halves(lambda rows: function([items[row] for row in rows], check), batch)

    found: dict[int, Result] = {}
    each = on_all_cores(work, batches, cores_for_batches(device))
    for batch, results in zip(batches, each, strict=True):
        found.update(zip(batch, results, strict=True))
    return [found[row] for row in range(len(items))]


def on_all_cores(
    function: Callable[[Item, Callable[[], None]], Result], items: Sequence[Item], cores: int
) -> list[Result]:
    """Applies a function to each item, on as many threads as there are cores for it, each of which computes on one.

    Small tensors gain little from being cut up among cores that then wait for each other; whole batches gain all. While
    torch computes it lets other threads run Python.

    Args:
        function: Takes an item and a check, which is to be called now and then and raises `Stopped` when the result is
            not needed any more.
        items: In the order in which to begin with them; the results are in this order, too.

    Raises:
        BaseException: What a call has raised (of several, the first item's), or an interrupt; the other calls end at
            their next check.
    """
    count = min(cores, len(items))
    if count < 2:
        return [function(item, lambda: None) for item in items]
    stopping = threading.Event()

    def check() -> None:
        if stopping.is_set():
            raise Stopped

    allowed = torch.get_num_threads()
    # The number of threads is a setting of each thread of its own, and the default of those to come.
    pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(1,))
    try:
        return list(pool.map(lambda item: function(item, check), items))
    finally:
        stopping.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(allowed)
