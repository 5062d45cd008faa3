# SPDX-License-Identifier: MIT
"""Guards that an end is matched with the beginning of the same call: when the measuring begins in mid-call, with
generators that are suspended, thrown into, closed, abandoned or moved between threads, with threads and greenlets, and
with exceptions. Fails if a call is taken for another, counted twice, or remains in flight for ever."""

import asyncio
import gc
import threading

import codetimer
import pytest
from codetimer import _codetimer
from monitoring import MODULE, calls, counter, fresh, make, missing, monitored  # noqa: F401 (fresh is a fixture)

pytestmark = missing

GENERATORS = """
def numbers():
    yield 1
    yield 2

def careful():
    try:
        yield 1
    finally:
        clean()

def catching():
    while True:
        try:
            yield 1
        except KeyError:
            pass

def clean(): sum(range(20_000))
def wait(): sum(range(20_000))
def call(fn, *args): return fn(*args)
"""


def under_way():
    return _codetimer._monitoring_info()["under_way"]


# ---- beginning and ending in mid-call ----


def test_begun_in_mid_call():
    subject = make("def outer(step):\n    step()\n    inner(1)\ndef inner(n): return n and inner(n - 1)\n")
    subject.outer(lambda: _codetimer._monitoring_start(MODULE + ".*"))
    assert calls() == {"inner": 2} and under_way() == 0
    subject.outer(lambda: None)
    assert calls() == {"inner": 4, "outer": 1}


def test_begun_in_the_middle_of_its_recursion():
    subject = make("def down(n, step):\n    n == 3 and step()\n    return n and down(n - 1, step)\n")
    subject.down(6, lambda: _codetimer._monitoring_start(MODULE + ".*"))
    assert calls() == {"down": 3} and under_way() == 0


def test_ended_in_mid_call():
    subject = make("def outer(step): step()\n")
    _codetimer._monitoring_start(MODULE + ".*")
    subject.outer(lambda: None)
    subject.outer(_codetimer._monitoring_stop)
    assert calls() == {"outer": 1} and counter("outer").in_flight == 0


def test_switched_off_and_on_in_mid_call():
    """Its end would be taken for that of a call that began before."""
    subject = make("def outer(step): step()\n")

    def off_and_on():
        codetimer.configure(f"!{MODULE}.*")
        _codetimer._monitoring_update()
        codetimer.configure("*")
        _codetimer._monitoring_update()

    with monitored():
        subject.outer(off_and_on)
        subject.outer(lambda: None)
    assert calls() == {"outer": 1} and counter("outer").in_flight == 0


def test_begun_while_generators_are_suspended():
    subject = make(GENERATORS)
    running = [subject.numbers() for _ in range(3)]
    for generator in running:
        next(generator)
    never_started = subject.numbers()
    with monitored():
        assert [list(generator) for generator in running] == [[2]] * 3
        assert calls() == {}
        list(never_started)
    assert calls() == {"numbers": 1}


# ---- generators ----


def test_interleaved_generators():
    subject = make(GENERATORS)
    with monitored():
        several = [subject.numbers() for _ in range(50)]
        for generator in several:
            next(generator)
        assert under_way() == 50 and counter("numbers").in_flight == 50
        for generator in several[::-1] + several[::2]:
            list(generator)
    assert calls() == {"numbers": 50} and counter("numbers").in_flight == 0


def test_active_and_elapsed():
    """Elapsed holds what happens while it is suspended, active does not."""
    subject = make("def waits(wait):\n    yield 1\n    yield 2\ndef wait(): sum(range(20_000))\n")
    with monitored():
        for _ in subject.waits(subject.wait):
            subject.wait()
    waits, wait = counter("waits"), counter("wait")
    assert waits.total_ns - waits.active_ns > wait.total_ns and waits.active_ns > 0


def test_thrown_into():
    subject = make(GENERATORS)
    with monitored():
        generator = subject.catching()
        next(generator)
        for _ in range(5):
            assert generator.throw(KeyError) == 1
        assert calls() == {} and under_way() == 1
        with pytest.raises(ZeroDivisionError):
            generator.throw(ZeroDivisionError)
    assert (counter("catching").calls, counter("catching").errors, counter("catching").cancelled) == (1, 1, 0)


def test_closed_is_cancelled():
    subject = make(GENERATORS)
    with monitored():
        generator = subject.careful()
        next(generator)
        subject.wait()
        generator.close()
    assert calls() == {"careful": 1, "clean": 1, "wait": 1}
    careful = counter("careful")
    assert (careful.errors, careful.cancelled) == (0, 1)
    assert careful.active_ns > counter("clean").total_ns  # it went on when it was closed, not before
    assert careful.total_ns - careful.active_ns > counter("wait").total_ns


def test_abandoned():
    """Also where Python 3.13.0 tells nothing of the end of a generator that is not in a try."""
    subject = make(GENERATORS)
    with monitored():
        for _ in range(200):
            next(subject.numbers())
            next(subject.careful())
            for _ in subject.numbers():
                break
        gc.collect()
        assert under_way() == 0
    assert calls()["clean"] == 200
    assert counter("numbers").in_flight == counter("careful").in_flight == 0
    assert counter("numbers").calls == counter("numbers").cancelled == 400
    assert counter("careful").calls == counter("careful").cancelled == 200


