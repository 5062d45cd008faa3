# SPDX-License-Identifier: MIT
"""Guards that every call is counted, once, wherever it comes from: threads, recursion, signals, finalizers, the
collector, other interpreters, the end of the program; and that measuring keeps nothing alive. Fails if a count is off
by one, memory grows, or the process dies."""

import contextlib
import gc
import itertools
import os
import subprocess
import sys
import textwrap
import threading
import weakref

import codetimer
import pytest
from codetimer import measured

numbers = itertools.count()


def make(fn=lambda *args: None):
    name = f"exact.n{next(numbers)}"
    return measured(fn, name=name), codetimer.counters[name]


def run(source, expect=0):
    """What a program of its own prints. A negative "expect" is the signal that it may die of."""
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(source)]
    # What a thread that was stopped at the end, or the interpreter itself, leaves behind is not ours to free.
    options = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    environment = dict(os.environ, ASAN_OPTIONS=options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == expect, done.stderr[-2000:]
    return done.stdout.strip()


# ---- exact ----


@pytest.mark.parametrize(("threads", "each"), [(4, 1_000_000), (8, 50_000)])
def test_threads(threads, each):
    fn, counter = make(lambda: None)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def work():
        for _ in range(each):
            fn()

    crew = [threading.Thread(target=work) for _ in range(threads)]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    sys.setswitchinterval(before)
    assert (counter.calls, counter.in_flight, counter.errors) == (threads * each, 0, 0)


def test_errors():
    def flip(i):
        if i % 3 == 0:
            raise ValueError(i)

    fn, counter = make(flip)
    for i in range(3000):
        try:
            fn(i)
        except ValueError as error:
            assert error.args == (i,)
    assert (counter.calls, counter.errors, counter.cancelled) == (3000, 1000, 0)


def test_in_flight():
    fn, counter = make(lambda: (counter.in_flight, counter.calls))
    assert fn() == (1, 0) and (counter.in_flight, counter.calls) == (0, 1)


RECURSION = """
    import codetimer, sys
    sys.setrecursionlimit({limit})
    @codetimer.measured(name="r.f")
    def f(n): return n and f(n - 1)
    class C:
        @codetimer.measured(name="r.m")
        def m(self, n): return n and self.m(n - 1)
    try:
        answers = f({depth}), C().m({depth})
    except RecursionError:
        answers = "RecursionError"
    counters = [codetimer.counters[name] for name in ("r.f", "r.m")]
    wrong = answers == "RecursionError"
    print(answers, [c.calls - c.errors * wrong for c in counters], *[c.in_flight for c in counters])
"""


def test_recursion():
    seen = run(RECURSION.format(limit=1000, depth=900))
    if sys.version_info[:2] == (3, 12) and seen.startswith("RecursionError"):
        assert seen == "RecursionError [0, 0] 0 0"
    else:
        assert seen == "(0, 0) [901, 901] 0 0"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="has no limit of its own for recursion through C")
def test_recursion_without_end_is_an_error_not_a_crash():
    assert run(RECURSION.format(limit=10**6, depth=10**6)).startswith("RecursionError [0, 0] 0 0")


def test_recursion_to_the_usual_limit():
    assert run(RECURSION.format(limit=1000, depth=10**6)).startswith("RecursionError [0, 0] 0 0")


# ---- from everywhere ----


@pytest.mark.skipif(sys.platform == "win32", reason="no interval timers there")
def test_signal_handlers():
    import signal
    import time

    handler, handled = make()
    fn, counter = make()
    old = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    made = 0
    stop = time.monotonic() + 0.3
    while time.monotonic() < stop or handled.calls == 0:
        fn()
        made += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)
    assert counter.calls == made and handled.calls > 0 and handled.in_flight == counter.in_flight == 0


def test_signal_within_itself():
    import signal

    def fn(*args):
        if not args:
            signal.raise_signal(signal.SIGINT)
        return len(args)

    inside, counter = make(fn)
    old = signal.signal(signal.SIGINT, inside)
    assert inside() == 0
    signal.signal(signal.SIGINT, old)
    assert counter.calls == 2


