# SPDX-License-Identifier: MIT
"""Guards measured functions under trio itself: what it cancels counts as cancelled and what fails as an error, in
whatever task, and their elapsed time holds the active one. Fails if one is counted otherwise, or if trio notices."""

import codetimer
import measuring
import pytest
from codetimer import measured

trio = pytest.importorskip("trio", reason="trio is not installed here")
fresh = measuring.fresh


def outcome(name):
    counter = codetimer.counters[f"trio.{name}"]
    return counter.calls, counter.errors, counter.cancelled, counter.in_flight


def spins():
    for _ in range(20_000):
        pass


@pytest.fixture
def work():
    @measured(name="trio.work")
    async def work(fail=None):
        spins()
        await trio.sleep(0)
        if fail is not None:
            raise fail
        return "done"

    return work


@pytest.fixture
def waits():
    @measured(name="trio.waits")
    async def waits():
        spins()
        await trio.sleep_forever()

    return waits


def test_what_ends_by_itself(work):
    @measured(name="trio.numbers")
    async def numbers():
        for i in range(3):
            await trio.sleep(0)
            yield i

    async def main():
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(work)
        with pytest.raises(ValueError, match="wrong"):
            await work(ValueError("wrong"))
        return await work(), [i async for i in numbers()]

    assert trio.run(main) == ("done", [0, 1, 2])
    assert outcome("work") == (12, 1, 0, 0)
    assert outcome("numbers") == (1, 0, 0, 0)
    counter = codetimer.counters["trio.work"]
    assert counter.total_ns >= counter.active_ns > 0


def test_cancelled_by_its_scope(waits):
    async def main():
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(waits)
                while outcome("waits")[3] < 5:
                    await trio.sleep(0)
                scope.cancel()
        with trio.move_on_after(0):
            await waits()
        return scope.cancelled_caught

    assert trio.run(main)
    assert outcome("waits") == (6, 0, 6, 0)
    counter = codetimer.counters["trio.waits"]
    assert counter.total_ns >= counter.active_ns > 0


def test_cancelled_by_one_that_fails(work, waits):
    @measured(name="trio.nursery")
    async def nursery_of_two():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waits)
            nursery.start_soon(work, ValueError("wrong"))

    async def main():
        with pytest.raises(BaseException) as raised:
            await nursery_of_two()
        return [type(each) for each in raised.value.exceptions]

    assert trio.run(main) == [ValueError]
    assert outcome("waits") == (1, 0, 1, 0)
    assert outcome("work") == (1, 1, 0, 0)
    assert outcome("nursery") == (1, 1, 0, 0)
