# SPDX-License-Identifier: MIT
"""Guards subclasses of what holds functions (properties, static and class methods, partials): measured they are as they
were made, whatever arguments their own constructor wants and whatever it keeps. Fails if that constructor is called
once more, or if an attribute or a slot is lost."""

import functools

import codetimer
import measuring
import pytest

fresh = measuring.fresh
made = []


class Route(staticmethod):
    def __init__(self, function, path="/"):
        super().__init__(function)
        self.path = path
        made.append(self)


class Kind(classmethod):
    def __init__(self, function, *, path):
        super().__init__(function)
        self.path = path
        made.append(self)


class Once(property):
    """As the cached properties of several libraries are."""

    def __init__(self, fget, path="/", doc=None):
        super().__init__(fget, doc=doc)
        self.path = path
        self.__name__ = fget.__name__
        made.append(self)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        return instance.__dict__.setdefault(f"cached {self.path}", self.fget(instance))


class Slotted(property):
    __slots__ = ("__doc__", "__mangled", "path", "unset")

    def __init__(self, path, fget):
        super().__init__(fget)
        self.path, self.__mangled = path, "mangled"
        made.append(self)

    def hidden(self):
        return self.__mangled


class Cached(functools.cached_property):
    def __init__(self, path, function):
        super().__init__(function)
        self.path = path
        made.append(self)


class Partial(functools.partial):
    __slots__ = ("path",)

    def __new__(cls, path, function, *args, **keywords):
        self = super().__new__(cls, function, *args, **keywords)
        self.path = path
        made.append(self)
        return self

    def __init__(self, path, *args, **keywords):
        assert path == "/users"


def users(*args):
    """The users."""
    return "users"


KINDS = {
    "static method": lambda: Route(users, path="/users"),
    "class method": lambda: Kind(users, path="/users"),
    "property": lambda: Once(users, "/users", "Their own."),
    "property with slots": lambda: Slotted("/users", users),
    "cached property": lambda: Cached("/users", users),
    "partial": lambda: Partial("/users", users, 1),
}


def call(thing):
    if isinstance(thing, functools.partial):
        return thing()

    class C:
        member = thing

    if isinstance(thing, functools.cached_property):
        thing.__set_name__(C, "member")
    value = C().member
    return value() if callable(value) else value


@pytest.mark.parametrize("name", KINDS)
def test_it_is_as_it_was_made(name):
    bare = KINDS[name]()
    count = len(made)
    thing = codetimer.measured(bare)
    assert len(made) == count and thing is not bare and type(thing) is type(bare)
    assert thing.path == "/users" and call(thing) == call(bare) == "users"
    assert thing.__doc__ == bare.__doc__
    (counter,) = codetimer.counters.values()
    assert counter.calls == 1
    assert not hasattr(thing, "unset") and getattr(thing, "hidden", lambda: "mangled")() == "mangled"


def test_in_a_measured_class():
    class C:
        listed = Route(users, path="/listed")
        kept = Once(users, "/kept")

    count = len(made)
    assert codetimer.measured(C) is C and len(made) == count
    assert C.__dict__["listed"].path == "/listed" and C.kept.path == "/kept"
    assert C.listed() == C().kept == "users"
    assert {counter.calls for counter in codetimer.counters.values()} == {1} and len(codetimer.counters) == 2
