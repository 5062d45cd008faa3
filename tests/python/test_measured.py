# SPDX-License-Identifier: MIT
"""Guards what measured accepts, what it refuses and in which words, how members are named, and what it does to a class.
Fails if something is counted under another name, twice, or not at all, or if a class is changed where it must not be."""

import collections
import dataclasses
import enum
import functools
import logging
import subprocess
import sys
import textwrap
import typing

import codetimer
import pytest
from codetimer import measured

MODULE = __name__


@pytest.fixture(autouse=True)
def fresh():
    for counter in list(codetimer.counters.values()):
        counter.remove()
    yield


def calls():
    """{member without this module: calls} of all counters that were called."""
    return {
        counter.member.removeprefix(MODULE + ".").split("<locals>.")[-1]: counter.calls
        for counter in codetimer.counters.values()
        if counter.calls
    }


def run(source, *arguments, name="script.py", directory=None):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), "utf-8")
    command = [sys.executable, *(arguments or [str(path)])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


# ---- what is counted ----


def test_every_kind_counts():
    @measured
    def fn(): ...

    @measured
    def single(x): ...

    class C:
        @measured
        def method(self): ...

        @measured
        @staticmethod
        def static(): ...

        @staticmethod
        @measured
        def static2(): ...

        @measured
        @classmethod
        def clas(cls): ...

        @classmethod
        @measured
        def clas2(cls): ...

        @property
        def prop(self): ...

        @prop.setter
        def prop(self, v): ...

        @prop.deleter
        def prop(self): ...

        prop = measured(prop)

        @measured
        @functools.cached_property
        def lazy(self): ...

        def base(self, x): ...

        part = measured(functools.partialmethod(base, 1))

        @measured
        @functools.singledispatchmethod
        def dispatch(self, x): ...

        @dispatch.register
        def _(self, x: int): ...

        @measured
        @functools.lru_cache
        def cached(self): ...

        @functools.lru_cache
        @measured
        def caches(self): ...

    c = C()
    for _ in range(3):
        fn(), c.method(), C.method(c), c.static(), C.static(), c.static2(), c.clas(), C.clas(), c.clas2()
        c.prop, setattr(c, "prop", 1), delattr(c, "prop")
        c.lazy, c.part(), c.dispatch(1), c.dispatch(""), c.cached(), c.caches()
    many = dict(fn=3, method=6, static=6, static2=3, clas=6, clas2=3, prop=3, lazy=1, base=3, dispatch=6, cached=3, caches=1)
    assert {key.removeprefix("C."): value for key, value in calls().items()} == {
        **many, "prop.setter": 3, "prop.deleter": 3,
    }  # fmt: skip


def test_every_way_of_calling_counts():
    @measured
    def fn(*args, **kwargs):
        return 0

    for _ in range(200):  # past the warming of the interpreter's caches
        fn(), fn(1), fn(a=1), fn(*[1]), fn(**{"a": 1}), fn.__call__()
        functools.partial(fn, 1)(), list(map(fn, [1])), sorted([1], key=fn), fn.__get__(1)()
    assert calls() == {"fn": 2000}


def test_errors_and_cancellations():
    import asyncio

    @measured
    def fn(kind):
        if kind:
            raise kind

    class Mine(asyncio.CancelledError): ...

    counter = codetimer.counters[f"{MODULE}.test_errors_and_cancellations.<locals>.fn"]
    for kind in (None, ValueError, KeyboardInterrupt, SystemExit, StopIteration, GeneratorExit, asyncio.CancelledError, Mine):
        try:
            fn(kind)
        except BaseException as error:
            assert type(error) is kind
    with pytest.raises(TypeError):
        fn()
    assert (counter.calls, counter.errors, counter.cancelled, counter.in_flight) == (9, 5, 3, 0)


# ---- what is refused ----


@pytest.mark.parametrize("value", [None, 3, "name", [], object(), staticmethod(3), property(3), functools])
def test_not_callable(value):
    with pytest.raises(TypeError, match="callable"):
        measured(value)


def test_a_str_is_told_how_to_name():
    with pytest.raises(TypeError, match=r"name as measured\(name=...\)\), not 'x' \(str\)"):
        measured("x")


async def coroutine(): ...


async def async_generator():
    yield


def generator():
    yield


class Runs:
    async def __call__(self): ...
    async def method(self): ...


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (coroutine, "coroutine function"),
        (async_generator, "async generator function"),
        (generator, "generator function"),
        (functools.partial(coroutine), "coroutine function"),
        (functools.partial(functools.partial(generator)), "generator function"),
        (Runs().method, "coroutine function"),
        (Runs(), "coroutine function"),
        (staticmethod(coroutine), "coroutine function"),
        (classmethod(generator), "generator function"),
        (property(generator), "generator function"),
        (functools.cached_property(coroutine), "coroutine function"),
        (functools.singledispatchmethod(coroutine), "coroutine function"),
        (functools.lru_cache(coroutine), "coroutine function"),
    ],
)
def test_async_is_refused(value, kind):
    with pytest.raises(TypeError, match=f"cannot measure an? {kind} yet"):
        measured(value)
    assert len(codetimer.counters) == 0


