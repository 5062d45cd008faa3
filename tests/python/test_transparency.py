# SPDX-License-Identifier: MIT
"""Guards that nobody can tell a measured function from the bare one, but by type() and __wrapped__. The same module is
loaded twice, with a decorator that does nothing and with codetimer.measured; every question is put to both, and fails if
the answers differ."""

import abc
import ast
import asyncio
import contextlib
import copy
import dataclasses
import doctest
import enum
import functools
import gc
import importlib.util
import inspect
import io
import multiprocessing
import pickle
import pydoc
import sys
import textwrap
import traceback
import types
import typing
import unittest.mock
import weakref

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

FUNCTIONS = "plain quick raises closure decorated inside cached caches single part".split()
METHODS = (
    "__init__ over make made static stat prop inner lazy pair add remembered dispatch __len__ __getitem__ __eq__ __hash__ "
    "__call__ __enter__ __exit__ __add__ __radd__ _Thing__private public"
).split()
ATTRIBUTES = (
    "__name__ __qualname__ __module__ __doc__ __defaults__ __kwdefaults__ __annotations__ __dict__ __code__ __closure__ "
    "__type_params__ __isabstractmethod__ __text_signature__ __signature__ __self__ __func__ cache_info "
    "registry func args keywords __slots__ nothing"
).split()


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
    for one, module in zip(objects, LOADED):
        sys.modules["transparent_case"] = module
        try:
            answers.append(plainly(question(one)))
        except Exception as error:
            answers.append((type(error).__name__, str(error).split(" at 0x")[0].split(", got ")[0]))
    return answers


def agree(question, *objects):
    bare, measured = ask(question, *objects)
    assert bare == measured


def each(both, name):
    """(bare, measured) of a function of the module, or of Thing.name: as the class has it, and as it gives it out."""
    bare, measured = both
    if hasattr(bare, name):
        yield getattr(bare, name), getattr(measured, name)
        return
    yield bare.Thing.__dict__[name], measured.Thing.__dict__[name]
    yield getattr(bare.Thing, name), getattr(measured.Thing, name)
    yield getattr(bare.Thing(3), name), getattr(measured.Thing(3), name)


def isfunction_is_the_same(one):
    return {p.__name__: p(one) for p in PREDICATES}


PREDICATES = [getattr(inspect, name) for name in dir(inspect) if name.startswith("is") and name != "isawaitable"]


# ---- what can be asked ----


def test_the_measured_ones_are_measured(both):
    for name in FUNCTIONS[:8]:
        assert "Measured" in type(getattr(both[1], name)).__name__ or name in ("inside", "caches")


@pytest.mark.parametrize("name", FUNCTIONS + METHODS)
def test_attributes(both, name):
    for pair in each(both, name):
        for attribute in ATTRIBUTES:
            agree(lambda one, a=attribute: getattr(one, a), *pair)
            agree(lambda one, a=attribute: hasattr(one, a), *pair)


@pytest.mark.parametrize("name", FUNCTIONS + METHODS)
def test_inspect(both, name):
    for pair in each(both, name):
        agree(isfunction_is_the_same, *pair)
        for question in (
            inspect.signature, inspect.getsource, inspect.getdoc, inspect.getfile, inspect.getmodule,
            inspect.getfullargspec, inspect.getcomments, inspect.getsourcelines, callable, dir, repr, str,
            typing.get_type_hints, lambda one: isinstance(one, types.FunctionType), lambda one: bool(one),
            lambda one: one == one and hash(one) == hash(one), lambda one: one != one,
            lambda one: inspect.signature(one, follow_wrapped=False), inspect.getattr_static,
        ):  # fmt: skip
            if question in (repr, str):
                agree(lambda one, q=question: q(one).split(" at 0x")[0].split(" object ")[0], *pair)
            else:
                agree(question, *pair)


@pytest.mark.parametrize("name", FUNCTIONS[:9])
def test_pickle_copy(both, name):
    pair = [getattr(one, name) for one in both]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for dumps in (pickle.dumps, pickle._dumps):
            agree(lambda one, p=protocol, d=dumps: pickle.loads(d(one, p)) is one, *pair)
    assert name == "quick" or pickle.loads(pickle.dumps(pair[1])) is pair[1]
    agree(lambda one: copy.copy(one) is one and copy.deepcopy([one])[0] is one, *pair)


def test_pickle_of_methods(both):
    thing = both[1].Thing(4)
    sys.modules["transparent_case"] = both[1]
    for dumps in (pickle.dumps, pickle._dumps):
        assert pickle.loads(dumps(thing.over))() == ["base", "thing"]
        assert pickle.loads(dumps(both[1].Thing.over)) is both[1].Thing.over
        assert pickle.loads(dumps(both[1].Thing.make))()[0] == "base"
        assert pickle.loads(dumps(both[1].part))(d=1) == (1, (), 5, (), 1, None, {})


def test_help(both):
    def read(module, name):
        text = pydoc.render_doc(getattr(module, name), renderer=pydoc.plaintext)
        return text.split("\n", 1)[name in ("cached", "caches")].split(" at 0x")[0]  # their title is that of type()

    for name in (*FUNCTIONS, "Thing", "Data", "Color"):
        agree(lambda module, n=name: read(module, n), *both)


def test_doctest(both):
    def run(module):
        tests = doctest.DocTestFinder().find(module)
        return [(test.name, *doctest.DocTestRunner().run(test)) for test in tests]

    agree(run, *both)
    assert [name for name, failed, attempted in run(both[1]) if attempted > failed] == ["transparent_case.plain"]


