# SPDX-License-Identifier: MIT
"""A module that is loaded twice, with a decorator that does nothing and with codetimer.measured, and how to put the
same question to both."""

import importlib.util
import inspect
import sys
import textwrap
import types

import codetimer
import pytest

SOURCE = textwrap.dedent('''
    import abc, dataclasses, enum, functools, typing

    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs)
        return wrapper

    @mark
    def plain(a: int, b: "list[int]" = (), /, c=3, *rest: str, d, e: "Later" = None, **more) -> "Later":
        """What it does.

        >>> plain(1, d=2)
        (1, (), 3, (), 2, None, {})
        """
        return (a, b, c, rest, d, e, more)

    class Later: pass

    quick = mark(lambda x, y=2: (x, y))

    @mark
    def raises(kind):
        local = 1
        raise kind("on purpose")

    @mark
    def closure(n):
        @mark
        def inner(m): return n + m
        return inner

    @mark
    @decorator
    def decorated(a, b=1): return a + b

    @decorator
    @mark
    def inside(a, b=1): return a + b

    @mark
    @functools.lru_cache(maxsize=8)
    def cached(x): return [x]

    @functools.lru_cache(maxsize=8)
    @mark
    def caches(x): return [x]

    @mark
    @functools.singledispatch
    def single(x, *more): return "object"

    @single.register
    def _(x: int, *more): return "int"

    part = mark(functools.partial(plain, 1, c=5))

    class Base:
        def __init__(self, v=0): self.v = v
        def over(self): return ["base"]
        @classmethod
        def make(cls): return ("base", cls)

    class Thing(Base):
        """A thing."""
        @mark
        def __init__(self, v=1):
            super().__init__(v)
        @mark
        def over(self): return super().over() + ["thing"]
        @mark
        @classmethod
        def make(cls): return super().make() + ("thing",)
        @classmethod
        @mark
        def made(cls, *a): return (cls, a)
        @mark
        @staticmethod
        def static(a, b: int = 2) -> int:
            """Static."""
            return a + b
        @staticmethod
        @mark
        def stat(a): return a
        @mark
        @property
        def prop(self) -> int:
            """A property."""
            return self.v
        @prop.setter
        def prop(self, value): self.v = value
        @prop.deleter
        def prop(self): self.v = None
        @property
        @mark
        def inner(self):
            """Another."""
            return -self.v
        @mark
        @functools.cached_property
        def lazy(self):
            """Once."""
            return [self.v]
        pair = mark(functools.partialmethod(over))
        add = mark(functools.partialmethod(lambda self, a, b=0: (self.v, a, b), 5, b=6))
        @mark
        @functools.lru_cache
        def remembered(self, x): return [x]
        @mark
        @functools.singledispatchmethod
        def dispatch(self, x):
            """Dispatch."""
            return "object"
        @dispatch.register
        def _(self, x: int): return "int"
        @mark
        def __len__(self): return 7
        @mark
        def __getitem__(self, key): return key
        @mark
        def __eq__(self, other): return isinstance(other, Thing) and self.v == other.v
        @mark
        def __hash__(self): return hash(self.v)
        @mark
        def __call__(self, *a): return a
        @mark
        def __enter__(self): return self
        @mark
        def __exit__(self, *what): return True
        @mark
        def __add__(self, other): return ("add", other)
        __radd__ = __add__
        @mark
        def __contains__(self, x): return x == 1
        @mark
        def __bool__(self): return False
        @mark
        def __repr__(self): return f"Thing({self.v})"
        @mark
        def __private(self): return "private"
        def public(self): return self.__private()

    class Abstract(abc.ABC):
        @mark
        @abc.abstractmethod
        def one(self): ...
        @abc.abstractmethod
        @mark
        def two(self): ...
        @mark
        @property
        @abc.abstractmethod
        def three(self): ...
        @mark
        @classmethod
        @abc.abstractmethod
        def four(cls): ...
        @mark
        def five(self): return 5

    @dataclasses.dataclass(order=True)
    class Data:
        x: int
        y: int = 2
        @mark
        def total(self): return self.x + self.y
        @mark
        def __post_init__(self): self.z = self.x

    class Color(enum.Enum):
        RED = 1
        BLUE = 2
        @mark
        def lower(self): return self.name.lower()
        @mark
        @classmethod
        def first(cls): return cls.RED
        @mark
        @classmethod
        def _missing_(cls, value): return cls.BLUE
        @mark
        def __str__(self): return "color " + self.name

    class Named(typing.NamedTuple):
        a: int
        b: int = 2
        @mark
        def total(self): return self.a + self.b

    class Slotted:
        __slots__ = ("v",)
        @mark
        def get(self): return self.v

    @typing.runtime_checkable
    class Proto(typing.Protocol):
        @mark
        def over(self): ...

    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        @mark
        def get(self, item: T) -> T: return item
''')


def load(directory, mark):
    """The module, with "mark" as its decorator, in the place where imports find it."""
    path = directory / "transparent_case.py"
    path.write_text(SOURCE, "utf-8")
    spec = importlib.util.spec_from_file_location("transparent_case", path)
    module = importlib.util.module_from_spec(spec)
    module.mark = mark
    sys.modules["transparent_case"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    directory = tmp_path_factory.mktemp("transparency")
    bare, measured = load(directory, lambda x: x), load(directory, codetimer.measured)
    LOADED[:] = bare, measured
    yield bare, measured
    del sys.modules["transparent_case"]


def plainly(answer, seen=()):
    """An answer without what differs between two loads of a module: identities and addresses."""
    if isinstance(answer, (str, int, float, type(None), bytes)):
        return answer
    if isinstance(answer, types.CodeType):
        return (answer.co_code, answer.co_name, answer.co_flags)
    if isinstance(answer, inspect.Signature):
        return str(answer)
    if isinstance(answer, (list, tuple)) and type(answer) in (list, tuple):
        return [plainly(x, seen) for x in answer]
    if isinstance(answer, (dict, types.MappingProxyType)):
        return {
            str(k): plainly(v, (*seen, id(answer)))
            for k, v in answer.items()
            if k not in ("__wrapped__", "__builtins__", "mark") and id(answer) not in seen and len(answer) < 40
        }
    return answer.__class__.__name__


LOADED = []


def ask(question, *objects):
    """The answers of the bare and of the measured one: a value, or the type and text of what is raised."""
    answers = []
    for one, module in zip(objects, LOADED, strict=False):
        sys.modules["transparent_case"] = module
        try:
            answers.append(plainly(question(one)))
        except Exception as error:
            answers.append((type(error).__name__, str(error).split(" at 0x")[0].split(", got ")[0]))
    return answers


def agree(question, *objects):
    bare, measured = ask(question, *objects)
    assert bare == measured
