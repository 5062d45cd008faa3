# SPDX-License-Identifier: MIT
"""Guards what is counted of coroutines and generators: each call once, when it ends and as what it ended; what never
starts never. Fails if a call counts when it is created, twice, or not at all where it is abandoned."""

import asyncio
import contextlib
import gc
import time

import measuring
import pytest
import suspending
from codetimer import measured
from suspending import drive, drive_on, local, only, outcome, pause

fresh, measured_anew = measuring.fresh, suspending.measured_anew
waits = generates = streams = None  # measured anew for each test


# ---- coroutines ----


def test_counts_when_it_ends():
    coroutine = waits()
    assert outcome(waits) == (0, 0, 0, 0)
    assert coroutine.send(None) == "first" and outcome(waits) == (0, 0, 0, 1)
    with pytest.raises(StopIteration) as stop:
        coroutine.send("sent")
    assert stop.value.value == "sent" and outcome(waits) == (1, 0, 0, 0)
    with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
        coroutine.send(None)
    assert outcome(waits) == (1, 0, 0, 0)


def test_never_started():
    coroutine = waits()
    with pytest.warns(RuntimeWarning, match="coroutine 'waits' was never awaited"):
        del coroutine
        gc.collect()
    closed = waits()
    closed.close()
    with pytest.raises(RuntimeError):
        closed.send(None)
    thrown = waits()
    with pytest.raises(ValueError):
        thrown.throw(ValueError)
    with pytest.raises(RuntimeError):
        thrown.send(None)
    wrong = waits()
    with pytest.raises(TypeError, match="can't send non-None value"):
        wrong.send(1)
    assert outcome(waits) == (0, 0, 0, 0)
    assert drive(wrong, 2) == ("returned", 2)
    with pytest.raises(TypeError):
        waits(no=1)
    assert outcome(waits) == (1, 0, 0, 0)


@pytest.mark.parametrize("value", [None, 0, (1, 2), (), ValueError("not raised"), StopIteration(3), [1], "x"])
def test_what_it_returns(value):
    """Also through __next__ and send, where StopIteration would take some values apart."""

    @measured
    async def fn(wait):
        if wait:
            await pause()
        return value

    async def outer():
        return await fn(True), await fn(False)

    assert drive(outer(), None)[1] == (value, value)
    assert drive(fn(True), None)[1] is value and drive(fn(False).__await__())[1] is value
    assert only() == (4, 0, 0, 0)


def test_errors_and_cancellations():
    for kind in (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError):
        with pytest.raises(kind):
            drive(waits(fail=kind()), None)
    assert outcome(waits) == (5, 3, 2, 0)


def test_thrown_and_closed():
    for kind, expected in ((ValueError, (1, 1, 0, 0)), (asyncio.CancelledError, (2, 1, 1, 0))):
        coroutine = waits()
        coroutine.send(None)
        with pytest.raises(kind):
            coroutine.throw(kind())
        assert outcome(waits) == expected
    coroutine = waits()
    coroutine.send(None)
    assert outcome(waits) == (2, 1, 1, 1)
    coroutine.close()
    coroutine.close()
    assert outcome(waits) == (3, 1, 2, 0)
    generator = generates()
    next(generator)
    with pytest.raises(TypeError, match="exceptions must be classes or instances"):
        generator.throw(5)  # nothing has happened
    assert outcome(generates) == (0, 0, 0, 1) and next(generator) == 1


def test_catches_what_is_thrown():
    @measured
    async def fn():
        try:
            await pause(1)
        except ValueError:
            await pause(2)
        except KeyError:
            return "back"
        return "end"

    coroutine = fn()
    coroutine.send(None)
    assert coroutine.throw(ValueError()) == 2 and only() == (0, 0, 0, 1)
    assert drive(coroutine) == ("returned", "end") and only() == (1, 0, 0, 0)
    coroutine = fn()
    coroutine.send(None)
    with pytest.raises(StopIteration, match="back"):
        coroutine.throw(KeyError())
    assert only() == (2, 0, 0, 0)


def test_refuses_to_be_closed():
    """It goes on, and so does its call."""

    @measured
    async def fn():
        for _ in range(3):
            with contextlib.suppress(GeneratorExit):
                await pause()

    coroutine = fn()
    coroutine.send(None)
    with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
        coroutine.close()
    assert only() == (0, 0, 0, 1)
    assert drive(coroutine, None)[0] == "returned" and only() == (1, 0, 0, 0)