def test_weakref(both):
    for one in (both[1].plain, both[1].quick, both[1].Thing.over, both[1].closure(1)):
        assert weakref.ref(one)() is one


# ---- what can be set ----


@pytest.mark.parametrize("attribute", ["mark", "__doc__", "__name__", "__qualname__", "__defaults__", "__annotations__"])
def test_setting(attribute):
    def make():
        def fn(a, b=1):
            "doc"
            return a, b

        return fn

    values = {"__defaults__": (5,), "__annotations__": {"a": int}}
    bare, measured = make(), codetimer.measured(make())
    for one in (bare, measured):
        setattr(one, attribute, values.get(attribute, "text"))
    agree(lambda one: getattr(one, attribute), bare, measured)
    agree(lambda one: one(1), bare, measured)
    agree(lambda one: one.__dict__, bare, measured)
    agree(lambda one: delattr(one, attribute), bare, measured)
    agree(lambda one: getattr(one, attribute), bare, measured)
    agree(lambda one: setattr(one, "__code__", (lambda a, b: a + b).__code__), bare, measured)
    agree(lambda one: one(1, 2), bare, measured)
    for wrong in ("__code__", "__closure__", "__globals__", "__dict__"):
        agree(lambda one, w=wrong: setattr(one, w, 3), bare, measured)


def test_wraps_and_wrapped_again():
    @codetimer.measured
    def fn(a, b: int = 2):
        "doc"
        return a + b

    @functools.wraps(fn)
    def around(*args, **kwargs):
        return fn(*args, **kwargs)

    assert around(1) == 3 and around.__wrapped__ is fn and around.__doc__ == "doc"
    assert inspect.signature(around) == inspect.signature(fn) == inspect.signature(fn.__wrapped__)
    functools.update_wrapper(fn, test_doctest)
    assert fn.__name__ == "test_doctest" and fn.__wrapped__ is not test_doctest and str(inspect.signature(fn)) == "(both)"


def test_mock():
    @codetimer.measured
    def fn(a, b): ...

    spec = unittest.mock.create_autospec(fn)
    spec(1, b=2)
    spec.assert_called_once_with(1, 2)
    with pytest.raises(TypeError):
        spec(1)

    class C:
        @codetimer.measured
        def m(self, x):
            return x

    with unittest.mock.patch.object(C, "m", autospec=True, return_value=9) as patched:
        assert C().m(1) == 9 and patched.call_count == 1
    assert C().m(1) == 1


# ---- what can be called ----


def test_calls(both):
    for question in (
        lambda m: m.plain(1, 2, 3, 4, d=5, e=6, f=7), lambda m: m.plain(1), lambda m: m.plain(1, d=2, **{"x": 3}),
        lambda m: m.plain(*range(5), d=1), lambda m: m.plain(a=1, d=1), lambda m: m.quick(), lambda m: m.quick(y=1, x=2),
        lambda m: m.closure(1)(2), lambda m: m.decorated(1), lambda m: m.inside(1), lambda m: m.cached(1) is m.cached(1),
        lambda m: m.caches(1) is m.caches(1), lambda m: m.cached.cache_info(), lambda m: m.cached.cache_clear(),
        lambda m: [m.single(1), m.single(""), m.single.dispatch(int)(3), sorted(map(str, m.single.registry))],
        lambda m: m.part(d=1), lambda m: m.part.func(1, d=2), lambda m: m.part.args, lambda m: isinstance(m.part, functools.partial),
        lambda m: m.single.register(str, lambda x: "str")("x"), lambda m: m.single("x"),
    ):  # fmt: skip
        agree(question, *both)


def test_methods(both):
    def use(module):
        t = module.Thing(3)
        seen = [t.over(), module.Thing.over(t), t.make()[0], module.Thing.make()[2], t.made(1)[1], t.static(1), t.stat(2)]
        seen += [t.prop, t.inner, t.lazy is t.lazy, t.pair(), t.add(), t.remembered(1) is t.remembered(1)]
        seen += [t.dispatch(1), t.dispatch("x"), len(t), t[5], t == module.Thing(3), t != module.Thing(4), hash(t), t(1)]
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


def test_kinds_stay(both):
    for name in METHODS:
        bare, measured = (one.Thing.__dict__[name] for one in both)
        assert isinstance(measured, type(bare)), name
    assert isinstance(both[1].Thing.over, types.FunctionType) and inspect.isfunction(both[1].Thing.over)
    assert inspect.ismethod(both[1].Thing().over) and both[1].Thing.over is both[1].Thing.over


def test_abstract(both):
    def use(module):
        assert module.Abstract.__abstractmethods__ == {"one", "two", "three", "four"}

        class Half(module.Abstract):
            one = two = three = four = None

        return Half().five()

    agree(use, *both)
    agree(lambda m: m.Abstract(), *both)
    assert use(both[1]) == 5


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


def test_spawned_process():
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        assert pool.map(spawned, [1, 2]) == [(2, 1), (3, 2)]


@codetimer.measured
def spawned(x):
    counter = next(c for key, c in codetimer.counters.items() if key.endswith("test_transparency.spawned"))
    return x + 1, counter.calls + counter.in_flight


def test_gc_sees_through():
    def make():
        def fn():
            return fn

        return codetimer.measured(fn)

    fn = make()
    assert fn.__wrapped__ in gc.get_referents(fn)
    assert abc.ABC and ast and dataclasses
