"""Devices and precisions, on machines that are made up."""

import ctypes
import os
import platform
import sys
from pathlib import Path

import pytest
import torch

from tfm.engine import device as device_module
from tfm.engine.device import (
    computes_bf16,
    describe_processor,
    keep_freed_memory,
    own_device,
    physical_memory,
    pick_device,
)
from tfm.system.errors import UsageError

CPU, CUDA, MPS = torch.device("cpu"), torch.device("cuda"), torch.device("mps")


def machine(monkeypatch: pytest.MonkeyPatch, *, cuda: bool = False, mps: bool = False, bf16: bool = False) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    emulated_everywhere = {True: True, False: bf16}
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: emulated_everywhere[including_emulation]
    )


def test_auto_takes_cuda_then_mps_then_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, cuda=True, mps=True)
    assert pick_device() == CUDA
    machine(monkeypatch, mps=True)
    assert pick_device() == MPS
    machine(monkeypatch)
    assert pick_device() == CPU


def test_the_device_named_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, cuda=True, mps=True)
    assert [pick_device(name) for name in ("cpu", "cuda", "mps")] == [CPU, CUDA, MPS]


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    machine(monkeypatch)
    with pytest.raises(UsageError, match=f"no {name} device; use --device cpu"):
        pick_device(name)


@pytest.mark.parametrize("name", ["nonsense", "", "cuda:0", "CPU"])
def test_a_device_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="device must be auto, cpu, cuda or mps"):
        pick_device(name)


@pytest.mark.parametrize(("kind", "fast"), [(CUDA, True), (MPS, False), (CPU, False)])
def test_bf16_is_for_gpus_whose_hardware_computes_it(
    monkeypatch: pytest.MonkeyPatch, kind: torch.device, fast: bool
) -> None:
    machine(monkeypatch, cuda=True, mps=True, bf16=True)
    assert computes_bf16(kind) == fast
    machine(monkeypatch, cuda=True, mps=True, bf16=False)
    assert not computes_bf16(kind)


def test_a_processor_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": "A Processor"})
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    assert describe_processor() == "A Processor (AVX2)"
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    assert describe_processor() == f"{platform.machine()} (AVX2)"


def test_memory_is_told_in_bytes_where_the_system_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = physical_memory() or 0
    assert whole > 1 << 28
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(device_module, "CONTAINER_LIMIT", limit)
    for text, expected in ((f"{1 << 27}\n", 1 << 27), ("max\n", None), (f"{1 << 60}\n", None)):
        limit.write_text(text)
        assert physical_memory() == (expected or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    monkeypatch.delattr(os, "sysconf")
    assert physical_memory() is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")
@pytest.mark.parametrize(("variable", "told"), [(None, True), ("MALLOC_MMAP_MAX_", False), ("MALLOC_ARENA_MAX", True)])
def test_malloc_is_told_to_keep_memory_unless_the_user_told_it_something(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, told: bool
) -> None:
    class Libc:
        def __init__(self) -> None:
            self.options: dict[int, int] = {}

        def mallopt(self, option: int, value: int) -> None:
            self.options[option] = value

    libc = Libc()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libc)
    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_"):
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv(variable, "4")
    keep_freed_memory()
    assert bool(libc.options) == told


def test_more_ranks_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setenv("LOCAL_RANK", "0")
    assert own_device("cuda") == torch.device("cuda", 0)
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(UsageError, match="has 1 GPUs; use torchrun --nproc-per-node 1"):
        own_device("cuda")
    assert own_device("cpu") == CPU
