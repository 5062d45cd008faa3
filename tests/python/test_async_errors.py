# SPDX-License-Identifier: MIT
"""Guards that errors, tracebacks and warnings of measured coroutines and generators are those of the bare ones. Fails
if a traceback has a line more, or if a warning names something else."""

import contextlib
import gc
import inspect
import sys
import traceback
import types
import warnings

import measuring
import pytest
from codetimer import measured

fresh = measuring.fresh


@types.coroutine
def pause(value=None):
    return (yield value)


async def coroutine():
    return await pause(1)


def generator():
    return (yield 1)


async def fails(kind):
    await pause()
    raise kind("on purpose")


def generates_and_fails(kind):
    yield
    raise kind("on purpose")


async def streams_and_fails(kind):
    yield
    raise kind("on purpose")


def lines(error):
    return [(frame.name, frame.line) for frame in traceback.extract_tb(error.__traceback__)][1:]


def run(one):
    """Runs it to its error."""
    if hasattr(one, "asend"):
        one.asend(None).close()
        for _ in range(2):
            with contextlib.suppress(StopIteration):
                one.asend(None).send(None)
    one.send(None)
    one.send(None)


@pytest.mark.parametrize("bare", [fails, generates_and_fails], ids=["coroutine", "generator"])
def test_tracebacks(bare):
    seen = []
    for function in (bare, measured(bare)):
        for how in (run, lambda it: [*iter_all(it)], lambda it: run(nested(it))):
            try:
                how(function(KeyError))
            except KeyError as error:
                context = error.__context__, error.__cause__, error.args
                seen.append((lines(error), context))
    assert len(seen) == 6 and seen[:3] == seen[3:]


def iter_all(it):
    return (yield from it.__await__() if hasattr(it, "__await__") else it)


async def nested(it):
    return await it if inspect.isawaitable(it) else [None async for _ in as_stream(it)]


async def as_stream(it):
    for one in it:
        await pause()
        yield one


def test_traceback_of_a_stream():
    async def consume(one):
        async for _ in one:
            pass

    seen = []
    for function in (streams_and_fails, measured(streams_and_fails)):
        with pytest.raises(KeyError) as raised:
            consume(function(KeyError)).send(None)
        seen.append(lines(raised.value))
    assert len(seen[0]) == 2 and seen[0] == seen[1]


def test_context_of_errors():
    """An exception that is being handled around the call is the context of one raised in it, as ever."""
    for function in (generates_and_fails, measured(generates_and_fails)):
        it = function(KeyError)
        next(it)
        with pytest.raises(KeyError) as raised:
            try:
                raise ZeroDivisionError
            except ZeroDivisionError:
                next(it)
        assert type(raised.value.__context__) is ZeroDivisionError


def test_never_awaited():
    for function in (coroutine, measured(coroutine)):
        with pytest.warns(RuntimeWarning, match=r"^coroutine 'coroutine' was never awaited") as caught:
            function()
            gc.collect()
        assert len(caught) == 1
    depth = sys.get_coroutine_origin_tracking_depth()
    sys.set_coroutine_origin_tracking_depth(1)
    try:
        bare, made = coroutine(), measured(coroutine)()
    finally:
        sys.set_coroutine_origin_tracking_depth(depth)
    assert bare.cr_origin[0][:1] == made.cr_origin[0][:1] and len(bare.cr_origin) == len(made.cr_origin) == 1
    bare.close(), made.close()


def test_throw_of_three():
    """Deprecated since 3.12, and said so where it is called."""
    for function in (generator, measured(generator)):
        it = function()
        next(it)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with pytest.raises(KeyError, match="text"):
                it.throw(KeyError, "text", None)
        assert [one.filename for one in caught] == ([__file__] if sys.version_info >= (3, 12) else [])


def test_yield_from_a_coroutine():
    """Only a generator that types.coroutine has made a coroutine may."""
    made = measured(coroutine)

    @types.coroutine
    def may():
        return (yield from made())

    def may_not():
        yield from made()

    it = may()
    assert it.send(None) == 1
    with pytest.raises(StopIteration, match="7"):
        it.send(7)
    refused = pytest.raises(TypeError, match="cannot 'yield from' a coroutine object in a non-coroutine generator")
    with refused, pytest.warns(RuntimeWarning, match="never awaited"):
        next(may_not())
    left = made()
    with pytest.raises(TypeError, match="'coroutine' object is not iterable"):
        list(left)
    left.close()


def test_a_generator_is_not_awaitable():
    async def wrong(function):
        await function()

    for function in (generator, measured(generator)):
        with pytest.raises(TypeError, match="can't be used in 'await' expression"):
            wrong(function).send(None)