def test_abandoned_was_not_active_while_it_waited():
    subject = make(GENERATORS)
    with monitored():
        for function in (subject.numbers, subject.careful):
            generator = function()
            next(generator)
            subject.wait()
            del generator
    for name in ("numbers", "careful"):
        assert counter(name).total_ns - counter(name).active_ns > counter("wait").min_ns


def test_never_started_is_not_counted():
    subject = make(GENERATORS + "async def coroutine(): pass\n")
    with monitored():
        subject.numbers()
        subject.coroutine().close()
    assert calls() == {}


def test_generator_on_many_threads():
    subject = make("def count(n):\n    for i in range(n):\n        yield i\n")
    with monitored():
        generator, got = subject.count(20), []
        while len(got) < 20:
            thread = threading.Thread(target=lambda: got.append(next(generator)))
            thread.start()
            thread.join()
        assert list(generator) == []
    assert got == list(range(20)) and calls() == {"count": 1}


def test_gather_and_cancel():
    subject = make(
        "import asyncio\nasync def short(): await asyncio.sleep(0)\n"
        "async def long(started):\n    started.append(1)\n    await asyncio.Event().wait()\n"
    )

    async def main():
        started = []
        tasks = [asyncio.create_task(subject.long(started)) for _ in range(10)]
        await asyncio.gather(*(subject.short() for _ in range(100)))
        while len(started) < 10:
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    with monitored():
        asyncio.run(main())
    short, long = counter("short"), counter("long")
    assert (short.calls, short.errors, short.cancelled) == (100, 0, 0)
    assert (long.calls, long.errors, long.cancelled, long.in_flight) == (10, 0, 10, 0)


# ---- exceptions ----


def test_exceptions():
    subject = make(
        "def bottom(error): raise error\ndef middle(error): bottom(error)\n"
        "def top(error):\n    try: middle(error)\n    except Exception: pass\n"
    )
    with monitored():
        for error in (ValueError(), KeyError):
            subject.top(error)
        with pytest.raises(KeyboardInterrupt):
            subject.top(KeyboardInterrupt())
    assert {name: counter(name).errors for name in ("bottom", "middle", "top")} == {"bottom": 3, "middle": 3, "top": 1}
    assert calls() == {"bottom": 3, "middle": 3, "top": 3}


def test_recursion_that_goes_too_deep():
    subject = make("def deep(n): return deep(n + 1)\n")
    with monitored(), pytest.raises(RecursionError):
        subject.deep(0)
    assert counter("deep").calls == counter("deep").errors > 500 and counter("deep").in_flight == 0


def test_exceptions_of_other_code_leave_nothing():
    subject = make("def f(): pass\n")
    other = make("def g(): raise KeyError\n", "other")
    with monitored():
        subject.f()
        for _ in range(100):
            with pytest.raises(KeyError):
                other.g()
    assert calls() == {"f": 1} and calls("other") == {}


# ---- threads and greenlets ----


def test_threads_in_the_same_function():
    subject = make("def hold(n, turns):\n    turns.wait()\n    return n and hold(n - 1, turns)\n")
    turns = threading.Barrier(8)
    with monitored():
        threads = [threading.Thread(target=subject.hold, args=(20, turns)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert calls() == {"hold": 8 * 21} and counter("hold").in_flight == 0


def test_greenlets_interleave():
    """Each call has its own time: the first one to begin waits for the other one, which ends before it."""
    greenlet = pytest.importorskip("greenlet")
    subject = make("def first(switch):\n    switch()\n\ndef second(switch, work):\n    work()\n    switch()\n")
    with monitored():
        one = greenlet.greenlet(lambda: subject.first(main.switch))
        main = greenlet.getcurrent()
        two = greenlet.greenlet(lambda: subject.second(main.switch, lambda: sum(range(20_000))))
        one.switch()
        assert under_way() == 1
        two.switch()
        assert under_way() == 2
        one.switch()
        assert calls() == {"first": 1} and under_way() == 1
        two.switch()
    assert calls() == {"first": 1, "second": 1}
    assert counter("first").in_flight == counter("second").in_flight == 0


def test_greenlets_in_the_same_function():
    greenlet = pytest.importorskip("greenlet")
    subject = make("def turn(n, switch):\n    for _ in range(n): switch()\n")
    with monitored():
        main = greenlet.getcurrent()
        several = [greenlet.greenlet(lambda i=i: subject.turn(i, main.switch)) for i in range(30)]
        while any(not one.dead for one in several):
            for one in several:
                if not one.dead:
                    one.switch()
    assert calls() == {"turn": 30} and counter("turn").in_flight == 0


def test_greenlet_that_is_killed():
    greenlet = pytest.importorskip("greenlet")
    subject = make("def wait(switch): switch()\n")
    with monitored():
        one = greenlet.greenlet(lambda: subject.wait(greenlet.getcurrent().parent.switch))
        one.switch()
        one.throw()
    assert calls() == {"wait": 1} and counter("wait").in_flight == 0