def test_a_class_where_a_function_is_meant():
    class C: ...

    for value in (staticmethod(C), functools.partialmethod(C), functools.cached_property(C)):
        with pytest.raises(TypeError, match="a class cannot stand where a function"):
            measured(value)
    for label in ("name", "help"):
        with pytest.raises(TypeError, match=f"{label}= is for one function"):
            measured(**{label: "x"})(C)


@pytest.mark.parametrize("kind", [int, str, type, object, type(codetimer.counters), codetimer.Result])
def test_immutable_types(kind):
    with pytest.raises(TypeError, match="immutable type"):
        measured(kind)


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ({"name": ""}, ValueError),
        ({"name": 3}, TypeError),
        ({"name": b"x"}, TypeError),
        ({"name": "x" * 65536}, ValueError),
        ({"name": "a\0b"}, ValueError),
        ({"category": "a/b"}, ValueError),
        ({"category": ""}, ValueError),
        ({"category": 3}, TypeError),
        ({"help": 3}, TypeError),
        ({"title": "x"}, TypeError),
    ],
)
def test_wrong_labels(labels, error):
    with pytest.raises(error):
        measured(lambda: None, **labels)
    with pytest.raises(error):
        measured(**labels)(lambda: None)


@pytest.mark.parametrize("name", ["a;b", "new\nline", "tab\t", "\x1b[31m", "ünïcode", "\ud800", "a b", "!x", "*", "x" * 65535])
def test_odd_names_are_names(name):
    fn = measured(lambda: 1, name=name, category="odd")
    assert fn() == 1
    (counter,) = codetimer.counters.values()
    assert counter.calls == 1 and (counter.member == name or name == "\ud800")


def test_types_cannot_be_made_or_subclassed():
    kind = type(measured(lambda: 1))
    for use in (lambda: kind(), lambda: type("S", (kind,), {}), lambda: setattr(kind, "x", 1)):
        with pytest.raises(TypeError):
            use()


# ---- names ----


def test_labels():
    @measured(name="my.member", category="cat", help="What it is.")
    def fn(): ...

    fn()
    assert [*codetimer.counters] == ["cat/my.member"] and codetimer.counters["my.member"].calls == 1


def test_labels_of_a_property():
    class C:
        @measured(name="x", category="c")
        @property
        def p(self): ...

        q = measured(property(lambda self: 1, lambda self, v: None), name="y", category="c")

    assert sorted(codetimer.counters) == ["c/x", "c/y", "c/y.setter"]


def test_same_name_is_same_counter():
    a, b = measured(lambda: 1, name="n.same"), measured(lambda: 2, name="n.same")
    c = measured(lambda: 3, name="n.same", category="other")
    assert (a(), b(), c()) == (1, 2, 3)
    assert {key: counter.calls for key, counter in codetimer.counters.items()} == {"n/n.same": 2, "other/n.same": 1}


class Outer:
    class Inner:
        @staticmethod
        def static(): ...

        @property
        def prop(self): ...

        def __call__(self): ...


