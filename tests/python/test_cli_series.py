# SPDX-License-Identifier: MIT
"""Guards the sums that `codetimer serve` exports: whatever is seen or not seen of counters in a look, they never fall
and count no call twice, and there are never more of them than asked for."""

import os
from types import SimpleNamespace

import codetimer.cli.series
import pytest
from codetimer.cli.series import PATIENCE, Series

HERE = os.getpid()


def row(member, calls, *, pid=HERE, start=1, generation=1, in_flight=0, unclean=False):
    """As the sampler has it, of calls of 3 ns."""
    sample = SimpleNamespace(buckets=[0, 0, calls, *[0] * 500], max_ns=3, generation=generation)
    return SimpleNamespace(
        pid=pid, start_time=start, key=f"m/{member}", sample=sample, total_ns=3 * calls, active_ns=3 * calls,
        errors=calls, cancelled=0, in_flight=in_flight, unclean=unclean,
    )  # fmt: skip


def look(series, *rows, segments=1):
    """{member: calls} of the series, and the counters that are left out."""
    labelled = [((row.key.partition("/")[2],), row) for row in rows]
    sums, left_out = series.look(labelled, {(row.pid, row.start_time): segments for row in rows})
    for values in sums.values():
        assert values.total_ns == 3 * values.calls and values.errors == values.calls
    return {labels[0]: values.calls for labels, values in sums.items()}, left_out


@pytest.fixture
def series():
    return Series(10, keep=True)


def test_what_is_missing_from_looks_is_counted_once(series):
    """Its segment was deleted, and is published again when the process measures."""
    assert look(series, row("f", 5, in_flight=1), row("f", 7, pid=1)) == ({"f": 12}, 0)
    for _ in range(PATIENCE + 3):
        assert look(series, row("f", 7, pid=1)) == ({"f": 12}, 0)
    assert look(series, row("f", 6), row("f", 8, pid=1)) == ({"f": 14}, 0)


def test_calls_under_way_are_those_that_are_seen(series):
    def in_flight(*rows):
        sums, _ = series.look([(("f",), row) for row in rows], {})
        return sums["f",].in_flight

    assert [in_flight(row("f", 5, in_flight=2)), in_flight(), in_flight(row("f", 5, in_flight=3))] == [2, 0, 3]


def test_what_begins_anew_comes_on_top(series):
    """A reset, or another program in the same process."""
    look(series, row("f", 5))
    assert look(series, row("f", 1, generation=2)) == ({"f": 6}, 0)
    assert look(series, row("f", 9, generation=3)) == ({"f": 15}, 0)
    assert look(series, row("f", 2, generation=3)) == ({"f": 17}, 0)
    assert look(series) == ({"f": 17}, 0)
    assert look(series, row("f", 3, generation=4)) == ({"f": 20}, 0)


def test_a_segment_more_or_less_is_the_same_counter(series):
    """Its generation is then another, as that of a sum."""
    look(series, row("f", 5))
    assert look(series, row("f", 8, generation=3), segments=2) == ({"f": 8}, 0)
    assert look(series, row("f", 6), segments=1) == ({"f": 8}, 0)
    assert look(series, row("f", 9, generation=3), segments=2) == ({"f": 9}, 0)


def test_what_was_seen_in_part_is_waited_for(series):
    look(series, row("f", 5))
    assert look(series, row("f", 3, unclean=True)) == ({"f": 5}, 0)
    assert look(series, row("f", 6)) == ({"f": 6}, 0)


def test_ended_processes_stay_in_the_sums(series, monkeypatch):
    """And take no memory of their own."""
    monkeypatch.setattr(codetimer.cli.series, "has_ended", lambda pid: pid != HERE)
    for number in range(100):
        look(series, row("f", 1, pid=number + HERE + 1), row("g", 1, start=number))
    for _ in range(PATIENCE):
        assert look(series) == ({"f": 100, "g": 100}, 0)
    assert {name[0] for name in series._counters} == {HERE}
    monkeypatch.setattr(codetimer.cli.series, "MOST_ABSENT", 10)
    assert look(series) == ({"f": 100, "g": 100}, 0)
    assert sorted(start for _, start, _ in series._counters) == list(range(90, 100))


def test_the_limit_holds_and_places_are_kept():
    """What comes later does not push out what is there; what is gone for longest makes room."""
    series = Series(2, keep=True)
    assert look(series, row("b", 1), row("c", 2)) == ({"b": 1, "c": 2}, 0)
    assert look(series, row("a", 9), row("b", 1), row("c", 2)) == ({"b": 1, "c": 2}, 1)
    assert look(series, row("b", 1)) == ({"b": 1, "c": 2}, 0)
    assert look(series, row("c", 3)) == ({"b": 1, "c": 3}, 0)
    assert look(series, row("a", 9), row("d", 4)) == ({"a": 9, "d": 4}, 0)
    assert look(series, row("a", 9), row("a", 1, pid=1), row("b", 5), row("c", 6)) == ({"a": 10, "b": 5}, 1)


def test_of_one_look_each_by_process():
    """Then a reset is one for the reader too, and what is gone is gone."""
    series = Series(2, keep=False)
    assert look(series, row("b", 5), row("c", 5), row("d", 1)) == ({"b": 5, "c": 5}, 1)
    assert look(series, row("a", 9), row("b", 1, generation=2), row("c", 4)) == ({"b": 1, "c": 4}, 1)
    assert look(series, row("a", 9), row("c", 4)) == ({"a": 9, "c": 4}, 0)


def test_has_ended():
    assert not codetimer.cli.series.has_ended(HERE)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert codetimer.cli.series.has_ended(pid)
