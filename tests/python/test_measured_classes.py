# SPDX-License-Identifier: MIT
"""Guards what measured does to a class: its own functions are measured, in place, and nothing else. Fails if a class is
changed where it must not be, or something in its body goes unmeasured."""

import collections
import dataclasses
import enum
import functools
import typing

import codetimer
import measuring
import pytest
from codetimer import measured

fresh = measuring.fresh


def calls():
    return measuring.calls(__name__)


def members(kind):
    return {name for name, value in kind.__dict__.items() if "Measured" in type(value).__name__}


class Meta(type):
    def __setattr__(cls, name, value):
        raise AssertionError("attributes are set as type does")


class Base:
    def inherited(self):
        return "base"


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

    @functools.lru_cache  # noqa: B019
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


def test_class():
    measured(C)
    assert isinstance(C, Meta) and C.Nested.m.__class__ is type(C.Nested.m) and members(Base) == set()
    assert members(C) == {"__init__", "m", "__add__", "__radd__", "shortcut", "cached"}
    assert C.__add__ is C.__radd__ and C.builtin is len and C.alias_of_type is int
    c = C()
    c.p = 1
    assert [c.m(), c + 1, 1 + c, c.shortcut(), c.s(), c.k(), c.p] == ["m", "add", "add", "lambda", "s", C, "p"]
    assert c.lazy is c.lazy and c.cached() is c.cached() and c.inherited() == "base"
    assert {key.removeprefix("C."): value for key, value in calls().items()} == {
        "__init__": 1, "m": 1, "__add__": 2, "shortcut": 1, "s": 1, "k": 1, "p": 1, "p.setter": 1, "lazy": 1,
        "cached": 2,
    }  # fmt: skip
    with pytest.raises(AttributeError, match=r"property 'p' of 'C' object has no deleter|can't delete"):
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


def test_class_whose_metaclass_does_not_answer():
    class Mute(type):
        def __getattribute__(cls, name):
            if name in ("__qualname__", "__module__", "__name__"):
                raise AttributeError(name)
            return super().__getattribute__(name)

    class C(metaclass=Mute):
        def a(self): ...
        def __call__(self): ...

    assert measured(C) is C and members(C) == {"a", "__call__"}
    C().a()
    (counter,) = [counter for counter in codetimer.counters.values() if counter.member.endswith(".C.a")]
    assert counter.calls == 1 and counter.member.startswith(__name__)

    class Plain(metaclass=Mute):
        __call__ = len

    assert measured(Plain()).__class__ is Plain
    assert any(key.endswith(".Plain.__call__") for key in codetimer.counters)


def test_ctrl_c_in_what_is_asked_is_not_lost():
    class Asked:
        def __call__(self): ...

        def __getattr__(self, name):
            if name != "__qualname__":
                raise AttributeError(name)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(Asked())
