"""Which hardware computes, in which precision, and how the C library is told to treat large arrays."""

import ctypes
import os
import sys

import torch

from ..data.errors import UsageError

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


def pick_precision(name: str, device: torch.device) -> torch.dtype:
    """The dtype of matrix products: `fp32`, `bf16`, or for `auto` bf16 where the hardware multiplies it faster.

    On a CPU that means AVX512-BF16 or AMX instructions; without them bf16 is emulated and slower.

    Raises:
        UsageError: bf16 is asked for where it cannot be computed.
    """
    if device.type == "cuda":
        fast = torch.cuda.is_bf16_supported(including_emulation=False)
    elif device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        fast = bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    else:
        fast = False
    if name == "bf16" and device.type == "cuda" and not fast:
        raise UsageError("this GPU does not compute bf16; use --precision fp32")
    return torch.bfloat16 if name == "bf16" or (name == "auto" and fast) else torch.float32


def describe_precision(dtype: torch.dtype, device: torch.device) -> str:
    """`fp32`, or `bf16` with, on a CPU, the instructions that compute it."""
    if dtype != torch.bfloat16:
        return "fp32"
    names = {"amx_bf16": "AMX", "avx512_bf16": "AVX512-BF16"}
    capabilities = torch.cpu.get_capabilities() if device.type == "cpu" else {}
    instructions = [name for key, name in names.items() if capabilities.get(key)]
    return f"bf16 by {instructions[0]}" if instructions else "bf16"


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
