# SPDX-License-Identifier: MIT
"""Guards codetimer.timer: every block counts once, with its own time, whatever else uses the same timer meanwhile:
recursion, threads, generators and tasks that take turns. Fails if the state of a block sits in the object."""

import asyncio
import contextlib
import gc
import itertools
import threading
import time
import weakref

import codetimer
import pytest

numbers = itertools.count()


@pytest.fixture
def timer():
    made = codetimer.timer(f"test.timer{next(numbers)}", help="for the tests")
    yield made
    assert made.counter.in_flight == 0 and made.counter.anomalies == 0
    made.counter.remove()


def check_two_lengths(block, counter, calls):
    """Blocks of about 0 and of at least 20 ms: the one are not mixed up with the other. One time in ten is enough for
    those of about 0: the machine may be busy."""
    for _ in range(10):
        counter.reset()
        block()
        assert counter.calls == calls and counter.max_ns >= 20_000_000
        if counter.min_ns < 10_000_000:
            break
    assert counter.min_ns < 10_000_000


def test_block(timer):
    with timer as entered:
        assert entered is timer and timer.counter.in_flight == 1 and timer.counter.calls == 0
    assert timer.counter.calls == 1 and timer.counter.errors == 0 and timer.counter.total_ns > 0


def test_new_one_each_time():
    for _ in range(3):
        with codetimer.timer("test.each"):
            pass
    assert codetimer.counters["test.each"].calls == 3
    codetimer.counters["test.each"].remove()


def test_attributes(timer):
    assert timer.name == timer.counter.member and repr(timer) == f"<codetimer.timer {timer.counter.key!r}>"
    with pytest.raises(AttributeError):
        timer.other = 5
    with pytest.raises(TypeError):
        type("Sub", (codetimer.timer,), {})


@pytest.mark.parametrize(
    ("raised", "errors", "cancelled"),
    [(ValueError, 1, 0), (KeyboardInterrupt, 1, 0), (asyncio.CancelledError, 0, 1), (GeneratorExit, 0, 1)],
)
def test_exception(timer, raised, errors, cancelled):
    error = raised("mine")
    with pytest.raises(raised) as caught, timer:
        raise error
    assert caught.value is error
    assert (timer.counter.calls, timer.counter.errors, timer.counter.cancelled) == (1, errors, cancelled)


def test_nested(timer):
    def nest():
        with timer:
            time.sleep(0.02)
            with timer:
                assert timer.counter.in_flight == 2

    check_two_lengths(nest, timer.counter, 2)


def test_recursion(timer):
    def recurse(depth):
        with timer:
            if depth > 1:
                recurse(depth - 1)
            assert timer.counter.in_flight == depth_now(depth)

    def depth_now(depth):
        return 200 - depth + 1

    recurse(200)
    assert timer.counter.calls == 200


def test_generators_in_turns(timer):
    def block():
        with timer:
            yield

    def take_turns():
        first, second = block(), block()
        next(first)
        time.sleep(0.02)
        next(second)
        next(first, None)  # ends first what began first
        assert timer.counter.calls == 1 and timer.counter.min_ns >= 20_000_000
        next(second, None)

    check_two_lengths(take_turns, timer.counter, 2)


def test_closed_generator(timer):
    def block():
        with timer:
            yield

    running = block()
    next(running)
    running.close()
    assert (timer.counter.calls, timer.counter.cancelled, timer.counter.errors) == (1, 1, 0)


def test_tasks_in_turns(timer):
    async def block(before, after):
        await before.wait()
        with timer:
            await after.wait()

    async def main():
        events = [asyncio.Event() for _ in range(4)]
        tasks = [asyncio.create_task(block(*events[i::2])) for i in range(2)]
        events[0].set()
        await asyncio.sleep(0.02)
        events[1].set()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        events[2].set()
        await tasks[0]
        assert timer.counter.calls == 1 and timer.counter.min_ns >= 20_000_000
        events[3].set()
        await tasks[1]

    check_two_lengths(lambda: asyncio.run(main()), timer.counter, 2)


def test_many_tasks(timer):
    async def block():
        with timer:
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(*(block() for _ in range(2000)))

    asyncio.run(main())
    assert timer.counter.calls == 2000


def test_threads_in_turns(timer):
    inside, leave = threading.Event(), threading.Event()

    def block():
        with timer:
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=block)
    thread.start()
    inside.wait(60)
    time.sleep(0.02)
    with timer:
        leave.set()
        thread.join()
    assert timer.counter.calls == 2 and timer.counter.max_ns >= 20_000_000


def test_generator_that_changes_thread(timer):
    def block():
        with timer:
            yield

    running = block()
    next(running)
    thread = threading.Thread(target=next, args=(running, None))
    thread.start()
    thread.join()
    assert timer.counter.calls == 1


def test_exit_stack(timer):
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(timer) is timer
        with timer:
            stack.enter_context(timer)
        assert timer.counter.in_flight == 2
    assert timer.counter.calls == 3


def test_exit_stacks_of_two_threads(timer):
    inside, leave = threading.Event(), threading.Event()

    def block():
        with contextlib.ExitStack() as stack:
            stack.enter_context(timer)
            inside.set()
            leave.wait(60)

    with contextlib.ExitStack() as stack:
        stack.enter_context(timer)
        time.sleep(0.02)
        thread = threading.Thread(target=block)
        thread.start()
        inside.wait(60)
    assert timer.counter.calls == 1 and timer.counter.min_ns >= 20_000_000
    leave.set()
    thread.join()


def test_by_hand(timer):
    timer.__enter__()
    assert timer.__exit__() is None and timer.counter.calls == 1
    with pytest.raises(RuntimeError, match="without __enter__"):
        timer.__exit__(None, None, None)
    assert timer.counter.calls == 1


def test_removed_inside(timer):
    with timer:
        timer.counter.remove()
    with timer:
        pass
    assert timer.counter.calls == 0 and codetimer.counters.get(timer.name) is None


def test_reset_inside(timer):
    with timer:
        timer.counter.reset()
    assert timer.counter.calls == 0


def test_async_with_is_refused(timer):
    async def block():
        async with timer:
            raise AssertionError

    with pytest.raises((TypeError, AttributeError), match="asynchronous context manager"):
        asyncio.run(block())
    assert not hasattr(timer, "__aenter__") and isinstance(timer, contextlib.AbstractContextManager)
    assert not isinstance(timer, contextlib.AbstractAsyncContextManager)


def test_dropped_in_the_middle(timer):
    """A timer that is dropped while a block of it is open takes nothing with it."""
    codetimer.timer(timer.name).__enter__()
    gc.collect()
    assert timer.counter.in_flight == 1
    timer.counter.reset()


def test_does_not_keep_what_it_was_given():
    class Name(str):
        pass

    name = Name("test.name")
    seen = weakref.ref(name)
    made = codetimer.timer(name)
    del name
    assert seen() is None and made.name == "test.name"
    made.counter.remove()
