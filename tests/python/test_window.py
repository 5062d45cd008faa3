# SPDX-License-Identifier: MIT
"""Guards: while the clock runs nothing of ours is allocated and nothing collected: around a body that allocates nothing
the harness makes no allocation and no collection."""

import gc
import io
import itertools
import statistics
import sys
import tracemalloc

import codetimer
import pytest


def empty():
    pass


CALLABLES = {"Python": empty, "C": [].clear, "type": int}


@pytest.fixture
def eager():
    """Any object that the collector knows sets off a collection."""
    thresholds = gc.get_threshold()
    codetimer.time("", fn=int, budget=0.001)  # what empty calls take is known from here on
    empty()  # up to Python 3.10 the first call makes the frame that the others use
    gc.collect()
    gc.freeze()
    gc.set_threshold(1, 1, 1)
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def assert_none_is_collected(measure):
    """The thread that follows the members list, if an earlier test has started it, makes objects now and then; what the
    harness made would set off collections each time."""
    for _ in range(20):
        seen = [(result.gc_collections, result.gc_time) for result in measure()]
        if all(collections == (0, 0, 0) and time in (None, (0, 0, 0)) for collections, time in seen):
            return
    raise AssertionError(f"collections each time, the last: {seen}")


@pytest.mark.parametrize("name", CALLABLES)
@pytest.mark.parametrize("options", [{"n": 10_000}, {"n": None, "budget": 0.05}, {"n": 10_000, "gc_time": True}])
def test_nothing_is_collected_in_a_run(name, options, eager):
    def measure():
        return [codetimer.time("", fn=CALLABLES[name], **options)]

    assert_none_is_collected(measure)


def test_nothing_is_collected_in_a_comparison(eager):
    candidates = dict(CALLABLES)
    if sys.version_info < (3, 11):
        del candidates["Python"]  # each copy makes its frame
    def measure():
        return codetimer.compare(candidates, budget=0.1, file=io.StringIO(), gc_time=True).results.values()

    assert_none_is_collected(measure)


# ---- allocations of any kind ----


def windows(fn, before, within, peaks):
    """fn as a C callable that, after some calls, begins and ends a window of calls over and over. Of each window the
    most that was allocated in it beyond what was at its start comes into peaks."""

    def begin():
        nonlocal base
        base = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        yield

    def end():
        peak = tracemalloc.get_traced_memory()[1]
        peaks.append(peak - base)
        yield

    base = 0
    calls = itertools.chain.from_iterable(
        part
        for _ in itertools.count()
        for part in (
            itertools.starmap(fn, itertools.repeat((), before)),
            begin(),
            itertools.starmap(fn, itertools.repeat((), within)),
            end(),
        )
    )
    return calls.__next__


@pytest.fixture
def traced():
    tracemalloc.start()
    yield
    tracemalloc.stop()


# A window now and then holds something of the machinery that makes the windows, in a plain loop as well; what the
# harness allocated would be in each of them.
usual = statistics.median_low


def plain_loop(fn, before, within):
    peaks = []
    call = windows(fn, before, within, peaks)
    while len(peaks) < 6:
        call()
    return usual(peaks[1:])


@pytest.mark.parametrize("name", CALLABLES)
def test_nothing_is_allocated_in_a_run_of_given_n(name, traced):
    """The window reaches over many chunks."""
    fn, peaks = CALLABLES[name], []
    most = plain_loop(fn, 1000, 50_000)
    codetimer.time("", 6 * 51_002, windows(fn, 1000, 50_000, peaks))
    assert len(peaks) == 6 and usual(peaks[1:]) <= most


def test_nothing_is_allocated_in_an_automatic_run(traced):
    most, peaks, budget = plain_loop(int, 1000, 50_000), [], 1
    while len(peaks) < 10:
        peaks.clear()
        result = codetimer.time("", fn=windows(int, 1000, 50_000, peaks), budget=budget)
        budget *= 2
    measured = result.warmup_calls // 51_002 + 1  # the first window that is not of the warm-up
    assert len(peaks) > measured and usual(peaks[measured:]) <= most


def test_nothing_is_allocated_in_a_turn(traced):
    """Between two turns the counts of the collector are read: the windows that hold such a moment are not many."""
    most, peaks, budget = plain_loop(int, 900, 10), [], 0.5
    while len(peaks) < 200:
        peaks.clear()
        codetimer.compare({"a": windows(int, 900, 10, peaks), "b": int}, budget=budget, file=io.StringIO())
        budget *= 2
    assert sum(peak <= most for peak in peaks[:200]) > 160
