# SPDX-License-Identifier: MIT
"""Guards that measured coroutine and generator functions, and what they return, answer as the bare ones do: inspect,
asyncio, abstract base classes, attributes, errors, warnings, tracebacks. Fails if a question has another answer that is
not among those named at the end."""

import asyncio
import collections.abc
import contextlib
import copy
import functools
import gc
import inspect
import pickle
import re
import sys
import types
import typing
import weakref

import measuring
import pytest
from codetimer import measured

fresh = measuring.fresh


@types.coroutine
def pause(value=None):
    return (yield value)


async def coroutine(a: int = 1) -> str:
    """A coroutine."""
    return await pause(a)


def generator(a: int = 1):
    """A generator."""
    return (yield a)


async def stream(a: int = 1):
    """A stream."""
    await pause(a)
    yield a


@types.coroutine
def old(a: int = 1):
    """A coroutine of old."""
    return (yield a)


class Runs:
    async def __call__(self, a: int = 1): ...
    async def method(self, a: int = 1): ...

    @staticmethod
    async def static(): ...

    @classmethod
    async def of_class(cls): ...


FUNCTIONS = coroutine, generator, stream, old
CALLABLES = (
    *FUNCTIONS,
    Runs().method,
    Runs.static,
    Runs.of_class,
    Runs(),
    functools.partial(coroutine, 2),
    functools.partial(functools.partial(stream), 2),
)


def answer(question, subject):
    """The answer, or the error, without addresses; what the interpreter refuses it tells by the name of the type."""
    try:
        return question(subject)
    except Exception as error:
        text = re.sub(r"(codetimer\.)?Measured[A-Z]\w+", lambda found: subject.__class__.__name__, str(error))
        return type(error).__name__, re.sub(r" at 0x\w+", "", text)


def name_of(one):
    return getattr(one, "__name__", type(one).__name__)


# ---- functions ----

FUNCTION_QUESTIONS = {
    "iscoroutinefunction": inspect.iscoroutinefunction,
    "isgeneratorfunction": inspect.isgeneratorfunction,
    "isasyncgenfunction": inspect.isasyncgenfunction,
    "isfunction": inspect.isfunction,
    "ismethod": inspect.ismethod,
    "isroutine": inspect.isroutine,
    "iscallable": callable,
    "asyncio.iscoroutinefunction": asyncio.iscoroutinefunction,
    "signature": lambda fn: str(inspect.signature(fn)),
    "annotations": lambda fn: typing.get_type_hints(fn),
    "doc": inspect.getdoc,
    "names": lambda fn: (fn.__name__, fn.__qualname__, fn.__module__),
    "flags": lambda fn: fn.__code__.co_flags,
    "source": inspect.getsource,
    "of __call__": lambda fn: inspect.iscoroutinefunction(fn.__call__),
    "of a partial of it": lambda fn: inspect.iscoroutinefunction(functools.partial(fn, 1)),
    "of a method of it": lambda fn: inspect.iscoroutinefunction(types.MethodType(fn, 1)),
}


@pytest.mark.parametrize("bare", CALLABLES, ids=name_of)
@pytest.mark.parametrize("question", FUNCTION_QUESTIONS, ids=str)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_function(question, bare):
    ask, made = FUNCTION_QUESTIONS[question], measured(bare)
    assert made is not bare and answer(ask, made) == answer(ask, bare)


# Found by name, so it pickles.
@measured
async def found():
    return 1


def test_function_is_found_by_name():
    again = pickle.loads(pickle.dumps(found))
    assert again is found and copy.copy(found) is found and copy.deepcopy(found) is found


def test_how_frameworks_ask():
    """As FastAPI and Starlette find out whether to await."""

    def is_async_callable(obj):
        while isinstance(obj, functools.partial):
            obj = obj.func
        return inspect.iscoroutinefunction(obj) or (callable(obj) and inspect.iscoroutinefunction(obj.__call__))

    class Depends:
        @measured
        async def method(self, token: str): ...

    for one in (coroutine, Runs().method, Runs(), Runs.static, Runs.of_class, functools.partial(coroutine, 1)):
        assert is_async_callable(measured(one)) and is_async_callable(one)
    assert is_async_callable(Depends().method) and list(inspect.signature(Depends().method).parameters) == ["token"]
    for one in (generator, stream, old):
        assert is_async_callable(measured(one)) == is_async_callable(one)


# ---- what they return ----


def close(it):
    if hasattr(it, "close"):
        it.close()


KINDS = types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType
ATTRIBUTES = sorted({name for kind in KINDS for name in dir(kind) if not name.startswith("__")})
STATES = {"CREATED": 0, "SUSPENDED": 1, "CLOSED": 2}