def test_interrupt_is_an_error():
    import signal

    fn, counter = make(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        fn()
    assert (counter.calls, counter.errors) == (1, 1)


def test_gc_callbacks_and_finalizers():
    callback, called = make()
    finalize, finalized = make()

    class C:
        def __init__(self):
            self.own = self

        def __del__(self):
            finalize()

    gc.callbacks.append(callback)
    for _ in range(100):
        C()
    gc.collect()
    gc.callbacks.remove(callback)
    assert finalized.calls == 100 and called.calls >= 2


def test_deleted_while_running():
    def bare():
        nonlocal fn
        del fn
        gc.collect()
        return "alive"

    fn, counter = make(bare)
    watch = weakref.ref(fn)
    assert fn() == "alive" and counter.calls == 1
    del bare
    gc.collect()
    assert watch() is None


def test_called_by_what_forgets_it():
    import functools

    class C: ...

    def getter(self):
        del C.p
        gc.collect()
        return sys._getframe().f_code.co_name

    C.p = property(measured(getter, name="exact.forgotten"))
    assert C().p == "getter" and codetimer.counters["exact.forgotten"].calls == 1

    part = functools.partial(print)
    part.__setstate__((measured(lambda: part.__setstate__((print, (), {}, None)), name="exact.part"), (), {}, None))
    part()
    assert codetimer.counters["exact.part"].calls == 1


def test_garbage_calls_each_other():
    seen = run("""
        import codetimer, gc
        class Link:
            __slots__ = ("call", "next", "__weakref__")
            def __call__(self): return 1
            def __del__(self): self.next()
        for kind in (Link,):
            for _ in range(1000):
                a, b = Link(), Link()
                a.next, b.next = codetimer.measured(b, name="g.b"), codetimer.measured(a, name="g.a")
                del a, b
        gc.collect()
        print(codetimer.counters["g.a"].calls, codetimer.counters["g.b"].calls)
    """)
    assert seen == "1000 1000"


def test_end_of_program():
    seen = run("""
        import atexit, codetimer, sys, threading, time
        @codetimer.measured
        def fn(): return 1
        class Late:
            f = fn
            def __del__(self): assert fn() == 1 and Late.f() == 1
        late, sys.late = Late(), Late()
        atexit.register(fn)
        codetimer.late = Late()
        threading.Thread(target=lambda: [fn() for _ in iter(int, 1)], daemon=True).start()
        time.sleep(0.05)
        print("end")
    """)
    assert seen == "end"


def interpreters():
    try:
        import _interpreters as module
    except ImportError:
        module = pytest.importorskip("_xxsubinterpreters")
    return module


CODE = """
import codetimer
fn = codetimer.measured(lambda: None, name="sub.fn", category="sub")
for _ in range(100_000): fn()
class C:
    @codetimer.measured
    def m(self): return 1
assert C().m() == 1 and codetimer.measured(fn) is fn
del C
"""


def test_interpreters():
    """Each is a writer of its own; where they have a lock of their own, they count at the same time."""
    module = interpreters()
    counter = codetimer.timer("sub.fn", category="sub").counter
    counter.reset()

    def work():
        one = module.create()
        module.run_string(one, CODE)
        module.destroy(one)

    crew = [threading.Thread(target=work) for _ in range(4)]
    for one in crew:
        one.start()
    for one in crew:
        one.join()
    assert counter.calls == 400_000 and counter.in_flight == 0


# ---- nothing is kept ----


def test_a_local_function_goes_with_its_scope():
    class Held: ...

    def scope():
        held = Held()

        @measured
        def fn():
            return held

        @measured
        class C:
            def m(self):
                return held, C

        fn(), C().m()
        return weakref.ref(held), weakref.ref(fn), weakref.ref(fn.__wrapped__), weakref.ref(C)

    refs = scope()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 4


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_is_flat():
    def bare(): ...

    def once(i):
        fn = measured(bare, name="exact.flat" if i % 2 else f"exact.flat{i}", category="c")
        fn()
        codetimer.counters[f"c/exact.flat{'' if i % 2 else i}"].remove()

    for i in range(50_000):
        once(i)
    gc.collect()
    before, references = resident(), sys.getrefcount(bare)
    for i in range(1_000_000):
        once(i)
    gc.collect()
    assert resident() - before < 2 << 20 and sys.getrefcount(bare) == references


def test_references():
    """Each way of making, using and failing leaves as many references as there were."""
    sentinel = object()

    def bare(*args):
        return args

    def fails():
        raise ValueError

    class C:
        def m(self): ...
        @property
        def p(self):
            return sentinel

    def use():
        fn = measured(bare, name="exact.refs")
        fn(sentinel), fn.__get__(sentinel)(), fn.__wrapped__, repr(fn), fn.__doc__, fn.__reduce__()
        for kind in (staticmethod, classmethod, property):
            measured(kind(bare), name="exact.refs")
        measured(name="exact.refs", category="c")(bare)
        measured(C)
        C().p, C().m()
        for wrong in (3, int, staticmethod(C)):
            with contextlib.suppress(TypeError):
                measured(wrong)
        with contextlib.suppress(ValueError):
            measured(fails, name="exact.refs")()

    kind = type(measured(bare, name="exact.refs"))
    watched = [sentinel, bare, fails, C, int, None, True, codetimer.measured, kind]
    for _ in range(10):
        use()
    gc.collect()
    before, objects = [sys.getrefcount(one) for one in watched], len(gc.get_objects())
    rounds = 5000
    for _ in range(rounds):
        use()
    gc.collect()
    grown = [now - old for now, old in zip([sys.getrefcount(one) for one in watched], before, strict=True)]
    assert all(abs(more) < rounds / 2 for more in grown), grown  # None wavers by some hundred on its own
    assert len(gc.get_objects()) - objects < 100
