# SPDX-License-Identifier: MIT
"""Guards what is counted of async generators, whose calls go on in steps: each once, when it ends and as what it ended.
Fails if a step counts as a call, or if what is thrown into a step ends no call."""

import asyncio
import gc

import measuring
import pytest
import suspending
from codetimer import measured
from suspending import collect, drive, drive_on, only, outcome

fresh, measured_anew = measuring.fresh, suspending.measured_anew
waits = streams = None  # measured anew for each test


def test_async_generator():
    assert collect(streams()) == [0, 1, 2] and outcome(streams) == (1, 0, 0, 0)
    with pytest.raises(KeyError):
        collect(streams(fail=KeyError()))
    with pytest.raises(asyncio.CancelledError):
        collect(streams(fail=asyncio.CancelledError()))
    assert outcome(streams) == (3, 1, 1, 0)
    ended = streams(0)
    assert collect(ended) == collect(ended) == [] and outcome(streams) == (4, 1, 1, 0)


def test_async_generator_never_started():
    stream = streams()
    step = stream.asend(5)
    with pytest.raises(TypeError, match="can't send non-None value"):
        step.send(None)
    assert drive(streams().aclose()) == ("returned", None)
    with pytest.raises(ValueError):
        streams().athrow(ValueError()).send(None)
    del stream, step
    gc.collect()
    closed = streams()
    drive(closed.aclose())
    assert collect(closed) == [] and outcome(streams) == (0, 0, 0, 0)


def test_async_generator_by_its_steps():
    stream = streams()
    step = stream.__anext__()
    assert outcome(streams) == (0, 0, 0, 0)
    assert step.send(None) == "inside" and outcome(streams) == (0, 0, 0, 1)
    assert drive_on(step, None) == 0 and outcome(streams) == (0, 0, 0, 1)
    assert drive(stream.asend("x")) == ("returned", ("got", "x"))
    assert outcome(streams) == (0, 0, 0, 1)
    assert drive(stream.aclose()) == ("returned", None) and outcome(streams) == (1, 0, 1, 0)
    assert drive(stream.aclose()) == ("returned", None) and outcome(streams) == (1, 0, 1, 0)


def test_async_generator_thrown_into():
    stream = streams()
    drive(stream.asend(None), None)
    with pytest.raises(ValueError):
        drive(stream.athrow(ValueError()))
    assert outcome(streams) == (1, 1, 0, 0)
    stream = streams()
    step = stream.asend(None)
    step.send(None)
    with pytest.raises(asyncio.CancelledError):
        step.throw(asyncio.CancelledError())  # how a task is cancelled that waits in it
    assert outcome(streams) == (2, 1, 1, 0)


def test_async_generator_catches_what_is_thrown():
    @measured
    async def fn():
        while True:
            try:
                yield 1
            except ValueError:
                yield 2
            except KeyError:
                return

    stream = fn()
    assert drive(stream.asend(None)) == ("returned", 1)
    assert drive(stream.athrow(ValueError())) == ("returned", 2) and only() == (0, 0, 0, 1)
    assert drive(stream.asend(None)) == ("returned", 1)
    with pytest.raises(StopAsyncIteration):
        drive(stream.athrow(KeyError()))
    assert only() == (1, 0, 0, 0)


def test_step_is_closed():
    """Since 3.13 that closes the generator too."""
    stream = streams()
    step = stream.asend(None)
    step.send(None)
    step.close()
    assert outcome(streams) == ((1, 0, 1, 0) if stream.ag_frame is None else (0, 0, 0, 1))
    fresh_one = streams()
    fresh_one.asend(None).close()
    del stream, step, fresh_one
    gc.collect()
    assert outcome(streams) == (1, 0, 1, 0)


def test_async_generator_is_asked_twice_at_once():
    stream = streams()
    first, second = stream.asend(None), stream.asend(None)
    first.send(None)
    with pytest.raises(RuntimeError, match="already running"):
        second.send(None)
    assert outcome(streams) == (0, 0, 0, 1)
    assert drive_on(first, None) == 0 and collect(stream) == [1, 2] and outcome(streams) == (1, 0, 0, 0)
