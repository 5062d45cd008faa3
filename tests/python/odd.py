# SPDX-License-Identifier: MIT
"""A module in which instrument() finds what it may find in a program; use() uses it all. See test_instrument_odd.py."""

import abc
import collections
import contextlib
import dataclasses
import enum
import functools
import typing

import codetimer


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: int
    def twice(self):
        return 2 * self.x

class Slots:
    __slots__ = ("__weakref__", "x")
    def __init__(self):
        self.x = 1
    def get(self):
        return self.x

class Meta(type):
    forbidden = property(lambda cls: "of the metaclass")
    def __setattr__(cls, name, value):
        raise AssertionError("assigned")
    def __getattribute__(cls, name):
        if name not in ("__class__", "__mro__", "__dict__", "__name__", "mro") and not name.startswith("__"):
            LOOKED.append(name)
        return type.__getattribute__(cls, name)
    def made(cls):
        return cls()

LOOKED = []

class Strict(metaclass=Meta):
    def method(self):
        return 1

class Color(enum.Enum):
    RED = 1
    def label(self):
        return self.name.lower()
    @classmethod
    def first(cls):
        return cls.RED

class Abstract(abc.ABC):
    @abc.abstractmethod
    def must(self): ...
    @property
    @abc.abstractmethod
    def value(self): ...

class Concrete(Abstract):
    def must(self):
        return 1
    @property
    def value(self):
        return 2

@typing.runtime_checkable
class Speaks(typing.Protocol):
    def must(self): ...

Point = collections.namedtuple("Point", "x y")

class Named(typing.NamedTuple):
    x: int
    def sum(self):
        return self.x + 1

@functools.singledispatch
def show(x):
    return "any"

@show.register
def show_int(x: int):
    return "int"

class Dispatch:
    @functools.singledispatchmethod
    def show(self, x):
        return "any"
    @show.register
    def _(self, x: int):
        return "int"

class Base:
    def greet(self):
        return "base"
    @property
    def both(self):
        return 1
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.seen = True

class Derived(Base):
    def greet(self):
        return super().greet() + "+"
    @Base.both.setter
    def both(self, value):
        self.kept = value
    partly = functools.partialmethod(greet)

class Loud:
    @property
    def __class__(self):
        raise AssertionError("asked for its class")
    def __getattr__(self, name):
        raise AssertionError("asked for " + name)
    def __eq__(self, other):
        raise AssertionError("compared")
    __hash__ = None

loud = Loud()

class Effect:
    @property
    def price(self):
        raise AssertionError("computed")

@codetimer.measured
def measured(x):
    return x

def plain(x):
    return x

plain.note = ["kept"]

@contextlib.contextmanager
def managed():
    yield 1

@functools.wraps(plain)
@functools.cache
def cached(x):
    return x

outer_cached = functools.lru_cache(plain)
half = functools.partial(plain, 1)
instance = Base()
bound = instance.greet

def use():
    assert Frozen(1).twice() == 2 and Frozen(1) == Frozen(1) and hash(Frozen(1))
    assert Slots().get() == 1
    assert Strict().method() == 1 and Strict.made().method() == 1
    assert Color.RED.label() == "red" and Color.first() is Color.RED and list(Color) == [Color.RED]
    assert Concrete().must() == 1 and Concrete().value == 2
    assert isinstance(Concrete(), Speaks) and not isinstance(1, Speaks)
    assert Point(1, 2)._replace(x=3).x == 3 and Named(1).sum() == 2
    assert show(1) == "int" and show("") == "any" and show.dispatch(int) is show.registry[int]
    assert Dispatch().show(1) == "int" and Dispatch().show("") == "any"
    derived = Derived()
    assert derived.greet() == "base+" == derived.partly() and derived.both == 1 and Derived.seen
    derived.both = 3
    assert derived.kept == 3
    assert measured(1) == 1 == plain(1) == half() == outer_cached(1) and bound() == "base"
    with managed() as value:
        assert value == 1
    assert plain.note == ["kept"]
    try:
        Abstract()
    except TypeError:
        return "used"
