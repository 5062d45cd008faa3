# SPDX-License-Identifier: MIT
"""Guards that a measured function does what the bare one does: as a function, as a method of any kind, as a dunder,
where it is called wrongly or raises. Every question is put to a bare and to a measured module (transparency.py); fails
if the answers differ."""

import asyncio
import contextlib
import copy
import enum
import functools
import inspect
import io
import sys
import traceback

import codetimer
import pytest
import transparency
from transparency import agree, ask

both = transparency.both


# ---- what can be called ----


def test_calls(both):
    for question in (
        lambda m: m.plain(1, 2, 3, 4, d=5, e=6, f=7), lambda m: m.plain(1), lambda m: m.plain(1, d=2, x=3),
        lambda m: m.plain(*range(5), d=1), lambda m: m.plain(a=1, d=1), lambda m: m.quick(),
        lambda m: m.quick(y=1, x=2), lambda m: m.closure(1)(2), lambda m: m.decorated(1), lambda m: m.inside(1),
        lambda m: m.cached(1) is m.cached(1), lambda m: isinstance(m.part, functools.partial),
        lambda m: m.caches(1) is m.caches(1), lambda m: m.cached.cache_info(), lambda m: m.cached.cache_clear(),
        lambda m: [m.single(1), m.single(""), m.single.dispatch(int)(3), sorted(map(str, m.single.registry))],
        lambda m: m.part(d=1), lambda m: m.part.func(1, d=2), lambda m: m.part.args,
        lambda m: m.single.register(str, lambda x: "str")("x"), lambda m: m.single("x"),
    ):  # fmt: skip
        agree(question, *both)


def test_methods(both):
    def use(module):
        t = module.Thing(3)
        seen = [
            t.over(),
            module.Thing.over(t),
            t.make()[0],
            module.Thing.make()[2],
            t.made(1)[1],
            t.static(1),
            t.stat(2),
        ]
        seen += [t.prop, t.inner, t.lazy is t.lazy, t.pair(), t.add(), t.remembered(1) is t.remembered(1)]
        seen += [
            t.dispatch(1),
            t.dispatch("x"),
            len(t),
            t[5],
            t == module.Thing(3),
            t != module.Thing(4),
            hash(t),
            t(1),
        ]
        seen += [t + 1, 1 + t, 1 in t, 2 in t, bool(t), repr(t), t.public()]
        t.prop = 8
        seen += [t.v]
        del t.prop
        seen += [t.v, module.Thing.prop.__doc__, module.Thing.lazy.__doc__, module.Thing.dispatch.__doc__]
        with t:
            raise ValueError
        seen += [sorted([t, t], key=hash) == [t, t], module.Slotted.get.__qualname__, module.Box[int]().get(1)]
        seen += [isinstance(t, module.Proto), module.Data(1) < module.Data(2), module.Data(1).total(), module.Data(1).z]
        seen += [module.Named(1).total(), module.Color.RED.lower(), module.Color.first(), len(module.Color)]
        return [*seen, str(module.Color.RED), list(module.Color.__members__), module.Color(77).name]

    agree(use, *both)
    assert isinstance(use(both[1]), list)


def test_abstract(both):
    def use(module):
        assert module.Abstract.__abstractmethods__ == {"one", "two", "three", "four"}

        class Half(module.Abstract):
            one = two = three = four = None

        return Half().five()

    agree(use, *both)
    agree(lambda m: m.Abstract(), *both)
    assert use(both[1]) == 5


def test_methods_that_are_static_or_of_the_class_without_saying():
    seen = []

    class C:
        @codetimer.measured
        def __new__(cls, x):
            seen.append(x)
            return super().__new__(cls)

        @codetimer.measured
        def __class_getitem__(cls, item):
            return cls, item

        @codetimer.measured
        def __init_subclass__(cls, **keywords):
            seen.append(keywords)

    class D(C, word=1): ...

    D(2)
    assert seen == [{"word": 1}, 2] and C[3] == (C, 3) and D[3] == (D, 3)
    assert isinstance(C.__dict__["__new__"], staticmethod) and isinstance(C.__dict__["__init_subclass__"], classmethod)


