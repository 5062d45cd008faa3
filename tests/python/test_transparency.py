# SPDX-License-Identifier: MIT
"""Guards that nobody can tell a measured function from the bare one by asking, but by type() and __wrapped__. Every
question is put to a bare and to a measured module (transparency.py); fails if the answers differ."""

import copy
import doctest
import functools
import gc
import inspect
import pickle
import pydoc
import sys
import types
import typing
import unittest.mock
import weakref

import codetimer
import pytest
import transparency
from transparency import agree

both = transparency.both


FUNCTIONS = "plain quick raises closure decorated inside cached caches single part".split()
METHODS = (
    "__init__ over make made static stat prop inner lazy pair add remembered dispatch __len__ __getitem__ __eq__ "
    "__hash__ __call__ __enter__ __exit__ __add__ __radd__ _Thing__private public"
).split()
ATTRIBUTES = (
    "__name__ __qualname__ __module__ __doc__ __defaults__ __kwdefaults__ __annotations__ __dict__ __code__ "
    "__closure__ __type_params__ __isabstractmethod__ __text_signature__ __signature__ __self__ __func__ cache_info "
    "registry func args keywords __slots__ nothing"
).split()


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


PREDICATES = [getattr(inspect, name) for name in dir(inspect) if name.startswith("is")]


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


SETTABLE = ["mark", "__doc__", "__name__", "__qualname__", "__defaults__", "__annotations__"]


@pytest.mark.parametrize("attribute", SETTABLE)
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
    assert fn.__name__ == "test_doctest" and fn.__wrapped__ is test_doctest and str(inspect.signature(fn)) == "(both)"


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


def test_gc_sees_through():
    def make():
        def fn():
            return fn

        return codetimer.measured(fn)

    fn = make()
    assert fn.__wrapped__ in gc.get_referents(fn)


def test_kinds_stay(both):
    for name in METHODS:
        bare, measured = (one.Thing.__dict__[name] for one in both)
        assert isinstance(measured, type(bare)), name
    assert isinstance(both[1].Thing.over, types.FunctionType) and inspect.isfunction(both[1].Thing.over)
    assert inspect.ismethod(both[1].Thing().over) and both[1].Thing.over is both[1].Thing.over
