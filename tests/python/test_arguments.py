# SPDX-License-Identifier: MIT
"""Guards: wrong arguments are refused before anything runs, with the value seen and what is accepted; right ones are
not."""

import decimal
import fractions
import functools
import io
import os
import types

import codetimer
import pytest
from measuring import own_notes


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def refused(error, *args, **kwargs):
    """The message of the refusal; neither the previous result nor fn is touched."""
    last = codetimer.last_result()
    with pytest.raises(error) as caught:
        codetimer.time(*args, **kwargs)
    assert caught.type is error
    assert codetimer.last_result() is last
    return str(caught.value)


@pytest.fixture
def never():
    def fn():
        calls.append(1)

    calls = []
    yield fn
    assert calls == []


@pytest.mark.parametrize("n", [1.0, 2.5, float("nan"), True, False, "3", b"3", [], 1j])
def test_n_of_a_wrong_type(n, never):
    message = refused(TypeError, "x", n, never)
    assert "n must be an integer from 0 to 9223372036854775807" in message
    assert repr(n) in message and type(n).__name__ in message


@pytest.mark.parametrize("n", [-1, -(2**63), -(2**70), 2**63, 2**64, Index(-5)])
def test_n_out_of_range(n, never):
    message = refused(ValueError, "x", n, never)
    assert "from 0 to 9223372036854775807" in message and repr(n)[:50] in message


def test_n_too_long_to_show(never):
    assert "int" in refused(ValueError, "x", 10**5000, never)


@pytest.mark.parametrize("budget", [0, 0.0, -1, -1e-9, float("nan"), float("inf"), -float("inf"), 1e9 + 1, 10**400])
def test_budget_out_of_range(budget, never):
    message = refused(ValueError, "x", None, never, budget=budget)
    assert "budget must be a number of seconds above 0, up to 1e9, or None" in message
    assert repr(budget)[:50] in message


@pytest.mark.parametrize("budget", ["0.2", b"1", True, [1], 1j, object()])
def test_budget_of_a_wrong_type(budget, never):
    message = refused(TypeError, "x", fn=never, budget=budget)
    assert "budget must be a number" in message or "must be real number" in message


@pytest.mark.parametrize("budget", [0.001, 1e-12, fractions.Fraction(1, 1000), decimal.Decimal("0.001"), None])
def test_budget_may_be_any_number(budget):
    result = codetimer.time("", None, int, budget=budget)
    wanted = {1e-12: 1, None: 200_000_000}.get(budget, 1_000_000)
    assert (result.budget_ns, result.automatic) == (wanted, True)


def test_a_whole_second_may_be_an_int():
    def fn():
        raise LookupError

    with pytest.raises(LookupError):
        codetimer.time("", fn=fn, budget=1)
    assert codetimer.last_result().budget_ns == 1_000_000_000


def test_a_budget_is_not_for_a_given_n(never):
    assert "budget is for automatic n" in refused(ValueError, "x", 5, never, budget=1.0)


def test_fn_left_out():
    assert "time() misses fn" in refused(TypeError, "x")
    assert "time() misses fn" in refused(TypeError, "x", 5)
    assert "n must be an integer" in refused(TypeError, "x", int, int)


def test_n_may_be_anything_with_index():
    assert codetimer.time("", Index(3), int).calls == 3


def test_an_index_that_raises_is_heard(never):
    class Broken:
        def __index__(self):
            raise ZeroDivisionError("mine")

    assert refused(ZeroDivisionError, "x", Broken(), never) == "mine"


@pytest.mark.parametrize("name", [None, b"bytes", 5, ["x"]])
def test_name_that_is_no_text(name, never):
    message = refused(TypeError, name, 1, never)
    assert "name must be a str" in message and repr(name) in message


@pytest.mark.parametrize("fn", [None, 5, "print", object()])
def test_fn_that_is_not_callable(fn):
    assert "fn must be callable" in refused(TypeError, "x", 1, fn)


async def coroutine_function():
    pass


async def async_generator_function():
    yield


@types.coroutine
def old_coroutine_function():
    yield


class Async:
    async def __call__(self):
        pass

    async def method(self):
        pass

    @classmethod
    async def of_class(cls):
        pass

    @staticmethod
    async def static():
        pass

    async def generator(self):
        yield


