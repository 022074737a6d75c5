"""Devices and precisions, on machines that are made up."""

import ctypes
import sys

import pytest
import torch

from tfm.data.errors import UsageError
from tfm.seq2seq.device import keep_freed_memory, own_device, pick_device, pick_precision

CPU, CUDA, MPS = torch.device("cpu"), torch.device("cuda"), torch.device("mps")


def machine(monkeypatch: pytest.MonkeyPatch, *, cuda: bool = False, mps: bool = False, bf16: bool = False) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    emulated_everywhere = {True: True, False: bf16}
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: emulated_everywhere[including_emulation]
    )
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, "amx_bf16": bf16})


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


@pytest.mark.parametrize("device", [CPU, CUDA, MPS])
def test_fp32_is_fp32_everywhere(monkeypatch: pytest.MonkeyPatch, device: torch.device) -> None:
    machine(monkeypatch, bf16=True)
    assert pick_precision("fp32", device) == torch.float32


@pytest.mark.parametrize("device", [CPU, CUDA])
@pytest.mark.parametrize("fast", [True, False])
def test_auto_takes_bf16_where_the_hardware_multiplies_it(
    monkeypatch: pytest.MonkeyPatch, device: torch.device, fast: bool
) -> None:
    machine(monkeypatch, bf16=fast)
    assert pick_precision("auto", device) == (torch.bfloat16 if fast else torch.float32)


def test_auto_on_mps_is_fp32(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, mps=True, bf16=True)
    assert pick_precision("auto", MPS) == torch.float32


@pytest.mark.parametrize("capability", ["avx512_bf16", "amx_bf16"])
def test_either_instruction_set_makes_bf16_fast(monkeypatch: pytest.MonkeyPatch, capability: str) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {capability: True})
    assert pick_precision("auto", CPU) == torch.bfloat16


def test_bf16_may_be_emulated_on_a_cpu_but_not_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch)
    assert pick_precision("bf16", CPU) == torch.bfloat16
    with pytest.raises(UsageError, match="use --precision fp32"):
        pick_precision("bf16", CUDA)
    machine(monkeypatch, bf16=True)
    assert pick_precision("bf16", CUDA) == torch.bfloat16


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
