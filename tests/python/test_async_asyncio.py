# SPDX-License-Identifier: MIT
"""Guards that measured coroutine and generator functions work under asyncio and contextlib as bare ones do, and are
counted there once a call. Fails if gather, a group, a timeout, a shield or a cancellation counts a call twice, not at
all or as something else, or if the hooks of async generators are not called."""

import asyncio
import builtins
import collections
import contextlib
import functools
import gc
import io
import sys
import warnings

import codetimer
import measuring
import pytest
from codetimer import measured

fresh = measuring.fresh


def outcome(name):
    counter = codetimer.counters[f"a.{name}"]
    return counter.calls, counter.errors, counter.cancelled, counter.in_flight


def named(name):
    return measured(name=f"a.{name}")


@pytest.fixture
def work():
    @named("work")
    async def work(value=1, *, fail=None, event=None):
        await asyncio.sleep(0)
        if event is not None:
            await event.wait()
        if fail is not None:
            raise fail
        return value

    return work


# ---- asyncio ----


def test_run_and_gather(work):
    async def main():
        return await asyncio.gather(*(work(i) for i in range(100)))

    assert asyncio.run(main()) == list(range(100)) and outcome("work") == (100, 0, 0, 0)
    assert asyncio.run(work(5)) == 5 and outcome("work") == (101, 0, 0, 0)


def test_in_flight(work):
    async def main():
        event = asyncio.Event()
        tasks = [asyncio.ensure_future(work(event=event)) for _ in range(100)]
        for _ in range(3):
            await asyncio.sleep(0)
        seen = outcome("work")
        event.set()
        await asyncio.gather(*tasks)
        return seen

    assert asyncio.run(main()) == (0, 0, 0, 100) and outcome("work") == (100, 0, 0, 0)


def test_gather_with_failures(work):
    async def main():
        calls = (work(fail=ValueError()) if i % 2 else work() for i in range(10))
        return await asyncio.gather(*calls, return_exceptions=True)

    assert sum(isinstance(one, ValueError) for one in asyncio.run(main())) == 5
    assert outcome("work") == (10, 5, 0, 0)


def test_cancelled(work):
    async def main():
        event = asyncio.Event()
        begun, fresh_one = asyncio.ensure_future(work(event=event)), asyncio.ensure_future(work())
        fresh_one.cancel()  # before its first step
        for _ in range(3):
            await asyncio.sleep(0)
        begun.cancel()
        return await asyncio.gather(begun, fresh_one, return_exceptions=True)

    assert [type(one) for one in asyncio.run(main())] == [asyncio.CancelledError] * 2
    assert outcome("work") == (1, 0, 1, 0)


def test_wait_for(work):
    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(work(event=asyncio.Event()), 0.001)
        return await asyncio.wait_for(work(), 60)

    assert asyncio.run(main()) == 1 and outcome("work") == (2, 0, 1, 0)


def test_shield(work):
    async def main():
        event = asyncio.Event()
        inner = asyncio.ensure_future(work(event=event))
        outer = asyncio.ensure_future(asyncio.wait_for(asyncio.shield(inner), 60))
        for _ in range(3):
            await asyncio.sleep(0)
        outer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await outer
        assert outcome("work") == (0, 0, 0, 1)
        event.set()
        return await inner

    assert asyncio.run(main()) == 1 and outcome("work") == (1, 0, 0, 0)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.TaskGroup and timeout are of 3.11")
def test_task_group_and_timeout(work):
    @named("group")
    async def group():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(work(event=asyncio.Event()))
            tasks.create_task(work(fail=KeyError()))

    @named("timeout")
    async def timeout():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.001):
                await work(event=asyncio.Event())
        return 3

    with pytest.raises(builtins.BaseExceptionGroup):
        asyncio.run(group())
    assert outcome("group") == (1, 1, 0, 0) and outcome("work") == (2, 1, 1, 0)
    assert asyncio.run(timeout()) == 3
    assert outcome("timeout") == (1, 0, 0, 0) and outcome("work") == (3, 1, 2, 0)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks are of 3.12")
def test_eager_tasks(work):
    async def main():
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        return await asyncio.gather(work(1), work(2))

    assert asyncio.run(main()) == [1, 2] and outcome("work") == (2, 0, 0, 0)


def test_threads_and_other_loops(work):
    async def main():
        return await asyncio.gather(*(asyncio.to_thread(asyncio.run, work(i)) for i in range(8)))

    assert asyncio.run(main()) == list(range(8)) and outcome("work") == (8, 0, 0, 0)


def test_debug_mode_and_stacks(work):
    """A task shows where it is, by the names of the functions."""

    async def main(function):
        task = asyncio.ensure_future(function(event=asyncio.Event()), loop=asyncio.get_running_loop())
        task.set_name("t")
        for _ in range(3):
            await asyncio.sleep(0)
        text = io.StringIO()
        task.print_stack(file=text)
        frames = [frame.f_code.co_name for frame in task.get_stack()]
        shown = repr(task).split(" wait_for=")[0].split("coro=")[1]
        task.cancel()
        await asyncio.wait([task])
        return text.getvalue().split("coro=")[1].split(" wait_for=")[0], frames, shown

    bare, made = (asyncio.run(main(function), debug=True) for function in (work.__wrapped__, work))
    assert bare == made and made[1] == ["work"]


