"""Texts of several requests are translated together, none waits for ever, and none is lost."""

import asyncio
import threading
import time
from collections.abc import Hashable, Iterator
from typing import Any

import pytest

from tfm.engine.serve.gatherer import MOST_TEXTS, Busy, Gatherer
from tfm.engine.translation import Translation


class Upper:
    """Translates to capitals; waits before each batch until it may."""

    def __init__(self) -> None:
        self.batches: list[tuple[list[str], Hashable]] = []
        self.may = threading.Event()
        self.may.set()

    def __call__(self, texts: list[str], search: Hashable) -> list[Translation]:
        self.may.wait(10)
        self.batches.append((texts, search))
        if "bad" in texts:
            raise ValueError("bad text")
        return [Translation(text.upper()) for text in texts]


@pytest.fixture
def upper() -> Upper:
    return Upper()


@pytest.fixture
def gatherer(upper: Upper) -> Iterator[Gatherer]:
    made = Gatherer(upper, wait=0.1, room=400)
    yield made
    upper.may.set()
    made.close()


async def translated(gatherer: Gatherer, *texts: str, search: Hashable = 0, seconds: float = 10) -> list[str]:
    return [one.text for one in await gatherer.translate(texts, search, seconds)]


def test_requests_of_one_moment_are_one_batch_and_each_has_its_own_texts(gatherer: Gatherer, upper: Upper) -> None:
    async def ask() -> list[list[str]]:
        return await asyncio.gather(*(translated(gatherer, f"a{i}", f"b{i}") for i in range(20)))

    assert asyncio.run(ask()) == [[f"A{i}", f"B{i}"] for i in range(20)]
    assert len(upper.batches) == 1


def test_other_searches_are_other_batches(gatherer: Gatherer, upper: Upper) -> None:
    async def ask() -> Any:
        return await asyncio.gather(*(translated(gatherer, f"t{i}", search=i % 2) for i in range(6)))

    assert asyncio.run(ask()) == [[f"T{i}"] for i in range(6)]
    assert [(sorted(texts), search) for texts, search in upper.batches] == [
        (["t0", "t2", "t4"], 0),
        (["t1", "t3", "t5"], 1),
    ]


def test_a_long_request_lets_later_short_ones_through(gatherer: Gatherer, upper: Upper) -> None:
    order: list[str] = []

    async def named(name: str, *texts: str) -> None:
        assert await translated(gatherer, *texts) == [text.upper() for text in texts]
        order.append(name)

    async def ask() -> None:
        upper.may.clear()
        long = asyncio.create_task(named("long", *(f"t{i}" for i in range(3 * MOST_TEXTS))))
        await asyncio.sleep(0.05)
        short = asyncio.create_task(named("short", "x"))
        await asyncio.sleep(0.3)
        upper.may.set()
        await asyncio.gather(long, short)

    asyncio.run(ask())
    assert order == ["short", "long"]
    assert max(len(texts) for texts, _ in upper.batches) == MOST_TEXTS


def test_too_many_texts_are_refused_at_once(gatherer: Gatherer, upper: Upper) -> None:
    async def ask() -> None:
        upper.may.clear()
        waiting = [asyncio.create_task(translated(gatherer, *["t"] * 199)) for _ in range(2)]
        await asyncio.sleep(0.3)  # the first is being translated; its rest and the second wait
        begun = time.monotonic()
        with pytest.raises(Busy):
            await translated(gatherer, *["t"] * 200)
        assert time.monotonic() - begun < 1
        upper.may.set()
        assert await asyncio.gather(*waiting) == [["T"] * 199] * 2

    asyncio.run(ask())


def test_who_waits_too_long_is_told_and_what_is_left_of_it_is_not_done(gatherer: Gatherer, upper: Upper) -> None:
    async def ask() -> None:
        upper.may.clear()
        first = asyncio.create_task(translated(gatherer, "first"))
        await asyncio.sleep(0.3)
        with pytest.raises(TimeoutError):
            await translated(gatherer, "late", seconds=0.2)
        upper.may.set()
        assert await first == ["FIRST"]
        assert await translated(gatherer, "next") == ["NEXT"]

    asyncio.run(ask())
    assert [texts for texts, _ in upper.batches] == [["first"], ["next"]]


def test_an_error_reaches_its_request_and_the_next_one_is_served(gatherer: Gatherer) -> None:
    async def ask() -> None:
        with pytest.raises(ValueError, match="bad text"):
            await translated(gatherer, "bad")
        assert await translated(gatherer, "good") == ["GOOD"]

    asyncio.run(ask())


def test_closing_finishes_what_waits_and_refuses_what_comes(upper: Upper) -> None:
    gatherer = Gatherer(upper, wait=0.1)

    async def ask() -> None:
        waiting = asyncio.create_task(translated(gatherer, "a"))
        await asyncio.sleep(0.01)
        await asyncio.to_thread(gatherer.close)
        assert await waiting == ["A"]
        with pytest.raises(Busy):
            await translated(gatherer, "b")

    asyncio.run(ask())
