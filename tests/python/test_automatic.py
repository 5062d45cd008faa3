# SPDX-License-Identifier: MIT
"""Guards: a run of automatic n keeps to its budget and says what it is made of; what an empty call takes is known; GC
time is that of the collections, and nothing of its measuring stays."""

import contextlib
import gc
import io
import itertools
import signal
import threading
import time

import codetimer
import pytest
from measuring import own_notes


def counting():
    def fn():
        nonlocal calls
        calls += 1

    calls = 0
    return fn, lambda: calls


@pytest.mark.parametrize("budget", [0.001, 0.02, 0.2])
def test_calls_are_those_that_were_made(budget):
    fn, calls = counting()
    counter = itertools.count()
    for result, made in (
        (codetimer.time("", None, fn, budget=budget), calls),
        (codetimer.time("", fn=counter.__next__, budget=budget), counter.__next__),
    ):
        assert result.calls + result.warmup_calls == made()
        assert result.automatic and result.n == result.calls == sum(result.batches_calls)
        assert sum(result.batches_ns) == result.elapsed_ns > 0
        assert result.budget_ns == round(budget * 1e9)


def test_the_collector_counts_of_the_warm_up_are_forgotten():
    """Each call collects once: there are as many collections as calls, without those that warmed up."""
    gc.freeze()
    try:
        result = codetimer.time("", None, lambda: gc.collect(1), budget=0.1, gc_time=True)
    finally:
        gc.unfreeze()
    assert (result.warmup_calls == 0) == any("no warm-up" in note for note in result.notes)
    assert result.gc_collections == (0, result.calls, 0)
    assert result.gc_time.pauses == result.calls


def test_a_body_longer_than_the_budget_is_called_once():
    calls = []
    result = codetimer.time("", fn=lambda: (calls.append(1), time.sleep(0.05)), budget=0.01)
    assert (result.calls, result.warmup_calls, len(calls)) == (1, 0, 1)
    assert any("no warm-up" in note for note in result.notes)
    assert result.elapsed_ns >= 50_000_000


@pytest.mark.parametrize("error,word", [(KeyboardInterrupt, "interrupted"), (ZeroDivisionError, "ZeroDivisionError")])
@pytest.mark.parametrize("at", [0, 1, 2, 5, 100, 12345])
def test_an_error_ends_it(error, word, at, capsys):
    def fn():
        if next(count) == at:
            raise raised

    raised, count = error(), itertools.count()
    with pytest.raises(error) as caught:
        codetimer.time("Auto", fn=fn, budget=100)
    result = codetimer.last_result()
    assert caught.value is raised
    assert result.interrupted == word and result.calls + result.warmup_calls == at
    assert f"({word})" in capsys.readouterr().out


def test_ctrl_c_ends_a_budget_of_years():
    def handler(number, frame):
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, handler)
    try:
        for fn in (lambda: None, int):
            codetimer.time("", 0, int)
            delay = 0.05
            while codetimer.last_result().calls == 0:  # it may have come before the first call
                signal.setitimer(signal.ITIMER_REAL, delay)
                delay *= 2
                with pytest.raises(KeyboardInterrupt):
                    codetimer.time("", fn=fn, budget=1e9)
            assert codetimer.last_result().interrupted == "interrupted"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


# ---- empty calls ----


def sufficient(fn):
    """A run with batches enough for an interval; a slow machine takes longer for them."""
    for doubled in range(8):
        result = codetimer.time("", fn=fn, budget=0.2 * 2**doubled)
        if result.net_low_ns is not None:
            return result
    pytest.fail("no interval")


def test_an_empty_body_is_told():
    """Where its interval reaches down to that of an empty call: the machine may be busy."""

    def empty():
        pass

    result = sufficient(empty)
    told = "indistinguishable from an empty call" in result.notes
    assert told == (result.interval_low_ns <= result.overheads[0].high_ns)
    assert told == (result.net_low_ns == 0)


