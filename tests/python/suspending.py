# SPDX-License-Identifier: MIT
"""What the tests of measured coroutines and generators share: some of each, measured anew for each test, and hands to
drive them with."""

import types

import codetimer
import pytest
from codetimer import measured


@types.coroutine
def pause(value=None):
    """Suspends once; returns what is sent."""
    return (yield value)


def drive(coroutine, *sent):
    """Sends the values; returns what it returned, or the last it yielded."""
    try:
        for value in (None, *sent):
            last = coroutine.send(value)
    except StopIteration as stop:
        return ("returned", stop.value)
    return last


def drive_on(coroutine, value):
    """Sends the value, which ends it; returns what it returned."""
    with pytest.raises(StopIteration) as stop:
        coroutine.send(value)
    return stop.value.value


async def waits(value=None, *, fail=None):
    got = await pause("first")
    if fail is not None:
        raise fail
    return got if value is None else value


def generates(n=3, fail=None):
    got = []
    for i in range(n):
        got.append((yield i))
    if fail is not None:
        raise fail
    return got


async def streams(n=3, fail=None):
    for i in range(n):
        await pause("inside")
        got = yield i
        if got is not None:
            yield ("got", got)
    if fail is not None:
        raise fail


def collect(stream):
    async def consumer():
        return [x async for x in stream]

    return drive(consumer(), *[None] * 100)[1]


@pytest.fixture(autouse=True)
def measured_anew(fresh, request):
    for function in (waits, generates, streams):
        setattr(request.module, function.__name__, measured(function))


def counted(function):
    return codetimer.counters[f"{function.__module__}.{function.__qualname__}"]


def outcome(function):
    """calls, errors, cancelled, in flight"""
    counter = counted(function)
    return counter.calls, counter.errors, counter.cancelled, counter.in_flight


def local():
    """The one counter of what the test itself has measured."""
    (counter,) = [one for one in codetimer.counters.values() if "<locals>" in one.member]
    return counter


def only():
    """Its calls, errors, cancelled, in flight."""
    counter = local()
    return counter.calls, counter.errors, counter.cancelled, counter.in_flight
