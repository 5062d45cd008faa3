# SPDX-License-Identifier: MIT
"""Guards: what candidates may do to a comparison and to each other: raise, stop it, use the collector, threads and huge
results. What ends it comes out as it is, what is known is kept, and nothing of ours stays behind."""

import gc
import io
import itertools
import signal
import sys
import threading
import time
import traceback
import tracemalloc

import codetimer
import pytest


def compare(candidates, **kwargs):
    return codetimer.compare(candidates, **({"file": io.StringIO(), "budget": 0.05} | kwargs))


def raising_at(at, error):
    """Python and C: what raises at its call of that number."""
    count = itertools.count()

    def fn():
        if next(count) >= at:
            raise error

    return fn


# The first call, the warm-up, some round.
@pytest.mark.parametrize("at", [0, 1, 2, 70, 5_000, 100_000])
@pytest.mark.parametrize("who", ["a", "b"])
def test_a_candidate_that_raises(at, who, capsys):
    error = ValueError("mine")
    candidates = {"a": int, "b": int} | {who: raising_at(at, error)}
    with pytest.raises(ValueError) as caught:
        codetimer.compare(candidates, budget=100)
    comparison = codetimer.last_comparison()
    assert caught.value is error and error.__context__ is None and error.__cause__ is None
    assert [frame.name for frame in traceback.extract_tb(error.__traceback__)] == [
        "test_a_candidate_that_raises",
        "fn",
    ]
    assert comparison.interrupted == "ValueError"
    assert f"{who} was running when it ended (ValueError)" in comparison.notes
    assert list(comparison.results) == ["a", "b"]
    out = capsys.readouterr().out
    assert "ValueError" in out and out == str(comparison)


def test_a_c_candidate_that_raises():
    with pytest.raises(StopIteration):
        compare({"a": int, "b": iter(range(3)).__next__}, budget=100)
    assert codetimer.last_comparison().interrupted == "StopIteration"
    assert codetimer.last_comparison().results["b"].calls + codetimer.last_comparison().results["b"].warmup_calls <= 3


def test_no_rounds_no_ratio():
    with pytest.raises(KeyboardInterrupt):
        compare({"a": int, "b": raising_at(0, KeyboardInterrupt())})
    comparison = codetimer.last_comparison()
    assert comparison.interrupted == "interrupted" and comparison.rounds == 0
    assert comparison.ratio("b") is None and comparison.interval("b") is None and not comparison.different("b")
    assert comparison.ratios["b"].reason and comparison.resolution is None and comparison.verdict
    assert comparison.results["b"].per_call_ns is None


def test_its_own_error_goes_before_that_of_printing():
    class Refusing:
        def write(self, text):
            raise OSError

    with pytest.raises(LookupError):
        compare({"a": int, "b": raising_at(9, LookupError())}, file=Refusing(), budget=100)
    with pytest.raises(OSError):
        compare({"a": int, "b": float}, file=Refusing())
    assert codetimer.last_comparison().interrupted is None


def test_no_note_is_lost():
    def generator():
        yield

    candidates = {f"g{i}": generator for i in range(30)} | {"bad": raising_at(3, ValueError("mine"))}
    with pytest.raises(ValueError, match="mine"):
        compare(candidates)
    first, *others = codetimer.last_comparison().notes
    assert first.startswith("bad was running when it ended (ValueError")
    assert len([note for note in others if "generator function" in note]) == 30


def interrupted(candidates):
    def handler(number, frame):
        raise KeyboardInterrupt

    previous, last = signal.signal(signal.SIGALRM, handler), codetimer.last_comparison()
    try:
        delay = 0.1
        while codetimer.last_comparison() is last:  # it may have come before the comparison began
            signal.setitimer(signal.ITIMER_REAL, delay)
            delay *= 2
            with pytest.raises(KeyboardInterrupt):
                compare(candidates, budget=1e9)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    return codetimer.last_comparison()


@pytest.mark.parametrize("fn", [int, lambda: None, lambda: sum(range(10_000)), lambda: time.sleep(0.01)])
def test_ctrl_c_ends_a_budget_of_years(fn):
    codetimer.time("", fn=int, budget=0.001)  # empty calls are known: it does not end there
    assert interrupted({"a": fn, "b": int}).interrupted == "interrupted"


def test_bodies_longer_than_the_budget():
    calls = []
    comparison = compare(
        {"a": lambda: (calls.append("a"), time.sleep(0.03)), "b": lambda: (calls.append("b"), time.sleep(0.03))},
        budget=0.01,
    )
    assert set(calls) == {"a", "b"} and len(calls) < 9
    assert comparison.ratio("b") is None and "needed" in comparison.ratios["b"].reason
    assert comparison.results["a"].calls > 0


