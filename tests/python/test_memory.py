# SPDX-License-Identifier: MIT
"""Guards the memory pass: what it counts is exact and is what fn asks for, in a pass of its own; it is refused where it
would be wrong; and whatever happens in it, the allocators are afterwards those that were there before."""

import ctypes
import signal
import sys
import threading
import tracemalloc

import codetimer
import pytest
from conftest import run_script


class Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]


def allocators():
    """What is in place for PYMEM_DOMAIN_RAW, MEM and OBJ."""
    found = []
    for domain in range(3):
        allocator = Allocator()
        ctypes.pythonapi.PyMem_GetAllocator(ctypes.c_int(domain), ctypes.byref(allocator))
        found.append(tuple(getattr(allocator, name) for name, _ in Allocator._fields_))
    return found


@pytest.fixture(autouse=True)
def no_hook_left():
    before = allocators()
    yield
    assert allocators() == before


def memory(fn, n=2000):
    """How many calls are counted depends on how long they took, and so on what else the machine does. CPython 3.10
    makes a cache for code at its 1,024th call: here that is in the run."""
    return codetimer.time("", n, fn, memory=True).memory


class Slots:
    __slots__ = ()


LONG = 10**40
TEXT = "x" * 100
SIZE = sys.getsizeof

# What one call asks for, and how many bytes it is: none of these types keeps free objects in store.
KNOWN = {
    "nothing": (lambda: None, 0, 0),
    "a constant": (lambda: 12345678901234567890, 0, 0),
    "a small int": (lambda: len(TEXT), 0, 0),
    "an object": (object, 1, SIZE(object())),
    "an object, from Python": (lambda: object(), 1, SIZE(object())),
    "an instance": (Slots, 1, None),
    "bytes": (lambda: bytes(1000), 1, SIZE(bytes(1000))),
    "a string": (lambda: TEXT + "y", 1, SIZE(TEXT + "y")),
    "a large int": (lambda: LONG + 1, 1, None),
    "a set": (lambda: set(), 1, SIZE(set())),
    "a bytearray": (lambda: bytearray(1000), 2, SIZE(bytearray(1000))),
    "large blocks": (lambda: bytes(100_000), 1, SIZE(bytes(100_000))),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_bodies_are_counted_exactly(name):
    fn, allocations, size = KNOWN[name]
    found = memory(fn)
    assert found.reason is None
    assert 0 < found.calls <= 100
    assert found.allocations == allocations * found.calls
    assert found.frees == found.allocations
    assert found.reallocations == 0
    if size is not None:
        assert found.allocated_bytes == size * found.calls
        assert found.peak_bytes == size


def test_many_objects_in_a_call():
    objects = [None] * 100

    def fill():
        for i in range(100):
            objects[i] = object()

    def empty():
        fill()
        objects[:] = [None] * 100

    found = memory(empty)
    assert found.allocations >= 100 * found.calls
    assert found.peak_bytes >= 100 * SIZE(object())
    found = memory(fill)
    assert found.allocations == 102 * found.calls  # the range and its iterator
    assert found.frees == found.allocations  # the objects of the call before
    assert found.peak_bytes < 2 * 100 * SIZE(object())


def test_what_is_kept_adds_to_the_peak():
    kept = [None] * 300
    at = iter(range(300))
    found = memory(lambda: kept.__setitem__(next(at), bytes(1000)), 100)  # and up to 101
    assert found.allocated_bytes >= found.calls * SIZE(bytes(1000))
    assert found.peak_bytes >= found.calls * SIZE(bytes(1000))


def test_blocks_that_grow_are_reallocations():
    def grow():
        buffer = bytearray(10)
        buffer.extend(b"x" * 10_000)

    found = memory(grow)
    assert found.reallocations >= found.calls
    assert found.allocated_bytes >= 10_000 * found.calls
    assert 10_000 <= found.peak_bytes < 40_000


def test_nothing_is_counted_unless_asked_for():
    assert codetimer.time("", 5, object).memory is None


def test_the_pass_comes_after_the_run():
    calls = []
    result = codetimer.time("", 1000, lambda: calls.append(allocators()), memory=True)
    assert result.calls == 1000
    assert len(calls) == 1000 + 1 + result.memory.calls
    assert all(seen == calls[0] for seen in calls[:1000])
    for seen in calls[1000:]:
        assert seen[0] == calls[0][0]
        assert seen[1] != calls[0][1] and seen[2] != calls[0][2]


def test_a_run_without_calls_says_so():
    found = memory(object, 0)
    assert (found.calls, found.allocations, found.reason) == (0, None, "there was no call")


def test_a_run_that_fails_has_no_pass():
    calls = []
    with pytest.raises(ZeroDivisionError):
        codetimer.time("", 5, lambda: calls.append(1) or 1 / 0, memory=True)
    assert len(calls) == 1
    assert codetimer.last_result().memory.reason == "the run did not come to its end"


@pytest.mark.parametrize("k", [1, 2, 6])
@pytest.mark.parametrize("raised", [ValueError, KeyboardInterrupt, MemoryError, SystemExit])
def test_an_exception_in_the_pass_goes_on(capsys, k, raised):
    exception = raised("mine")
    calls = 0

    def fn():
        nonlocal calls
        calls += 1
        block = bytes(1000)
        if calls == 1000 + k:
            raise exception
        return block

    with pytest.raises(raised) as caught:
        codetimer.time("fails in the pass", 1000, fn, memory=True)
    assert caught.value is exception
    result = codetimer.last_result()
    assert (result.calls, result.interrupted) == (1000, None)
    assert result.memory.calls == max(0, k - 2)
    if k > 2:
        assert result.memory.allocated_bytes >= (k - 2) * SIZE(bytes(1000))
        assert result.memory.allocated_bytes < (k - 1) * SIZE(bytes(1000))  # not that of the call that failed
    else:
        assert "did not return" in result.memory.reason
    assert capsys.readouterr().out == str(result)


def test_ctrl_c_in_the_pass():
    calls = 0

    def fn():
        nonlocal calls
        calls += 1
        if calls == 1003:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        codetimer.time("", 1000, fn, memory=True)
    assert codetimer.last_result().calls == 1000
    assert codetimer.last_result().memory.calls == 1


def test_other_threads_are_not_counted():
    stop, started = threading.Event(), threading.Event()

    def allocate():
        while not stop.is_set():
            bytes(1000)
            started.set()

    def wait():
        started.clear()
        assert started.wait(60)

    thread = threading.Thread(target=allocate)
    thread.start()
    try:
        alone = memory(lambda: bytes(5000), 20_000)
        waiting = memory(wait, 3)
    finally:
        stop.set()
        thread.join()
    assert alone.allocations == alone.calls
    assert alone.allocated_bytes == alone.calls * SIZE(bytes(5000))
    assert waiting.allocated_bytes < waiting.calls * 1000 + 10_000


def test_a_pass_inside_another_one_says_so():
    inner = []
    outer = memory(lambda: inner.append(memory(object, 1)), 2)
    assert outer.calls > 0
    assert inner[-1].calls == 0
    assert inner[-1].reason == "another memory pass is running"


def test_while_tracemalloc_traces_it_is_refused():
    tracemalloc.start()
    try:
        found = memory(object, 5)
    finally:
        tracemalloc.stop()
    assert (found.calls, found.allocations, found.peak_bytes) == (0, None, None)
    assert found.reason.startswith("tracemalloc is tracing")


def test_a_hook_above_ours_stays_and_ours_goes_when_it_can():
    before = allocators()
    started = []

    def start():
        if allocators() != before and not started:
            tracemalloc.start()
            started.append(True)

    found = memory(start, 5)
    assert found.calls > 0
    assert allocators() != before
    assert memory(object, 5).reason.startswith("tracemalloc is tracing")
    tracemalloc.stop()
    found = memory(object)
    assert (found.allocations, found.reason) == (found.calls, None)
    assert allocators() == before


def test_a_comparison_has_one_for_each_candidate(capsys):
    candidates = {"one": object, "two": lambda: (object(), object()), "none": lambda: None}
    comparison = codetimer.compare(candidates, budget=0.05, memory=True)
    per_call = {}
    for name, result in comparison.results.items():
        per_call[name] = result.memory.allocations / result.memory.calls
    assert (per_call["one"], per_call["none"]) == (1, 0)
    assert per_call["two"] >= 2
    assert "Allocations" in capsys.readouterr().out


def test_a_comparison_whose_pass_fails():
    before = allocators()

    def fail():
        if allocators() != before:
            raise ValueError("in the pass")

    with pytest.raises(ValueError, match="in the pass"):
        codetimer.compare({"a": object, "b": fail, "c": object}, budget=0.05, memory=True)
    results = codetimer.last_comparison().results
    assert results["a"].memory.allocations == results["a"].memory.calls > 0
    assert "did not return" in results["b"].memory.reason
    assert results["c"].memory.reason == "the comparison did not come to its end"


def test_several_interpreters_are_refused():
    code = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import codetimer
other = interpreters.create()
found = codetimer.time("", 5, object, memory=True).memory
interpreters.destroy(other)
print(found.calls, found.reason)
found = codetimer.time("", 1000, object, memory=True).memory
print(found.allocations == found.calls > 0)
"""
    done = run_script(code)
    assert done.returncode == 0, done.stderr
    refused, counted = done.stdout.decode().splitlines()
    assert refused == "0 there are several interpreters in this process, and allocators belong to all of them"
    assert counted == "True"


@pytest.mark.parametrize("allocator", ["malloc", "debug", "pymalloc_debug"])
def test_other_allocators_count_alike(allocator):
    code = """
import codetimer
found = codetimer.time("", 1000, object, memory=True).memory
print(found.allocations == found.calls > 0, found.frees == found.calls)
"""
    done = run_script(code, env={"PYTHONMALLOC": allocator})
    assert (done.returncode, done.stdout) == (0, b"True True\n"), done.stderr


def test_an_exit_in_the_pass_ends_the_process_in_order():
    code = """
import atexit, codetimer, sys
calls = 0
def fn():
    global calls
    calls += 1
    if calls == 3: sys.exit(7)
codetimer.time("", 1, fn, memory=True)
"""
    done = run_script(code)
    assert (done.returncode, done.stderr) == (7, b"")


def test_it_is_printed(capsys):
    codetimer.time("Objects", 1000, object, memory=True)
    assert f"    Memory:         1.00 allocator calls and {SIZE(object())}.0 bytes per call" in capsys.readouterr().out