def test_property_copies():
    class C:
        @codetimer.measured
        @property
        def p(self):
            "first"
            return 1

    assert C.p.__doc__ == "first" and isinstance(C.p, property)
    other = C.p.getter(lambda self: 2)
    assert other.__doc__ is None and other.__set_name__ is not None
    with pytest.raises(AttributeError):
        C().p = 3


def test_wrong_calls_say_the_same(both):
    for question in (
        lambda m: m.plain(), lambda m: m.plain(1, 2, b=3), lambda m: m.closure(1)(), lambda m: m.closure(1)(m=1, n=2),
        lambda m: m.Thing.over(), lambda m: m.Thing(1, 2), lambda m: m.Thing.static(), lambda m: m.Thing().over(1),
    ):  # fmt: skip
        answers = ask(question, *both)
        assert answers[0] == answers[1] and answers[0][0] == "TypeError"


def test_tracebacks_have_no_more_frames(both):
    def lines(module):
        try:
            module.raises(KeyError)
        except KeyError as error:
            frames = [(f.name, f.lineno, f.line) for f in traceback.extract_tb(error.__traceback__)]
            text = traceback.format_exc()
        return frames[1:], text.split("File ", 2)[2]

    agree(lines, *both)
    assert len(lines(both[1])[0]) == 1


def test_exceptions_pass_unchanged():
    error = ValueError("one")

    @codetimer.measured
    def fn():
        raise error

    with pytest.raises(ValueError) as caught:
        fn()
    assert caught.value is error and error.__context__ is None and error.__cause__ is None


def test_locals_and_frames():
    @codetimer.measured
    def fn():
        return sys._getframe().f_back.f_code.co_name, sys._getframe().f_code.co_name

    assert fn() == ("test_locals_and_frames", "fn")


def test_builtins_do_not_bind():
    class C:
        size = codetimer.measured(len)
        text = codetimer.measured("-".join)
        built = codetimer.measured(functools.partial(int, base=2))

    assert C().size([1]) == 1 and C().text(["a", "b"]) == "a-b" and C().built("11") == 3
    assert not hasattr(codetimer.measured(len), "__get__") and not hasattr(codetimer.measured(len), "__dict__")
    assert str(inspect.signature(codetimer.measured(len))) == str(inspect.signature(len))

    class E(enum.Enum):
        SIZE = enum_value = codetimer.measured(len)

    assert len(E) == 1


def test_method_descriptors_bind():
    class S(str):
        loud = codetimer.measured(str.upper)

    assert S("a").loud() == "A" and S.loud("b") == "B" and codetimer.measured(str.upper)("c") == "C"
    with pytest.raises(TypeError):
        codetimer.measured(str.upper)(3)


def test_objects_with_call():
    class Adder:
        def __init__(self, n):
            self.n = n

        def __call__(self, m):
            return self.n + m

        def __eq__(self, other):
            return isinstance(other, Adder) and other.n == self.n

        __hash__ = None

    class Binds(Adder):
        def __get__(self, instance, owner):
            return functools.partial(self, 10) if instance is not None else self

    class Told(Adder):
        def __set_name__(self, owner, name):
            self.told = (owner, name)

    adder = codetimer.measured(Adder(1))
    assert adder(2) == 3 and adder.n == 1 and isinstance(adder, Adder)
    adder.n = 5
    assert adder(2) == 7 and copy.deepcopy(adder)(2) == 7

    class C:
        plain = codetimer.measured(Adder(1))
        binds = codetimer.measured(Binds(1))
        told = codetimer.measured(Told(1))

    assert C().plain(1) == 2 and C().binds() == 11 and C.binds(1) == 2 and C.told.told == (C, "told")


def test_runs_under_asyncio():
    @codetimer.measured
    def fn(x):
        return x

    async def main():
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        loop.call_soon(lambda: done.set_result(fn(3)))
        return await done, await loop.run_in_executor(None, fn, 4)

    assert asyncio.run(main()) == (3, 4) and not asyncio.iscoroutinefunction(fn)


def test_as_context_manager_and_key():
    @contextlib.contextmanager
    def bare():
        yield 1

    measured = codetimer.measured(bare)
    with measured() as value:
        assert value == 1
    assert sorted([3, 1], key=codetimer.measured(lambda x: -x)) == [3, 1]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        codetimer.measured(print)("x", end="")
    assert out.getvalue() == "x"
