# SPDX-License-Identifier: MIT
"""Guards which callables are measured as coroutine and generator functions, in classes, behind other decorators and as
objects. Fails if one of them is timed by the creation of what it returns."""

import functools
import gc
import inspect

import codetimer
import measuring
import pytest
import suspending
from codetimer import measured
from suspending import drive, only, pause

fresh, measured_anew = measuring.fresh, suspending.measured_anew
waits = generates = streams = None  # measured anew for each test


class Runs:
    async def __call__(self):
        return 7

    async def method(self):
        return await pause()


async def plain():
    return 7


def test_kinds():
    class C:
        @measured
        @staticmethod
        async def static():
            return 1

        @classmethod
        @measured
        async def of_class(cls):
            return cls

        @measured
        @property
        async def prop(self):
            return self

        @measured
        @functools.cached_property
        async def cached(self):
            return self

        async def two(self, a, b):
            return a, b

        part = measured(functools.partialmethod(two, 1))

        @measured
        @functools.singledispatchmethod
        async def dispatch(self, x):
            return "coroutine"

        @dispatch.register
        def _(self, x: int):
            return "plain"

    o = C()
    assert drive(C.static())[1] == 1 and drive(o.static())[1] == 1
    assert drive(C.of_class())[1] is C and drive(o.prop)[1] is o and drive(o.cached)[1] is o
    assert drive(o.part(2))[1] == (1, 2)
    assert drive(o.dispatch("x"))[1] == "coroutine" and o.dispatch(1) == "plain"
    calls = measuring.calls(__name__)
    assert calls == {"C.static": 2, "C.of_class": 1, "C.prop": 1, "C.cached": 1, "C.two": 1, "C.dispatch": 2}


def test_objects():
    cases = {
        "partial": functools.partial(plain),
        "method": Runs().method,
        "object": Runs(),
        "cache": functools.lru_cache(plain),
    }
    for name, value in cases.items():
        made = measured(value, name=f"k.{name}")
        assert drive(made(), None)[0] == "returned"
        assert codetimer.counters[f"k.{name}"].calls == 1


def test_dispatched_calls_that_fail():
    @measured
    @functools.singledispatchmethod
    async def dispatch(self, x): ...

    @dispatch.register
    def _(self, x: int):
        raise ValueError

    kind = type("C", (), {"dispatch": dispatch})
    with pytest.raises(ValueError):
        kind().dispatch(1)
    assert only() == (1, 1, 0, 0)


@pytest.mark.skipif(not hasattr(inspect, "markcoroutinefunction"), reason="inspect.markcoroutinefunction is of 3.12")
def test_marked_as_coroutine_function():
    """Such a function creates a coroutine, as async def does; or something else that can be awaited, which is left."""
    mark = inspect.markcoroutinefunction
    made = measured(mark(lambda: plain()), name="m.coroutine")
    assert inspect.iscoroutinefunction(made)
    assert drive(made())[1] == 7 and codetimer.counters["m.coroutine"].calls == 1

    class Awaitable:
        def __await__(self):
            return iter([])

    other = measured(mark(lambda: Awaitable()), name="m.other")
    assert type(other()) is Awaitable and codetimer.counters["m.other"].calls == 0
    value = measured(mark(lambda: 3), name="m.value")
    assert value() == 3 and codetimer.counters["m.value"].calls == 1


def test_measured_under_two_names():
    inner = measured(waits.__wrapped__, name="two.inner")
    outer = measured(name="two.outer")(functools.wraps(inner)(lambda: inner()))
    twice = measured(inner, name="two.same")
    assert twice is inner and drive(outer(), 1) == ("returned", 1)
    assert codetimer.counters["two.inner"].calls == 1


def test_class():
    @measured
    class C:
        async def a(self):
            return await pause()

        def g(self):
            yield self

        async def s(self):
            yield self

        @property
        def p(self):
            yield 1

        async def __aenter__(self):
            return self

        async def __aexit__(self, *raised): ...

        def __aiter__(self):
            return self

        async def __anext__(self):
            raise StopAsyncIteration

        def m(self): ...

    o = C()

    async def use():
        async with o as same:
            assert same is o and [x async for x in o] == [] and [x async for x in o.s()] == [o]
        return await o.a()

    assert drive(use(), 5) == ("returned", 5) and list(o.g()) == [o] and list(o.p) == [1]
    counts = {"a": 1, "g": 1, "s": 1, "p": 1, "__aenter__": 1, "__aexit__": 1, "__aiter__": 1, "__anext__": 1}
    assert measuring.calls(__name__) == {f"C.{name}": count for name, count in counts.items()}


def test_increments_are_told(caplog):
    import logging

    before = codetimer.trace_increments(True)
    try:
        with caplog.at_level(logging.DEBUG, "codetimer"):
            drive(waits(), 1)
            generator = generates()
            next(generator)
            del generator
            gc.collect()
    finally:
        codetimer.trace_increments(before)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2 and "waits incremented by" in told[0] and "generates incremented by" in told[1]


def test_recursion():
    @measured
    def countdown(n):
        yield n
        if n > 0:
            yield from countdown(n - 1)

    @measured
    async def down(n):
        return await down(n - 1) + 1 if n else 0

    assert list(countdown(50)) == list(range(50, -1, -1)) and drive(down(50)) == ("returned", 50)
    assert {counter.calls for counter in codetimer.counters.values() if counter.calls} == {51}


def test_no_memory():
    """What there is no memory to measure is handed out bare; what the interpreter has none for fails as ever."""
    testcapi = pytest.importorskip("_testcapi", reason="needs _testcapi, which lets allocations fail")
    seen = {}
    for failing in range(8):
        for function in (waits, generates, streams):
            made = None
            try:
                testcapi.set_nomemory(failing, failing + 1)
                made = function()
            except MemoryError:
                pass
            finally:
                testcapi.remove_mem_hooks()
            seen.setdefault(function.__name__, set()).add(type(made).__name__)
            if made is not None and function is not streams:
                made.close()
    assert {"coroutine", "MeasuredCoroutine"} <= seen["waits"] and "generator" in seen["generates"]
    assert "async_generator" in seen["streams"]
    assert list(generates()) == [0, 1, 2]


def test_deep_chain_of_abandoned():
    """Each holds the next; dropping the first must not use up the stack."""

    @measured
    def chain(inner):
        yield
        yield from inner

    made = iter(())
    for _ in range(50_000):
        made = chain(made)
        next(made)
    del made
    gc.collect()
    assert only() == (50_000, 0, 50_000, 0)
