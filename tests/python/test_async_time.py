# SPDX-License-Identifier: MIT
"""Guards that elapsed and active time of a call that can be suspended are kept apart, and what a switch, a reset or
another thread does to a call under way. Fails if a wait counts as active, or if what was under way at a switch is
counted."""

import contextlib
import os
import threading
import time
import types

import codetimer
import measuring
import pytest
import suspending
from codetimer import measured
from suspending import counted, drive, drive_on, local, outcome, pause

fresh, measured_anew = measuring.fresh, suspending.measured_anew
waits = generates = streams = None  # measured anew for each test


# ---- time ----


def test_elapsed_and_active():
    """Waiting between slices is elapsed, and not active; what happens in slices is both."""

    @measured
    async def coroutine():
        for _ in range(2):
            time.sleep(0.01)
            await pause()

    @measured
    def generator():
        for _ in range(2):
            time.sleep(0.01)
            yield

    @measured
    async def stream():
        for _ in range(2):
            time.sleep(0.01)
            yield

    def steps(it):
        for _ in range(3):
            with contextlib.suppress(StopIteration, StopAsyncIteration):
                it.asend(None).send(None)
            yield

    def run(it):
        for _ in range(3):
            with contextlib.suppress(StopIteration, StopAsyncIteration):
                it.send(None)
            yield

    for running in (run(coroutine()), run(generator()), steps(stream())):
        time.sleep(0.01)  # before the first slice: of no call
        for i, _ in enumerate(running):
            if i < 2:
                time.sleep(0.02)
    counters = [one for one in codetimer.counters.values() if "<locals>" in one.member]
    assert len(counters) == 3
    for counter in counters:
        assert counter.calls == 1
        waited = counter.total_ns - counter.active_ns
        assert counter.active_ns >= 19_000_000 and waited >= 39_000_000, (counter.key, counter.active_ns, waited)


def test_nested_calls_are_inclusive():
    @measured(name="n.inner")
    async def inner():
        time.sleep(0.01)
        await pause()
        time.sleep(0.01)

    @measured(name="n.outer")
    async def outer():
        await inner()

    running = outer()
    running.send(None)
    time.sleep(0.02)
    drive_on(running, None)
    one, other = codetimer.counters["n.inner"].sample(), codetimer.counters["n.outer"].sample()
    assert one.calls == other.calls == 1
    assert 19_000_000 <= one.active_ns <= other.active_ns and one.total_ns <= other.total_ns
    assert other.total_ns - other.active_ns >= 19_000_000


def test_a_plain_function_is_active_all_the_time():
    fn = measured(lambda: time.sleep(0.001))
    fn(), fn()
    counter = local()
    assert counter.calls == 2 and counter.active_ns == counter.total_ns


# ---- switches ----


def test_switched_off_is_plain():
    kinds = types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType
    for function, kind in zip((waits, generates, streams), kinds, strict=True):
        counted(function).remove()
        made = function()
        assert type(made) is kind
        if kind is types.CoroutineType:
            made.close()


def test_switched_while_under_way(request):
    request.addfinalizer(lambda: codetimer.configure(members="*"))
    codetimer.configure(members="!*.waits")
    plain = waits()
    plain.send(None)
    codetimer.configure(members="*")
    drive_on(plain, None)
    assert outcome(waits) == (0, 0, 0, 0)  # it was under way when the switch came
    created = waits()
    codetimer.configure(members="!*.waits")
    assert drive(created, 1) == ("returned", 1)
    codetimer.configure(members="*")
    assert outcome(waits) == (0, 0, 0, 0)
    left = waits()
    left.send(None)
    codetimer.configure(members="!*.waits")
    drive_on(left, None)
    codetimer.configure(members="*")
    assert outcome(waits) == (0, 0, 0, 0)
    drive(waits(), 1)
    assert outcome(waits) == (1, 0, 0, 0)


def test_reset_while_under_way():
    coroutine = waits()
    coroutine.send(None)
    counted(waits).reset()
    drive_on(coroutine, None)
    assert outcome(waits) == (0, 0, 0, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_while_under_way():
    """The child goes on with it, and has no call of its own to count."""
    generator = generates()
    next(generator)
    pid = os.fork()
    if pid == 0:
        ended = list(generator) == [1, 2] and outcome(generates) == (0, 0, 0, 0)
        os._exit(0 if ended and list(generates()) and outcome(generates) == (1, 0, 0, 0) else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert outcome(generates) == (0, 0, 0, 1) and list(generator) == [1, 2] and outcome(generates) == (1, 0, 0, 0)


# ---- threads ----


def test_moves_between_threads():
    coroutine, generator = waits(), generates()
    results = []

    def step(it, value):
        with contextlib.suppress(StopIteration):
            results.append(it.send(value))

    for it, values in ((coroutine, (None, 1)), (generator, (None, 1, 2, 3))):
        for value in values:
            thread = threading.Thread(target=step, args=(it, value))
            thread.start()
            thread.join()
    assert results == ["first", 0, 1, 2]
    assert outcome(waits) == outcome(generates) == (1, 0, 0, 0)


def test_many_at_once_in_threads():
    """Every thread runs its own; the one counter has them all."""

    def work():
        for _ in range(200):
            list(generates())
            drive(waits(), 1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert outcome(waits) == outcome(generates) == (800, 0, 0, 0)
