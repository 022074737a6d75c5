"""Work shared among threads: in order, one core each, and over at the first failure."""

import threading
import time
from collections.abc import Callable, Sequence

import pytest
import torch

from tfm.engine.device import Stopped, in_batches, on_all_cores

Check = Callable[[], None]


@pytest.fixture
def two_threads() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_results_come_in_order_from_threads_of_one_core_and_the_setting_is_put_back() -> None:
    seen: set[tuple[int, int]] = set()

    def work(item: int, check: Check) -> int:
        check()
        seen.add((threading.get_ident(), torch.get_num_threads()))
        time.sleep(0.05 if item == 0 else 0)
        return item * item

    assert on_all_cores(work, range(20), 2) == [i * i for i in range(20)]
    assert len(seen) == 2 and {count for _, count in seen} == {1}
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_a_failure_ends_the_others_at_their_next_check() -> None:
    ended: list[int] = []

    def work(item: int, check: Check) -> int:
        if item == 0:
            raise KeyError("first")
        try:
            while True:
                time.sleep(0.01)
                check()
        except Stopped:
            ended.append(item)
            raise

    with pytest.raises(KeyError, match="first"):
        on_all_cores(work, range(5), 2)
    assert 1 in ended and set(ended) <= {1, 2}, "nobody begins once one has failed, but one may just have"
    assert torch.get_num_threads() == 2


def test_alone_it_is_a_loop() -> None:
    here = threading.get_ident()
    assert on_all_cores(lambda item, check: (item, threading.get_ident()), [1, 2], 1) == [(1, here), (2, here)]


@pytest.mark.usefixtures("two_threads")
def test_only_a_cpu_computes_several_batches_at_once() -> None:
    def work(items: Sequence[int], check: Check) -> list[tuple[int, int]]:
        check()
        return [(item, threading.get_ident()) for item in items]

    here, batches = threading.get_ident(), [[0], [1]]
    assert in_batches(torch.device("cuda"), work, [1, 2], batches) == [(1, here), (2, here)]
    assert all(thread != here for _, thread in in_batches(torch.device("cpu"), work, [1, 2], batches))
