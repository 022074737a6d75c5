"""Which hardware computes, in which precision, and how the C library is told to treat large arrays."""

import ctypes
import os
import platform
import sys
from pathlib import Path

import torch

from ..system.errors import UsageError

CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""Where Linux tells a container how many bytes it may use."""
_TELL_MALLOC = "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_"


def pick_device(name: str = "auto") -> torch.device:
    """The device that `--device` names; `auto` takes CUDA, then Apple's MPS, then the CPU.

    Raises:
        UsageError: The device is not there.
    """
    available = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available, "cpu": lambda: True}
    if name == "auto":
        name = next(device for device, present in available.items() if present())
    if name not in available:
        raise UsageError(f"device must be auto, cpu, cuda or mps, but is {name!r}")
    if not available[name]():
        raise UsageError(f"this machine or this build of torch has no {name} device; use --device cpu")
    return torch.device(name)


def own_device(name: str) -> torch.device:
    """The device of this rank: of several GPUs in a machine, the one that torchrun gave it.

    Raises:
        UsageError: There are fewer GPUs than ranks.
    """
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


def peak_memory(processes: int = 1) -> int | None:
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
