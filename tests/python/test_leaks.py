# SPDX-License-Identifier: MIT
"""Guards: no public function leaks memory or references, also where it fails. A leak of one object per call would show
as thousands of blocks."""

import contextlib
import functools
import gc
import io
import sys

import codetimer
import pytest

ROUNDS = 2000


def failing():
    raise ValueError


def ignoring(function, *args, **kwargs):
    def call():
        with contextlib.suppress(Exception):
            function(*args, **kwargs)

    return call


class Refusing:
    encoding = "ascii"

    def write(self, text):
        raise OSError


class Forgetting:
    def write(self, text):
        pass


def initialized():
    with codetimer.initialize(None) as environment:
        return environment.priority, environment.clock, environment.cycles, str(environment), repr(environment)


async def coroutine_function():
    pass


RESULT = codetimer.time("Kept ±", 1000, list, file=io.StringIO())
PAIR = {"a": lambda: {i: i for i in ()}, "b": list}
COMPARISON = codetimer.compare(PAIR, file=io.StringIO(), budget=0.01, memory=True)

CALLS = {
    "time": lambda: codetimer.time("Nämé", 70, int, file=io.StringIO()),
    "time python": lambda: codetimer.time("", 200, lambda: None),
    "time partial": lambda: codetimer.time("", 2, functools.partial(int)),
    "time surrogate": lambda: codetimer.time("\ud800", 1, int, file=io.StringIO()),
    "time fails": ignoring(codetimer.time, "x", 70, failing, file=Forgetting()),
    "time fails in c": ignoring(codetimer.time, "", 1000, [].pop),
    "time print fails": ignoring(codetimer.time, "é", 1, int, file=Refusing()),
    "time both fail": ignoring(codetimer.time, "é", 1, failing, file=Refusing()),
    "time wrong n": ignoring(codetimer.time, "x", 1.5, int),
    "time large n": ignoring(codetimer.time, "x", 2**80, int),
    "time wrong name": ignoring(codetimer.time, 5, 1, int),
    "time wrong fn": ignoring(codetimer.time, "x", 1, coroutine_function),
    "time wrong file": ignoring(codetimer.time, "x", 1, int, file=5),
    "initialize": initialized,
    "initialize fails": ignoring(codetimer.initialize, "low"),
    "last_result": codetimer.last_result,
    "clock_info": codetimer.clock_info,
    "thread_cycles": codetimer.thread_cycles,
    "now_ns": codetimer.now_ns,
    "time automatic": lambda: codetimer.time("", fn=int, budget=1e-6, gc_time=True, memory=True),
    "time automatic python": lambda: codetimer.time("", fn=lambda: None, budget=1e-6),
    "time automatic fails": ignoring(codetimer.time, "", None, failing, gc_time=True),
    "time wrong budget": ignoring(codetimer.time, "", fn=int, budget="1"),
    "time misses fn": ignoring(codetimer.time, ""),
    "compare": lambda: codetimer.compare(PAIR, file=io.StringIO(), budget=1e-6, gc_time=True, memory=True),
    "compare fails": ignoring(codetimer.compare, {"a": int, "b": failing}, file=Forgetting(), gc_time=True),
    "compare print fails": ignoring(codetimer.compare, PAIR, file=Refusing(), budget=1e-6),
    "compare wrong": ignoring(codetimer.compare, {"a": int, "b": coroutine_function}),
    "compare wrong baseline": ignoring(codetimer.compare, PAIR, baseline="x"),
    "compare wrong names": ignoring(codetimer.compare, {"a": int, 5: int}),
    "comparison": lambda: (str(COMPARISON), repr(COMPARISON), COMPARISON.to_dict(), COMPARISON.to_json()),
    "comparison methods": lambda: (COMPARISON.ratio("b"), COMPARISON.interval("b"), COMPARISON.verdict_of("b", "a")),
    "comparison wrong": ignoring(COMPARISON.ratio, "x"),
    "last_comparison": codetimer.last_comparison,
    "result": lambda: (str(RESULT), repr(RESULT), RESULT.to_dict(), RESULT.to_json()),
}


# These take a tenth of the rounds.
SLOW = ("clock_info", "initialize", "time automatic", "compar")


def resident_kib():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4


def growth(call, rounds):
    """What is left after so many calls: blocks of Python's allocator, references to None, memory of the process."""
    before = sys.getallocatedblocks(), sys.getrefcount(None), resident_kib()
    for _ in range(rounds):
        call()
    gc.collect()
    after = sys.getallocatedblocks(), sys.getrefcount(None), resident_kib()
    return [new - old for old, new in zip(before, after, strict=True)]


@pytest.fixture
def frozen():
    """Keeps the objects of the test run out of the full collections that runs begin with: 2,000 of them take long."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.parametrize("name", CALLS)
def test_no_leak(name, frozen):
    call = CALLS[name]
    for _ in range(100):
        call()
    gc.collect()
    rounds = ROUNDS // 10 if name.startswith(SLOW) else ROUNDS
    blocks, nones, kib = zip(*(growth(call, rounds) for _ in range(3)), strict=True)
    assert min(blocks) < ROUNDS // 20 and min(nones) < ROUNDS // 20
    assert min(kib) < 256


def test_the_module_can_be_loaded_and_dropped_again():
    def load():
        for name in [name for name in sys.modules if name.startswith("codetimer")]:
            del sys.modules[name]
        import codetimer as fresh

        fresh.time("", 100, lambda: None)

    kept = {name: module for name, module in sys.modules.items() if name.startswith("codetimer")}
    try:
        for _ in range(5):
            load()
        gc.collect()
        before = sys.getallocatedblocks()
        for _ in range(20):
            load()
        gc.collect()
        assert abs(sys.getallocatedblocks() - before) < 400
    finally:
        sys.modules.update(kept)
