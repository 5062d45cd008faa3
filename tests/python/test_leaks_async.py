# SPDX-License-Identifier: MIT
"""Guards that measured coroutines and generators leave nothing: no reference, no object, no memory, also where they
fail, are closed, abandoned, or part of a cycle. Fails if a stand-in or what it is around is kept."""

import asyncio
import contextlib
import gc
import os
import sys
import weakref

import codetimer
import measuring
import pytest
from codetimer import measured

fresh = measuring.fresh


class Sentinel: ...


async def coroutine(value, fail=False):
    await asyncio.sleep(0)
    if fail:
        raise ValueError(value)
    return value


def generator(value, fail=False):
    yield value
    if fail:
        raise ValueError(value)
    return value


async def stream(value, fail=False):
    yield value
    if fail:
        raise ValueError(value)


def steps(it, count):
    with contextlib.suppress(StopIteration, StopAsyncIteration, ValueError):
        for _ in range(count):
            it.send(None)


def astep(it, method="asend", *args):
    with contextlib.suppress(StopIteration, StopAsyncIteration, ValueError, KeyError):
        getattr(it, method)(*args).send(None)


def use(functions, value):
    one, two, three = functions
    for fail in (False, True):
        for count in range(4):
            steps(one(value, fail), count) if count else one(value, fail).close()
            steps(one(value, fail).__await__(), 1 + count), steps(two(value, fail), count)
            it = three(value, fail)
            for _ in range(count):
                astep(it, "asend", None)
            astep(it, "athrow", KeyError())
            astep(it, "aclose")
    it = two(value)
    next(it), weakref.ref(it), repr(it), it.gi_frame, it.__class__, hasattr(it, "nothing"), it.close()
    astep(three(value), "__anext__")
    cycle = [two(value)]
    cycle.append(cycle), next(cycle[0])
    with contextlib.suppress(TypeError):
        one()


@pytest.fixture
def functions():
    return [measured(function, name=f"leak.{function.__name__}") for function in (coroutine, generator, stream)]


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_references(functions):
    sentinel = Sentinel()
    kinds = [type(it) for it in (functions[0](1), functions[1](1), functions[2](1), functions[2](1).__anext__())]
    watched = [sentinel, *functions, coroutine, generator, stream, StopIteration, None, *kinds]
    for _ in range(5):
        use(functions, sentinel)
    gc.collect()
    before, objects = [sys.getrefcount(one) for one in watched], len(gc.get_objects())
    rounds = 1000
    for _ in range(rounds):
        use(functions, sentinel)
    gc.collect()
    grown = [now - old for now, old in zip([sys.getrefcount(one) for one in watched], before, strict=True)]
    assert all(abs(more) < rounds / 2 for more in grown), grown  # None wavers by some hundred on its own
    assert len(gc.get_objects()) - objects < 100
    assert [codetimer.counters[f"leak.{fn.__name__}"].in_flight for fn in functions] == [0, 0, 0]


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_memory(functions):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(500):
        use(functions, 1)
    gc.collect()
    before = resident()
    for _ in range(2000):
        use(functions, 1)
    gc.collect()
    assert resident() - before < 2_000_000


def test_collected(functions):
    """The function goes with its last call, and its counter with it, not before."""

    def make():
        @measured(name="leak.gone")
        def gone():
            yield

        return gone, weakref.ref(gone.__wrapped__)

    function, watched = make()
    it = function()
    next(it)
    del function
    gc.collect()
    counter = codetimer.counters["leak.gone"]
    assert counter.in_flight == 1
    it.close()
    del it
    gc.collect()
    assert watched() is None and counter.cancelled == 1


def test_weak_references(functions):
    for make in functions[1], functions[2]:
        it, seen = make(1), []
        watched = weakref.ref(it, seen.append)
        assert watched() is it
        del it
        gc.collect()
        assert watched() is None and seen == [watched]


def test_visited_by_the_collector(functions):
    it = functions[1](1)
    assert gc.is_tracked(it) and functions[1] in gc.get_referents(it)
    assert any(type(one).__name__ == "generator" for one in gc.get_referents(it))


def test_cleared_by_the_collector(functions):
    """A finalizer that gets hold of a stand-in which was cleared sees an error, and no crash."""
    seen = []

    class Late:
        def __init__(self):
            self.it, self.self = functions[1](1), self
            self.step = functions[2](1)

        def __del__(self):
            with contextlib.suppress(StopIteration):
                seen.append(next(self.it))

    Late()
    gc.collect()
    assert seen == [1]


def test_at_the_end_of_the_interpreter(tmp_path):
    source = """
        import codetimer, sys
        @codetimer.measured
        def generator():
            try:
                yield
            finally:
                print("closed")
        @codetimer.measured
        async def coroutine(): ...
        it = generator()
        next(it)
        sys.kept = generator()
        next(sys.kept)
        kept = coroutine()
        kept.close()
    """
    assert set(measuring.run(source, directory=tmp_path)) <= {"closed"}