RETURNED_QUESTIONS = {
    **{f"isinstance {one.__name__}": functools.partial(lambda kind, it: isinstance(it, kind), one) for one in (
        types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType,
        collections.abc.Coroutine, collections.abc.Awaitable, collections.abc.Generator, collections.abc.Iterator,
        collections.abc.Iterable, collections.abc.AsyncGenerator, collections.abc.AsyncIterator,
        collections.abc.AsyncIterable, collections.abc.Hashable, collections.abc.Sized, collections.abc.Callable,
        typing.Coroutine, typing.Generator, typing.AsyncGenerator,
    )},
    "inspect.iscoroutine": inspect.iscoroutine,
    "inspect.isawaitable": inspect.isawaitable,
    "inspect.isgenerator": inspect.isgenerator,
    "inspect.isasyncgen": inspect.isasyncgen,
    "asyncio.iscoroutine": asyncio.iscoroutine,
    "coroutine state": inspect.getcoroutinestate,
    "coroutine locals": lambda it: dict(inspect.getcoroutinelocals(it)),
    "generator state": inspect.getgeneratorstate,
    "generator locals": lambda it: dict(inspect.getgeneratorlocals(it)),
    "asyncgen state": lambda it: getattr(inspect, "getasyncgenstate", str)(it) if sys.version_info >= (3, 12) else 0,
    "class": lambda it: it.__class__,
    "dir": dir,
    "repr": lambda it: repr(it).split(" at 0x")[0],
    "str": lambda it: str(it).split(" at 0x")[0],
    "format": lambda it: f"{it}".split(" at 0x")[0],
    "names": lambda it: (it.__name__, it.__qualname__),
    "doc": lambda it: it.__doc__,
    "module": lambda it: it.__module__,
    "truth": bool,
    "equal": lambda it: (it == it, it != it, it == 1, it in [it]),
    "iter": lambda it: type(iter(it)) is type(it) or iter(it),
    "len": len,
    "subscript": lambda it: it[0],
    "call": lambda it: it(),
    "copy": lambda it: copy.copy(it),
    "deepcopy": lambda it: copy.deepcopy(it),
    "pickle": lambda it: pickle.dumps(it),
    "reduce": lambda it: it.__reduce_ex__(2),
    "weakref": lambda it: weakref.ref(it)() is it,
    "has": lambda it: [hasattr(it, name) for name in (
        "send", "throw", "close", "asend", "athrow", "aclose", "__next__", "__iter__", "__await__", "__aiter__",
        "__anext__", "__del__", "__dict__", "nothing")],
    "set": lambda it: setattr(it, "nothing", 1),
    "set name": lambda it: (setattr(it, "__name__", "other"), it.__name__, repr(it).split(" at 0x")[0]),
    "set name to a number": lambda it: setattr(it, "__qualname__", 1),
    "delete": lambda it: delattr(it, "nothing"),
    "async for": lambda it: type(it.__aiter__()) is type(it),
    "throw nothing": lambda it: it.throw(),
    "throw a number": lambda it: it.throw(1),
    "send nothing": lambda it: it.send(),
    "send too early": lambda it: it.send(1),
    **{f"attribute {name}": functools.partial(lambda name, it: plainly(getattr(it, name)), name)
       for name in ATTRIBUTES if name not in ("send", "throw", "close", "asend", "athrow", "aclose")},
}  # fmt: skip


def plainly(value):
    if isinstance(value, types.FrameType):
        return value.f_code.co_name, value.f_lineno, dict(value.f_locals)
    return value.__qualname__ if hasattr(value, "__qualname__") else value


def advance(function, state):
    """What it returns, in that state."""
    it = function()
    if state and isinstance(it, collections.abc.AsyncGenerator):
        it.asend(None).send(None) if state == 1 else run_out(it.aclose())
    elif state:
        it.send(None)
        if state == 2:
            it.close()
    return it


def run_out(awaitable):
    with contextlib.suppress(StopIteration):
        while True:
            awaitable.send(None)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("bare", FUNCTIONS, ids=name_of)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_returned(bare, state):
    made, wrong = measured(bare), []
    for question, ask in RETURNED_QUESTIONS.items():
        answers = []
        for function in (bare, made):
            it = advance(function, STATES[state])
            answers.append(answer(ask, it))
            close(it)
        if answers[0] != answers[1]:
            wrong.append((question, *answers))
    assert wrong == []


def test_asend_and_the_like():
    for method, *args in (("__anext__",), ("asend", None), ("athrow", ValueError), ("aclose",)):
        bare, made = (getattr(fn(), method)(*args) for fn in (stream, measured(stream)))
        assert made.__class__ is bare.__class__ and repr(made).split(" at ")[0] == repr(bare).split(" at ")[0]
        assert inspect.isawaitable(made) and isinstance(made, collections.abc.Iterator)
        assert iter(made) is made and made.__await__() is made
        bare.close(), made.close()
    wrapper = measured(coroutine)().__await__()
    assert wrapper.__class__.__name__ == "coroutine_wrapper" and iter(wrapper) is wrapper
    wrapper.close()


# ---- what is not as bare, and cannot be ----


def test_what_differs():
    for function in FUNCTIONS:
        bare, made = function(), measured(function)()
        assert type(made) is not type(bare) and made.__class__ is type(bare)
        close(bare), close(made)
    made = measured(generator)()
    (bare,) = [one for one in gc.get_referents(made) if type(one) is types.GeneratorType]
    assert made == bare and bare == made and hash(made) == hash(bare) and made in {bare} and made != generator()
    made = measured(coroutine)()
    assert next(made) == 1  # of a bare one: TypeError
    made.close()