@pytest.mark.parametrize(
    ("value", "member"),
    [
        (generator.__call__, None),
        (calls, f"{MODULE}.calls"),
        (Outer.Inner.static, f"{MODULE}.Outer.Inner.static"),
        (Outer.Inner.prop, f"{MODULE}.Outer.Inner.prop"),
        (Outer.Inner(), f"{MODULE}.Outer.Inner.__call__"),
        (len, "builtins.len"),
        ([].append, "builtins.list.append"),
        (str.upper, "builtins.str.upper"),
        (functools.reduce, "_functools.reduce"),
        (functools.partial(calls), f"{MODULE}.calls"),
        (functools.partial(Outer), "functools.partial.__call__"),
        (Outer.Inner().__call__, f"{MODULE}.Outer.Inner.__call__"),
    ],
)
def test_members(value, member):
    measured(value)
    names = [counter.member for counter in codetimer.counters.values()]
    assert len(names) == 1 and (member is None or names == [member])


NAMES = """
    import codetimer
    @codetimer.measured
    def fn(): ...
    print(*codetimer.counters)
"""


def test_main_as_script(tmp_path):
    assert run(NAMES, directory=tmp_path) == ["script/script.fn"]


def test_main_as_module(tmp_path):
    assert run(NAMES, "-m", "pkg.mod", name="pkg/mod.py", directory=tmp_path) == ["pkg/pkg.mod.fn"]