def test_never_awaited_in_a_task(work):
    async def main():
        work()

    with pytest.warns(RuntimeWarning, match="work' was never awaited"):
        asyncio.run(main())
        gc.collect()
    assert outcome("work") == (0, 0, 0, 0)


def test_as_pytest_plugins_do(work):
    """They ask what it is, and make a synchronous function of it, under its name."""
    assert asyncio.iscoroutinefunction(work)

    @functools.wraps(work)
    def synchronous(*args, **kwargs):
        return asyncio.run(work(*args, **kwargs))

    assert synchronous(4) == 4 and synchronous.__name__ == "work" and outcome("work") == (1, 0, 0, 0)


# ---- async generators, comprehensions, hooks ----


@pytest.fixture
def stream():
    @named("stream")
    async def stream(n=3, event=None):
        for i in range(n):
            if event is not None:
                await event.wait()
            await asyncio.sleep(0)
            yield i

    return stream


def test_comprehensions(stream):
    async def main():
        assert [x async for x in stream()] == [0, 1, 2] and {x async for x in stream()} == {0, 1, 2}
        assert {x: x async for x in stream()} == {0: 0, 1: 1, 2: 2}
        assert [y async for y in (x + 1 async for x in stream())] == [1, 2, 3]
        return [await one async for one in stream_of(stream)]

    async def stream_of(function):
        async for x in function():
            yield asyncio.sleep(0, x)

    assert asyncio.run(main()) == [0, 1, 2] and outcome("stream") == (5, 0, 0, 0)


def test_anext_and_aiter(stream):
    async def main():
        it = aiter(stream(1))
        first, second = await anext(it), await anext(it, "default")
        with pytest.raises(StopAsyncIteration):
            await anext(it)
        return first, second

    assert asyncio.run(main()) == (0, "default") and outcome("stream") == (1, 0, 0, 0)


def test_cancelled_in_a_stream(stream):
    async def consume():
        return [x async for x in stream(event=asyncio.Event())]

    async def main():
        task = asyncio.ensure_future(consume())
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    assert outcome("stream") == (1, 0, 1, 0)


def test_left_by_break(stream):
    """The loop closes it, as it does a bare one, and nothing is said about it."""
    closed = []

    @named("closing")
    async def closing():
        try:
            for i in range(3):
                yield i
        finally:
            await asyncio.sleep(0)
            closed.append(True)

    async def main():
        async for _ in closing():
            break
        kept = stream()
        async for _ in kept:
            break
        await asyncio.sleep(0)
        return kept  # what is left is closed by shutdown_asyncgens

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
    gc.collect()
    assert closed == [True] and outcome("closing") == outcome("stream") == (1, 0, 1, 0)


def test_hooks():
    events = collections.Counter()

    async def bare():
        yield 1

    def first(agen):
        events["first", agen.__name__] += 1

    def last(agen):
        events["last", agen.__name__] += 1
        agen.aclose().close()

    before = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(first, last)
    try:
        for function in (bare, named("hooked")(bare)):
            it = function()
            with pytest.raises(StopIteration):
                it.__anext__().send(None)
            del it
            gc.collect()
    finally:
        sys.set_asyncgen_hooks(*before)
    assert events == {("first", "bare"): 2, ("last", "bare"): 2} and outcome("hooked") == (1, 0, 1, 0)


# ---- contextlib ----


def test_context_managers():
    events = []

    @contextlib.contextmanager
    @named("manager")
    def manager(value):
        events.append("enter")
        try:
            yield value
        except KeyError:
            events.append("caught")
        finally:
            events.append("leave")

    @contextlib.asynccontextmanager
    @named("amanager")
    async def amanager(value):
        await asyncio.sleep(0)
        with manager(value) as inner:
            yield inner

    async def main():
        async with amanager(1) as value:
            events.append(value)
        async with amanager(2):
            raise KeyError
        with pytest.raises(ZeroDivisionError):
            async with amanager(3):
                raise ZeroDivisionError

    asyncio.run(main())
    assert events == ["enter", 1, "leave", "enter", "caught", "leave", "enter", "leave"]
    assert outcome("manager") == outcome("amanager") == (3, 1, 0, 0)


def test_exit_stack_and_closing(stream):
    @named("manager")
    def manager():
        yield

    async def main():
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(contextlib.contextmanager(manager)())
            it = await stack.enter_async_context(contextlib.aclosing(stream()))
            return await anext(it)

    assert asyncio.run(main()) == 0
    assert outcome("manager") == (1, 0, 0, 0) and outcome("stream") == (1, 0, 1, 0)
