# SPDX-License-Identifier: MIT
"""Guards that sys.monitoring sees every way in which a function can be called, whether the measuring begins before the
first call or when the interpreter has specialised for it, and that each call counts once. Fails if one path is passed
by, or counted twice."""

import sys

import pytest
from codetimer import _codetimer
from monitoring import MODULE, calls, counter, fresh, make, missing, monitored  # noqa: F401 (fresh is a fixture)

pytestmark = missing

SUBJECT = """
import asyncio, functools, concurrent.futures

def plain(): pass
def keyword(a, *, b=0): pass
def spread(*args, **kwargs): pass
class T:
    def __init__(self, x=0): self.x = x
    def method(self): pass
    @staticmethod
    def static(): pass
    @classmethod
    def made(cls): pass
    @property
    def value(self): return 1
    @value.setter
    def value(self, new): pass
    def __call__(self): pass
    def __add__(self, other): return self
    def __radd__(self, other): return self
    def __len__(self): return 3
    def __getitem__(self, key): return key
    def __eq__(self, other): return True
    def __hash__(self): return 1
    def __bool__(self): return True
    def __contains__(self, key): return True
    def __iter__(self): return iter(())
    def __enter__(self): return self
    def __exit__(self, *raised): return False
    def over(self): pass
class U(T):
    def over(self): super().over()
o, u = T(), U()
bound = o.method
def key(x): return x
def one(x): return x
def decorated(): pass
def around(fn):
    @functools.wraps(fn)
    def wrapper(*args): return fn(*args)
    return wrapper
wrapped = around(decorated)
anonymous = lambda: None
def make():
    def inner(): pass
    return inner
closures = make(), make()
def given(a): pass
part = functools.partial(given, 1)
def failing(): raise ValueError
def fail():
    try: failing()
    except ValueError: pass
def numbers():
    yield 1
    yield 2
async def inner_coroutine():
    await asyncio.sleep(0)
async def coroutine(): await inner_coroutine()
async def several():
    yield 1
    yield 2
async def drain():
    async for _ in several(): pass
def expression(): return sum(x for x in (1, 2))
def fact(n): return 1 if n == 0 else n * fact(n - 1)
"""

# {what: (the call, the calls that it makes)}
PATHS = {
    "plain": ("plain()", {"plain": 1}),
    "keyword": ("keyword(1, b=2)", {"keyword": 1}),
    "spread": ("spread(*(1, 2), **{'k': 3})", {"spread": 1}),
    "method": ("o.method()", {"T.method": 1}),
    "bound method taken earlier": ("bound()", {"T.method": 1}),
    "static": ("T.static()", {"T.static": 1}),
    "class method": ("T.made()", {"T.made": 1}),
    "super": ("u.over()", {"U.over": 1, "T.over": 1}),
    "property": ("o.value", {"T.value": 1}),
    "property set": ("setattr(o, 'value', 1)", {"T.value": 1}),
    "init": ("T(1)", {"T.__init__": 1}),
    "init of a subclass": ("U()", {"T.__init__": 1}),
    "call": ("o()", {"T.__call__": 1}),
    "add": ("o + 1", {"T.__add__": 1}),
    "radd": ("1 + o", {"T.__radd__": 1}),
    "len": ("len(o)", {"T.__len__": 1}),
    "subscript": ("o[1]", {"T.__getitem__": 1}),
    "equal": ("o == 1", {"T.__eq__": 1}),
    "hash": ("hash(o)", {"T.__hash__": 1}),
    "bool": ("not o", {"T.__bool__": 1}),
    "in": ("1 in o", {"T.__contains__": 1}),
    "iter": ("list(u)", {"T.__iter__": 1, "T.__len__": 1}),
    "comprehension": ("[one(i) for i in (1, 2, 3)]", {"one": 3}),
    "map": ("list(map(one, (1, 2)))", {"one": 2}),
    "key": ("sorted((2, 1), key=key)", {"key": 2}),
    "partial": ("part()", {"given": 1}),
    "decorated": ("wrapped()", {"decorated": 1, "around.<locals>.wrapper": 1}),
    "lambda": ("anonymous()", {"<lambda>": 1}),
    "closures": ("closures[0](), closures[1]()", {"make.<locals>.inner": 2}),
    "exception": ("fail()", {"fail": 1, "failing": 1}),
    "generator": ("list(numbers())", {"numbers": 1}),
    "generator expression": ("expression()", {"expression": 1, "expression.<locals>.<genexpr>": 1}),
    "coroutine": ("asyncio.run(coroutine())", {"coroutine": 1, "inner_coroutine": 1}),
    "async generator": ("asyncio.run(drain())", {"drain": 1, "several": 1}),
    "recursion": ("fact(5)", {"fact": 6}),
    "eval": ("eval('plain()')", {"plain": 1}),
}
WITH = "with o: pass", {"T.__enter__": 1, "T.__exit__": 1}


def times(expected, number):
    return {name: count * number for name, count in expected.items()}


def make_runner(subject, call):
    names = subject.__dict__
    exec(compile(f"def run(number):\n for _ in range(number):\n  {call}\n", "<runner>", "exec"), names)
    return names["run"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("hot", [0, 200])
def test_path(path, hot):
    call, expected = PATHS[path]
    slow = "asyncio" in call
    hot, number = (hot // 20, 5) if slow else (hot, 50)
    subject = make(SUBJECT)
    run = make_runner(subject, call)
    run(hot)
    with monitored(f"{MODULE}.*;!{MODULE}.run"):
        run(number)
        assert calls() == times(expected, number)
    run(number)
    assert calls() == times(expected, number)


def test_with_statement():
    subject = make(SUBJECT)
    run = make_runner(subject, WITH[0])
    with monitored(f"{MODULE}.T.*"):
        run(20)
    assert calls() == times(WITH[1], 20)


def test_thread_pool():
    subject = make(SUBJECT)
    with monitored(f"{MODULE}.one"), subject.concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(subject.one, range(500))) == list(range(500))
    assert calls() == {"one": 500}


@pytest.mark.parametrize("hot", [0, 200])
def test_recursion_of_any_depth(hot):
    subject = make("def deep(n): return n and deep(n - 1)\n")
    limit = sys.getrecursionlimit()
    for _ in range(hot):
        subject.deep(3)
    sys.setrecursionlimit(150_000)
    try:
        with monitored():
            subject.deep(100_000)
    finally:
        sys.setrecursionlimit(limit)
    deep = counter("deep")
    assert calls() == {"deep": 100_001} and deep.in_flight == 0 and deep.errors == 0


def test_what_is_no_function_is_left_out():
    source = "class C:\n    x = [i for i in range(3)]\n    def f(self): pass\nC().f()\n"
    with monitored():
        make(source)
    assert calls() == {"C.f": 1}


def test_redefined_and_reloaded_is_one_counter():
    subject = make("def f(): pass\n")
    with monitored():
        subject.f()
        exec(compile("def f():\n    return 2\n", "<again>", "exec"), subject.__dict__)
        subject.f()
        make("def f():\n    return 3\n").f()
    assert calls() == {"f": 3}


def test_functions_made_later_are_found():
    with monitored():
        assert _codetimer._monitoring_info()["seen"] == 0 or calls() == {}
        make("def later(): pass\n").later()
    assert calls() == {"later": 1}
