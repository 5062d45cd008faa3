# SPDX-License-Identifier: MIT
"""Guards: the collections that a run reports are those that happened in it, as many as in a plain loop, over Python and
over C callables; and the collector is left as it was found, or as fn left it."""

import gc
import io
import itertools
import marshal

import codetimer
import pytest
from measuring import own_notes

N = 100_000


def keeping_python(n):
    keep = []
    return lambda: keep.append([])


def keeping_c(n):
    """A C callable that keeps a new list at each call."""
    keep = []
    return map(keep.append, map(list, itertools.repeat(()))).__next__


def keeping_many_c(n):
    """A C callable that keeps 31 new lists at each call."""
    keep = []
    data = marshal.dumps([[] for _ in range(30)])
    return map(keep.append, map(marshal.loads, itertools.repeat(data))).__next__


KINDS = [(keeping_python, N), (keeping_c, N), (keeping_many_c, N // 10)]


def marked(fn, n, mark):
    """fn as a C callable, with mark() before the first and after the last of n calls."""

    def first():
        mark()
        yield fn()

    def last():
        fn()
        mark()
        yield

    middle = itertools.starmap(fn, itertools.repeat((), n - 2))
    return itertools.chain(first(), middle, last()).__next__


@pytest.mark.parametrize("make,n", KINDS)
def test_counts_are_the_events_of_gc_callbacks(make, n):
    def callback(phase, info):
        if phase == "start":
            events[info["generation"]] += 1

    def mark():
        marks.append(tuple(events))

    events, marks = [0, 0, 0], []
    fn = marked(make(n), n, mark)
    gc.callbacks.append(callback)
    try:
        result = codetimer.time("", n, fn)
    finally:
        gc.callbacks.remove(callback)
    # A collection that the last call made due comes after it, still inside the run: the state after the run has it.
    in_run = [after - before for before, after in zip(marks[0], events, strict=True)]
    between = [after - before for before, after in zip(marks[0], marks[1], strict=True)]
    assert list(result.gc_collections) in (between, in_run)
    assert sum(result.gc_collections) > 10


def plain_loop(fn, n):
    gc.collect()
    before = [generation["collections"] for generation in gc.get_stats()]
    for _ in range(n):
        fn()
    return [generation["collections"] - old for generation, old in zip(gc.get_stats(), before, strict=True)]


@pytest.mark.parametrize("make,n", KINDS)
def test_as_many_as_in_a_plain_loop(make, n):
    plain = plain_loop(make(n), n)
    timed = codetimer.time("", n, make(n)).gc_collections
    assert plain[0] > 10
    assert abs(timed[0] - plain[0]) <= max(1, plain[0] * 0.03)
    assert abs(timed[1] - plain[1]) <= max(1, plain[1] * 0.03)


def test_explicit_collections_are_counted_exactly():
    assert codetimer.time("", 7, gc.collect).gc_collections == (0, 0, 7)
    assert codetimer.time("", 7, lambda: gc.collect(0)).gc_collections == (7, 0, 0)
    assert codetimer.time("", 0, gc.collect).gc_collections == (0, 0, 0)
    assert codetimer.last_result().gc_labels == ("Gen 0", "Gen 1", "Gen 2")


def test_own_bookkeeping_is_not_counted():
    thresholds = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        assert codetimer.time("", 100, int).gc_collections == (0, 0, 0)
    finally:
        gc.set_threshold(*thresholds)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_state_is_left_as_it_was(enabled):
    (gc.enable if enabled else gc.disable)()
    try:
        notes = own_notes(codetimer.time("", 1000, list))
        assert gc.isenabled() is enabled and notes == ()
    finally:
        gc.enable()


def test_what_fn_changes_stays_changed_and_is_noted():
    try:
        off = codetimer.time("", 10, gc.disable)
        assert not gc.isenabled()
        on = codetimer.time("", 10, gc.enable)
        assert gc.isenabled()
    finally:
        gc.enable()
    assert own_notes(off) == ("the garbage collector was switched off during the run",)
    assert own_notes(on) == ("the garbage collector was switched on during the run",)


def test_what_fn_changes_in_the_warm_up_is_noted():
    """Also in a comparison; and not what was so before."""
    options = {"budget": 0.01, "file": io.StringIO()}
    try:
        alone = codetimer.time("", None, gc.disable, **options)
        gc.enable()
        turns = codetimer.compare({"off": gc.disable, "other": int}, **options)
        before = codetimer.time("", None, int, **options), codetimer.compare({"one": int, "other": int}, **options)
    finally:
        gc.enable()
    assert "the garbage collector was switched off during the run" in alone.notes
    assert "the garbage collector was switched off during the comparison" in turns.notes
    assert not any("switched" in note for made in before for note in made.notes)


@pytest.mark.parametrize("changed", [(0,), (7, 7, 7)])
def test_thresholds_that_fn_changes_are_noted(changed):
    """As they end collections, or make more of them; and they stay as fn left them."""
    before = gc.get_threshold()
    options = {"budget": 0.01, "file": io.StringIO()}
    try:
        kept = codetimer.time("", 10, lambda: gc.set_threshold(*before))
        alone = codetimer.time("", 10, lambda: gc.set_threshold(*changed))
        assert gc.get_threshold()[: len(changed)] == changed
        gc.set_threshold(*before)
        turns = codetimer.compare({"changes": lambda: gc.set_threshold(*changed), "other": int}, **options)
        later = codetimer.compare({"one": int, "other": list}, **options)
    finally:
        gc.set_threshold(*before)
    assert own_notes(kept) == ()
    assert own_notes(alone) == ("the thresholds of the garbage collector were changed during the run",)
    assert "the thresholds of the garbage collector were changed during the comparison" in turns.notes
    assert not any("thresholds" in note for note in later.notes)


def test_a_full_collection_comes_first():
    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            freed.append(1)

    freed = []
    gc.collect()
    gc.disable()
    try:
        Cycle()
        codetimer.time("", 1, lambda: freed.append(2))
    finally:
        gc.enable()
    assert freed == [1, 2]