def test_a_body_is_no_empty_call():
    result = sufficient(lambda: sum(range(30_000)))
    assert 0 < result.net_low_ns <= result.net_high_ns < result.interval_high_ns
    assert "indistinguishable from an empty call" not in result.notes


def test_overheads_are_measured_once(script):
    done = script(
        "import codetimer, time\n"
        "first = codetimer.time('', 1, int)\n"
        "began = time.perf_counter()\n"
        "overheads = first.overheads\n"
        "once = time.perf_counter() - began\n"
        "began = time.perf_counter()\n"
        "for _ in range(100): assert set(codetimer.time('', 1, lambda: 0).overheads) == set(overheads)\n"
        "print(once > (time.perf_counter() - began) / 100, len(overheads))\n"
    )
    assert done.stdout.split() == [b"True", b"2"], done.stderr


def test_verbose_shows_more():
    stream = io.StringIO()
    codetimer.time("More", 1000, int, file=stream, verbose=True)
    for word in ("Empty Call:", "System:", "Clock:"):
        assert word in stream.getvalue()


# ---- GC time ----


def keeping():
    keep = []
    return lambda: keep.append([])


def test_gc_time_is_asked_for():
    assert codetimer.time("", 10, list).gc_time is None
    assert codetimer.time("", 10, list, gc_time=True).gc_time == (0, 0, 0)


def test_gc_time_is_of_the_collections():
    result = codetimer.time("", 50_000, keeping(), gc_time=True)
    assert result.gc_time.pauses == sum(result.gc_collections) > 10
    assert 0 < result.gc_time.longest_ns <= result.gc_time.total_ns
    assert "GC Time:" in str(result)


def test_gc_time_of_other_threads_counts():
    """Their collections stop this thread as well."""

    def fn():
        thread = threading.Thread(target=gc.collect)
        thread.start()
        thread.join()

    gc.freeze()
    try:
        result = codetimer.time("", 3, fn, gc_time=True)
    finally:
        gc.unfreeze()
    assert result.gc_time.pauses == sum(result.gc_collections) >= 3


def failing():
    raise LookupError


@pytest.mark.parametrize("fn", [list, failing, lambda: codetimer.time("", 3, gc.collect, gc_time=True)])
@pytest.mark.parametrize("n", [0, 3, None])
def test_no_entry_stays_in_gc_callbacks(fn, n):
    before = list(gc.callbacks)
    with contextlib.suppress(LookupError):
        codetimer.time("", n, fn, gc_time=True, budget=0.01 if n is None else None)
    assert gc.callbacks == before


def test_gc_callbacks_emptied_during_the_run():
    kept = list(gc.callbacks)
    try:
        result = codetimer.time("", 3, gc.callbacks.clear, gc_time=True)
        assert gc.callbacks == []
    finally:
        gc.callbacks[:] = kept
    assert result.gc_time is None
    assert own_notes(result) == ("GC time is unknown: gc.callbacks was emptied during the run",)


def test_an_entry_that_somebody_kept_does_no_harm():
    entries = []
    codetimer.time("", 1, lambda: entries.extend(gc.callbacks), gc_time=True)
    for entry in entries:
        entry("start", {})
        entry("stop", {})
        entry("stop", {})
        entry(5)
        entry()
    assert entries


# ---- progress ----


def test_progress_is_told_between_chunks():
    parts = []
    codetimer.time("", 20, lambda: time.sleep(0.02), _progress=lambda part, per_call_ns: parts.append(part))
    assert len(parts) >= 3 and all(0 < part <= 1 for part in parts) and parts == sorted(parts)
    codetimer.time("", fn=lambda: time.sleep(0.001), budget=0.3, _progress=lambda part, per_call_ns: parts.append(part))
    assert all(0 < part <= 1 for part in parts)


def test_a_progress_that_raises_ends_the_run():
    def fail(part, per_call_ns):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        codetimer.time("", 2**62, lambda: None, _progress=fail)
    assert codetimer.last_result().interrupted == "ZeroDivisionError"