def test_main_of_package(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").touch()
    assert run(NAMES, "-m", "pkg", name="pkg/__main__.py", directory=tmp_path) == ["pkg/pkg.fn"]


def test_main_from_text(tmp_path):
    assert run(NAMES, "-c", textwrap.dedent(NAMES), directory=tmp_path) == ["__main__/__main__.fn"]


def test_main_in_spawned_process(tmp_path):
    source = """
        import multiprocessing, codetimer
        @codetimer.measured
        def fn(x): return list(codetimer.counters)
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(*pool.map(fn, [1])[0])
    """
    assert run(source, directory=tmp_path) == ["script/script.fn"]


# ---- twice ----


def test_twice_is_once():
    fn = measured(lambda: 1)
    assert measured(fn) is fn and measured(name="other")(fn) is fn and len(codetimer.counters) == 1
    for kind in (staticmethod, classmethod, property, functools.cached_property, functools.partial):
        thing = measured(kind(fn))
        assert measured(thing) is thing, kind
    method = measured(functools.singledispatchmethod(lambda self: 1))
    assert measured(method) is method

    @measured
    class C:
        def m(self): ...

    before = dict(C.__dict__)
    assert measured(C) is C and all(C.__dict__[name] is value for name, value in before.items())


# ---- classes ----


def members(kind):
    return {name for name, value in kind.__dict__.items() if "Measured" in type(value).__name__}


def test_class():
    class Meta(type):
        def __setattr__(cls, name, value):
            raise AssertionError("attributes are set as type does")

    class Base:
        def inherited(self):
            return "base"

    @measured
    class C(Base, metaclass=Meta):
        constant = 3
        builtin = len
        alias_of_type = int
        partial = functools.partial(len)

        def __init__(self):
            self.v = 1

        def m(self):
            return "m"

        def __add__(self, other):
            return "add"

        __radd__ = __add__
        shortcut = lambda self: "lambda"

        @staticmethod
        def s():
            return "s"

        @classmethod
        def k(cls):
            return cls

        @property
        def p(self):
            return "p"

        @p.setter
        def p(self, value): ...

        @functools.cached_property
        def lazy(self):
            return []

        @functools.lru_cache
        def cached(self):
            return []

        def __getattribute__(self, name):
            return super().__getattribute__(name)

        def __setattr__(self, name, value):
            super().__setattr__(name, value)

        def __delattr__(self, name):
            super().__delattr__(name)

        def __del__(self): ...
        def __new__(cls):
            return super().__new__(cls)

        def __class_getitem__(cls, item):
            return item

        def __init_subclass__(cls): ...

        class Nested:
            def m(self): ...

    assert isinstance(C, Meta) and C.Nested.m.__class__ is type(C.Nested.m) and members(Base) == set()
    assert members(C) == {"__init__", "m", "__add__", "__radd__", "shortcut", "cached"}
    assert C.__add__ is C.__radd__ and C.builtin is len and C.alias_of_type is int
    c = C()
    c.p = 1
    seen = [c.m(), c + 1, 1 + c, c.shortcut(), c.s(), c.k(), c.p, c.lazy is c.lazy, c.cached() is c.cached(), c.inherited()]
    assert seen == ["m", "add", "add", "lambda", "s", C, "p", True, True, "base"]
    assert {key.removeprefix("C."): value for key, value in calls().items()} == {
        "__init__": 1, "m": 1, "__add__": 2, "shortcut": 1, "s": 1, "k": 1, "p": 1, "p.setter": 1, "lazy": 1, "cached": 2,
    }  # fmt: skip
    with pytest.raises(AttributeError, match="property 'p' of 'test_class.<locals>.C' object has no deleter|can't delete"):
        del c.p
    assert C.lazy.attrname == "lazy"


def test_class_generated():
    @measured
    @dataclasses.dataclass(order=True)
    class D:
        x: int = 1

        def total(self):
            return self.x

    @measured
    class N(typing.NamedTuple):
        x: int = 1

        def total(self):
            return self.x

    @measured
    @functools.total_ordering
    class T:
        def __lt__(self, other):
            return True

    @measured
    class E(enum.Enum):
        A = 1

        def low(self):
            return self.name.lower()

        @classmethod
        def _missing_(cls, value):
            return cls.A

    @measured
    class S:
        __slots__ = ("a", "b")

        def total(self):
            return 1

    @measured
    class P(typing.Protocol):
        def total(self): ...

    empty = measured(collections.namedtuple("Empty", "x"))
    assert [members(kind) for kind in (D, N, T, E, S, P, empty)] == [
        {"total"}, {"total"}, {"__lt__"}, {"low"}, {"total"}, {"total"}, set(),
    ]  # fmt: skip
    assert D(2).total() == N(2).total() == 2 and T() < T() and E.A.low() == "a" and E(5) is E.A and S().total() == 1


def test_class_decorated():
    def without_wraps(function):
        return lambda self: function(self)

    @measured
    class C:
        @without_wraps
        def m(self):
            return 1

        @measured(name="given", category="c")
        def own(self): ...

    C().m(), C().own()
    assert calls() == {"C.m": 1, "given": 1}


def test_class_with_async(caplog):
    with caplog.at_level(logging.WARNING, "codetimer"):

        @measured
        class C:
            async def a(self): ...
            def g(self):
                yield

            @property
            def p(self):
                yield

            def m(self): ...

    (record,) = caplog.records
    assert "C.{a, g, p}" in record.getMessage() and "cannot be measured yet" in record.getMessage()
    assert members(C) == {"m"} and isinstance(C.__dict__["p"], property)


def test_class_is_left_whole_by_an_error():
    class C:
        def a(self): ...
        def b(self): ...

    before = dict(C.__dict__)
    with pytest.raises(ValueError):
        measured(category="a/b")(C)
    assert all(C.__dict__[name] is value for name, value in before.items())


def test_category_of_a_class():
    @measured(category="shop")
    class C:
        def a(self): ...

    assert [counter.category for counter in codetimer.counters.values()] == ["shop"]


# ---- no room ----


def test_full(tmp_path):
    source = """
        import os; os.environ["CODETIMER_MAX_COUNTERS"] = "2"
        import codetimer, logging
        lines = []
        handler = logging.Handler(); handler.emit = lambda record: lines.append(record.getMessage())
        logging.getLogger("codetimer").addHandler(handler)
        bare = [lambda i=i: i for i in range(100000)]
        fns = [codetimer.measured(fn, name=f"n.f{i}") for i, fn in enumerate(bare)]
        assert [f() for f in fns] == list(range(100000))
        assert all(a is b for a, b in zip(bare[2:], fns[2:]))
        class C:
            @codetimer.measured
            @property
            def p(self): return 1
        print(len(codetimer.counters), C().p, len(lines))
    """
    assert run(source, directory=tmp_path) == ["2", "1", "1"]
