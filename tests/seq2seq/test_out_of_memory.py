"""Telling that memory is not enough, and working in halves where it is not."""

import errno
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from tfm.seq2seq.out_of_memory import in_halves, is_out_of_memory

TOO_MUCH = 1 << 60


def raised_by_torch() -> None:
    torch.empty(TOO_MUCH, dtype=torch.uint8)


def raised_by_numpy() -> None:
    np.empty(TOO_MUCH, dtype=np.uint8)


def raised_by_arrow() -> None:
    import pyarrow

    pyarrow.allocate_buffer(TOO_MUCH)


@pytest.mark.parametrize("allocate", [raised_by_torch, raised_by_numpy, raised_by_arrow])
def test_what_libraries_raise_is_recognised(allocate: object) -> None:
    assert callable(allocate)
    with pytest.raises((RuntimeError, MemoryError)) as caught:
        allocate()
    assert is_out_of_memory(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("could not create a primitive"),
        RuntimeError("can't start new thread"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
    ids=str,
)
def test_other_words_for_it_are_known(error: Exception) -> None:
    assert is_out_of_memory(error)


def test_a_library_that_cannot_say_how_it_failed_is_asked_about_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    error = SystemError("error return without exception set")
    assert not is_out_of_memory(error)
    monkeypatch.setattr("tfm.seq2seq.out_of_memory._MUCH", TOO_MUCH)
    assert is_out_of_memory(error)


def test_it_may_be_what_another_error_was_raised_from() -> None:
    error = ImportError("IMPORTANT: PLEASE READ THIS FOR ADVICE ON HOW TO SOLVE THIS ISSUE!")
    error.__cause__ = ImportError("failed to map segment from shared object")
    assert is_out_of_memory(error)


@pytest.mark.parametrize(
    "error",
    [ValueError("out of memory"), RuntimeError("shapes differ"), OSError(errno.ENOSPC, "No space left"), None],
)
def test_other_errors_are_others(error: Exception | None) -> None:
    assert not is_out_of_memory(error)


@pytest.mark.parametrize("room", [1, 2, 3, 5, 8, 100])
def test_work_is_done_in_halves_until_it_fits_and_each_item_once(room: int) -> None:
    def double(items: Sequence[int]) -> list[int]:
        if len(items) > room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [2 * item for item in items]

    assert in_halves(double, range(11)) == [2 * item for item in range(11)]


def test_an_item_that_does_not_fit_alone_is_an_error() -> None:
    def never(items: Sequence[int]) -> list[int]:
        raise MemoryError(str(len(items)))

    with pytest.raises(MemoryError, match="1"):
        in_halves(never, range(4))


def test_another_error_is_not_tried_again() -> None:
    tries: list[int] = []

    def wrong(items: Sequence[int]) -> list[int]:
        tries.append(len(items))
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        in_halves(wrong, range(4))
    assert tries == [4]