def test_fails_in_its_finally():
    @measured
    def fn():
        try:
            yield
        finally:
            raise ValueError

    generator = fn()
    next(generator)
    with pytest.raises(ValueError):
        generator.close()
    assert only() == (1, 1, 0, 0)


def test_abandoned():
    coroutine, generator, stream = waits(), generates(), streams()
    coroutine.send(None), next(generator), stream.asend(None).send(None)
    assert outcome(waits) == outcome(generates) == outcome(streams) == (0, 0, 0, 1)
    del coroutine, generator, stream
    gc.collect()
    assert outcome(waits) == outcome(generates) == outcome(streams) == (1, 0, 1, 0)


def test_abandoned_in_a_cycle():
    class Holder: ...

    for function in (waits, generates):
        holder = Holder()
        holder.it = function()
        holder.it.send(None)
        holder.self = holder
        del holder
    gc.collect()
    assert outcome(waits) == outcome(generates) == (1, 0, 1, 0)


def test_closing_when_abandoned_is_a_slice():
    """What runs when a generator is dropped is part of its call."""

    @measured
    def fn():
        try:
            yield
        finally:
            time.sleep(0.02)

    generator = fn()
    next(generator)
    del generator
    gc.collect()
    counter = local()
    assert counter.cancelled == 1 and counter.active_ns >= 19_000_000


def test_resumed_while_it_runs():
    """The attempt is refused, and is no end of the call."""

    @measured
    def fn():
        with pytest.raises(ValueError, match="already executing"):
            next(generator)
        with pytest.raises(ValueError, match="already executing"):
            generator.throw(KeyError())
        with pytest.raises(ValueError, match="already executing"):
            generator.close()
        yield 1

    generator = fn()
    assert next(generator) == 1 and only() == (0, 0, 0, 1)
    assert list(generator) == [] and only() == (1, 0, 0, 0)


def test_awaited_twice_at_once():
    coroutine = waits()

    async def outer():
        return await coroutine

    first, second = outer(), outer()
    assert first.send(None) == "first"
    with pytest.raises(RuntimeError, match="coroutine is being awaited already"):
        second.send(None)
    assert drive_on(first, "sent") == "sent" and outcome(waits) == (1, 0, 0, 0)


# ---- generators ----


def test_generator():
    assert list(generates()) == [0, 1, 2] and outcome(generates) == (1, 0, 0, 0)
    generator = generates()
    with pytest.raises(TypeError, match="can't send non-None value"):
        generator.send(1)
    assert outcome(generates) == (1, 0, 0, 0)
    assert next(generator) == 0 and generator.send("a") == 1 and generator.send("b") == 2
    with pytest.raises(StopIteration) as stop:
        generator.send("c")
    assert stop.value.value == ["a", "b", "c"] and outcome(generates) == (2, 0, 0, 0)
    assert list(generator) == [] and outcome(generates) == (2, 0, 0, 0)


def test_generator_that_fails_or_is_left():
    with pytest.raises(KeyError):
        list(generates(fail=KeyError()))
    for _ in generates():
        break
    gc.collect()
    assert outcome(generates) == (2, 1, 1, 0)


def test_yield_from():
    def outer():
        return (yield from generates(2))

    generator = outer()
    assert next(generator) == 0 and generator.send("a") == 1
    with pytest.raises(StopIteration) as stop:
        generator.send("b")
    assert stop.value.value == ["a", "b"]
    generator = outer()
    next(generator)
    with pytest.raises(ZeroDivisionError):
        generator.throw(ZeroDivisionError())
    generator = outer()
    next(generator)
    generator.close()
    assert outcome(generates) == (3, 1, 1, 0)


def test_consumers_of_iterators():
    first, *rest = generates()
    assert (first, rest) == (0, [1, 2])
    assert sum(generates()) == 3 and sorted(generates()) == [0, 1, 2] and dict(zip("ab", generates(), strict=False))
    assert [*generates()] == [0, 1, 2] and 2 in generates() and set(generates()) == {0, 1, 2}
    assert next(generates(0), "default") == "default"
    gc.collect()
    calls, errors, cancelled, in_flight = outcome(generates)
    assert (calls, errors, cancelled, in_flight) == (8, 0, 2, 0)  # zip and in do not exhaust it