def test_candidates_that_change_each_others_state():
    kept = []
    comparison = compare({"grow": lambda: kept.append(0), "clear": kept.clear})
    assert comparison.rounds >= 0 and comparison.interrupted is None

    def one():
        nonlocal two
        two = one

    def two():
        pass

    assert compare({"one": one, "two": lambda: two()}).interrupted is None
    candidates = {"a": int}
    candidates["b"] = candidates.clear
    assert list(compare(candidates).results) == ["a", "b"]


def test_huge_results():
    comparison = compare({"bytes": lambda: bytes(10**7), "list": lambda: [None] * 10**6}, memory=True)
    memory = comparison.results["bytes"].memory
    assert memory.calls > 0 and memory.peak_bytes >= 10**7 and memory.allocated_bytes >= memory.calls * 10**7


def test_candidates_that_start_threads():
    def start():
        thread = threading.Thread(target=list)
        thread.start()
        thread.join()

    assert compare({"a": start, "b": int}).interrupted is None


def test_other_threads_get_their_turn():
    """One that needs the GIL ends while the comparison goes on."""
    turns, done = itertools.count(), threading.Event()

    def other():
        for _ in range(100_000):
            next(turns)
        done.set()

    thread = threading.Thread(target=other)

    def fn():
        if done.is_set():
            raise StopIteration

    thread.start()
    try:
        with pytest.raises(StopIteration):
            compare({"a": fn, "b": fn}, budget=1000)
    finally:
        thread.join()


# ---- the collector ----


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled):
    (gc.enable if enabled else gc.disable)()
    try:
        compare({"a": list, "b": int}, gc_time=True)
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


def test_collections_are_those_of_the_candidate():
    gc.freeze()
    try:
        comparison = compare({"none": int, "one": lambda: gc.collect(1), "two": lambda: gc.collect(0)}, gc_time=True)
    finally:
        gc.unfreeze()
    results = comparison.results
    assert results["none"].gc_collections == (0, 0, 0) and results["none"].gc_time.pauses == 0
    assert results["one"].gc_collections == (0, results["one"].calls, 0)
    assert results["two"].gc_collections == (results["two"].calls, 0, 0)
    assert results["one"].gc_time.pauses == results["one"].calls


def test_no_entry_stays_in_gc_callbacks():
    before = list(gc.callbacks)
    with pytest.raises(LookupError):
        compare({"a": int, "b": raising_at(100, LookupError())}, gc_time=True, budget=100)
    assert gc.callbacks == before
    kept = list(gc.callbacks)
    try:
        comparison = compare({"a": int, "b": gc.callbacks.clear}, gc_time=True)
    finally:
        gc.callbacks[:] = kept
    assert comparison.results["a"].gc_time is None
    assert "GC time is unknown: gc.callbacks was emptied during the comparison" in comparison.notes


def test_memory_is_refused_while_tracemalloc_traces():
    tracemalloc.start()
    try:
        comparison = compare({"a": list, "b": int}, memory=True)
    finally:
        tracemalloc.stop()
    memory = comparison.results["a"].memory
    assert memory.calls == 0 and "tracemalloc" in memory.reason and memory.allocations is None
    assert comparison.results["a"].calls > 0


def test_a_watched_function_is_called_itself():
    """What a tool watches by sys.monitoring, it would not see in a copy."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        pytest.skip("sys.monitoring is of Python 3.12")

    def watched():
        pass

    seen, tool = [], monitoring.PROFILER_ID
    monitoring.use_tool_id(tool, "test")
    try:
        monitoring.register_callback(tool, monitoring.events.PY_START, lambda code, offset: seen.append(code))
        monitoring.set_local_events(tool, watched.__code__, monitoring.events.PY_START)
        result = compare({"a": int, "watched": watched}).results["watched"]
        monitoring.set_local_events(tool, watched.__code__, 0)
        monitoring.register_callback(tool, monitoring.events.PY_START, None)
    finally:
        monitoring.free_tool_id(tool)
    assert len(seen) == result.calls + result.warmup_calls and set(seen) == {watched.__code__}


def test_a_comparison_inside_of_one():
    inner = []

    def fn():
        if not inner:
            inner.append(compare({"c": int, "d": float}))

    comparison = compare({"a": fn, "b": int}, budget=0.3)
    assert list(inner[0].results) == ["c", "d"] and list(comparison.results) == ["a", "b"]
    assert codetimer.last_comparison() is comparison


def test_progress_is_told_between_turns():
    parts = []
    compare({"a": int, "b": float}, budget=0.3, _progress=lambda part, per_call_ns: parts.append(part))
    assert parts and all(0 <= part <= 1 for part in parts) and parts == sorted(parts)

    def fail(part, per_call_ns):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        compare({"a": int, "b": float}, _progress=fail)
    assert codetimer.last_comparison().interrupted == "ZeroDivisionError"


def test_a_fresh_interpreter_has_none(script):
    done = script("import codetimer; print(codetimer.last_comparison())")
    assert done.stdout.split() == [b"None"], done.stderr