@pytest.mark.parametrize(
    "fn",
    [
        coroutine_function,
        async_generator_function,
        old_coroutine_function,
        Async(),
        Async().method,
        Async.of_class,
        Async.static,
        Async().generator,
        functools.partial(coroutine_function),
        functools.partial(functools.partial(Async().method)),
        functools.partial(Async()),
    ],
)
def test_async_functions_are_refused_with_advice(fn):
    message = refused(TypeError, "x", 1, fn)
    assert "async" in message or "coroutine" in message
    assert "lambda: asyncio.run(main())" in message


def test_generator_functions_get_a_note():
    def generator():
        yield

    for fn in (generator, functools.partial(generator)):
        assert any("only the creation" in note for note in codetimer.time("", 5, fn).notes)
    assert own_notes(codetimer.time("", 5, list)) == ()


@pytest.mark.parametrize("fn", [Async, int, [].copy, functools.partial(int), lambda: coroutine_function().close()])
def test_what_is_not_async_is_accepted(fn):
    assert codetimer.time("", 5, fn).calls == 5


def test_objects_with_odd_attributes_are_accepted():
    class Odd:
        def __getattr__(self, name):
            raise ZeroDivisionError(name)

        def __call__(self):
            pass

    assert codetimer.time("", 5, Odd()).calls == 5


def test_a_proxy_that_claims_to_be_endless_is_accepted():
    class Endless:
        @property
        def func(self):
            return self

        def __call__(self):
            pass

    assert codetimer.time("", 5, functools.partial(Endless())).calls == 5


def test_file_without_write(never):
    assert "write" in refused(TypeError, "x", 1, never, file=5)


# kwargs that are a dict of the caller's, as thread.start_new_thread passes them: what runs meanwhile may empty it.
EMPTIED = """
import _thread, codetimer, gc, sys, time
class Emptying(str):
    def __new__(cls, text): return str.__new__(cls, text + "." * 1000)
    def empty(self, *args):
        d.clear()
        gc.collect()
        kept.extend(bytes(1100) for _ in range(1000))
        return 0
    __call__ = write = __index__ = empty
    def __repr__(self): self.empty(); return "mine"
    def __getattr__(self, name): self.empty(); raise AttributeError(name)
kept = []
sys.unraisablehook = lambda unraisable: None
for function, make in [
    (codetimer.time, lambda: dict(name=Emptying("a"), n=Emptying("b"), fn=Emptying("c"), file=Emptying("d"))),
    (codetimer.time, lambda: dict(name=Emptying("a"), n=3, fn=Emptying("c"), file=Emptying("d"))),
    (codetimer.time, lambda: dict(name=Emptying("a"), n=3, fn=int, file=Emptying("d"))),
    (codetimer.time, lambda: dict(name="".join(map(chr, range(65, 165))), n=3, fn=Emptying("c"), file=Emptying("d"))),
    (codetimer.initialize, lambda: dict(priority=None, cpu=Emptying("0"))),
    (codetimer.initialize, lambda: dict(priority=Emptying("x"), cpu=0)),
]:
    for _ in range(5):
        d = make()
        _thread.start_new_thread(function, (), d)
        while d: time.sleep(0.001)
        time.sleep(0.01)
        kept.clear()
print("alive", codetimer.last_result().calls)
"""


def test_keywords_of_a_dict_that_is_emptied_meanwhile(script):
    # the debugging allocator keeps arenas to the end, which a leak checker would count
    options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    done = script(EMPTIED, env={"PYTHONMALLOC": "debug", "ASAN_OPTIONS": options})
    assert (done.returncode, done.stdout.split()[-2:]) == (0, [b"alive", b"3"]), done.stderr


def test_words_of_the_signature():
    assert codetimer.time(name="", n=2, fn=int, file=io.StringIO()).calls == 2
    refused(TypeError)
    refused(TypeError, "x", 1)
    refused(TypeError, "x", 1, int, None)
    refused(TypeError, "x", 1, int, fil=None)


@pytest.mark.parametrize("priority", ["low", "", "HIGH"])
def test_unknown_priority(priority):
    with pytest.raises(ValueError, match="'high', 'highest', 'realtime' or None"):
        codetimer.initialize(priority)


@pytest.mark.parametrize("priority", [5, b"high", True])
def test_priority_of_a_wrong_type(priority):
    with pytest.raises(TypeError, match="priority must be"):
        codetimer.initialize(priority)


@pytest.mark.parametrize(
    "cpu,error",
    [(-1, ValueError), (2**31, ValueError), (2**70, ValueError), (1.0, TypeError), (True, TypeError), ("0", TypeError)],
)
def test_wrong_cpu(cpu, error):
    with pytest.raises(error, match="cpu must be"):
        codetimer.initialize(None, cpu)
