# SPDX-License-Identifier: MIT
"""Guards that measured counts every kind of callable, in every way of calling it, once, and under which name. Fails if
something is counted under another name, twice, or not at all."""

import functools
import textwrap

import codetimer
import measuring
import pytest
from codetimer import measured

MODULE = __name__
fresh = measuring.fresh
run = measuring.run


def calls():
    return measuring.calls(MODULE)


# ---- what is counted ----


def make_class():
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
        @functools.lru_cache  # noqa: B019
        def cached(self): ...

        @functools.lru_cache  # noqa: B019
        @measured
        def caches(self): ...

    return C


def test_every_kind_counts():
    @measured
    def fn(): ...

    C = make_class()
    c = C()
    for _ in range(3):
        fn(), c.method(), C.method(c), c.static(), C.static(), c.static2(), c.clas(), C.clas(), c.clas2()
        c.prop, setattr(c, "prop", 1), delattr(c, "prop")
        c.lazy, c.part(), c.dispatch(1), c.dispatch(""), c.cached(), c.caches()
    assert {key.removeprefix("C."): value for key, value in calls().items()} == {
        "fn": 3, "method": 6, "static": 6, "static2": 3, "clas": 6, "clas2": 3, "prop": 3, "prop.setter": 3,
        "prop.deleter": 3, "lazy": 1, "base": 3, "dispatch": 6, "cached": 3, "caches": 1,
    }  # fmt: skip


def test_every_way_of_calling_counts():
    @measured
    def fn(*args, **kwargs):
        return 0

    keywords = {"a": 1}
    for _ in range(200):  # past the warming of the interpreter's caches
        fn(), fn(1), fn(a=1), fn(*[1]), fn(**keywords), fn.__call__()
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
    errors = None, ValueError, KeyboardInterrupt, SystemExit, StopIteration
    for kind in (*errors, GeneratorExit, asyncio.CancelledError, Mine):
        try:
            fn(kind)
        except BaseException as error:
            assert type(error) is kind
    with pytest.raises(TypeError):
        fn()
    assert (counter.calls, counter.errors, counter.cancelled, counter.in_flight) == (9, 5, 3, 0)


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
    assert names == [member]


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
        def fn(x):
            (counter,) = codetimer.counters.values()
            return counter.key, x + 1, counter.calls, counter.in_flight
        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                for answer in pool.map(fn, [1, 2]): print(*answer)
    """
    assert run(source, directory=tmp_path) == [*"script/script.fn 2 0 1".split(), *"script/script.fn 3 1 1".split()]


# ---- twice ----


def test_twice_is_once():
    fn = measured(lambda: 1)
    assert measured(fn) is fn and measured(name="other")(fn) is fn and len(codetimer.counters) == 1
    for kind in (staticmethod, classmethod, property, functools.cached_property, functools.partial):
        thing = measured(kind(fn))
        assert measured(thing) is thing, kind
    assert measured(functools.wraps(fn)(around := lambda: fn())) is around and len(codetimer.counters) == 1
    method = measured(functools.singledispatchmethod(lambda self: 1))
    assert measured(method) is method

    @measured
    class C:
        def m(self): ...

    method = C().m
    assert measured(method) is method
    before = dict(C.__dict__)
    assert measured(C) is C and all(C.__dict__[name] is value for name, value in before.items())
