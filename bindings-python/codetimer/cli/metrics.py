# SPDX-License-Identifier: MIT
"""The counters of all local processes as metrics of Prometheus: a custom collector for prometheus_client.

Buckets are the powers of two from 2^10 ns (1 µs) to 2^36 ns (69 s), every eighth of ours, so that their counts are
exact. +Inf and _count are the sum of all buckets of the same copy; _sum belongs to the calls of that copy within the
calls that ended while it was read.

Labels are bounded: no value is longer than LONGEST_LABEL, no more than a given number of counters is exported, and
what is left out is counted. By process, each new process is a new set of series. By program there is one set for all
processes of a program: what processes that have gone had counted stays in its sums, so that they only grow, as rate()
needs it.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from codetimer.cli.sampling import Row, Sampler, Snapshot
from codetimer.cli.store import storable

FIRST_POWER, LAST_POWER, BUCKETS_AN_OCTAVE = 10, 36, 8
BOUNDS = [repr(2**power / 1e9) for power in range(FIRST_POWER, LAST_POWER + 1)] + ["+Inf"]
ACTIVE_HELP = "Time in which the calls ran: their duration without what they waited; absent where it is not known."
LONGEST_LABEL = 128
LONGEST_HELP = 2000


class Tally(NamedTuple):
    """Values of a counter, or of several together."""

    cumulative: tuple[int, ...]  # for each of BOUNDS
    total_ns: int
    active_ns: int | None  # None where it is not known
    errors: int
    cancelled: int
    in_flight: int
    max_ns: int

    def __add__(self, other: object) -> Tally:
        assert isinstance(other, Tally)
        cumulative = tuple(map(sum, zip(self.cumulative, other.cumulative, strict=True)))
        return Tally(
            cumulative,
            self.total_ns + other.total_ns,
            None if self.active_ns is None or other.active_ns is None else self.active_ns + other.active_ns,
            self.errors + other.errors,
            self.cancelled + other.cancelled,
            self.in_flight + other.in_flight,
            max(self.max_ns, other.max_ns),
        )


def tally(row: Row) -> Tally:
    counts = list(accumulate(row.sample.buckets))
    step = BUCKETS_AN_OCTAVE
    cumulative = (*counts[FIRST_POWER * step : LAST_POWER * step + 1 : step], counts[-1])
    longest = row.sample.max_ns or 0
    return Tally(cumulative, row.total_ns, row.active_ns, row.errors, row.cancelled, row.in_flight, longest)


def label(text: str) -> str:
    """The text as a label value: cut where it is long, and then still different from other long ones."""
    text = storable(text)
    if len(text) <= LONGEST_LABEL:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{text[: LONGEST_LABEL - 9]}~{digest}"


Labels = tuple[str, ...]  # category, member, program, and the pid where it is by process


class ProcessCollector(Collector):
    """Looks at the processes at each scrape."""

    def __init__(self, sampler: Sampler, by_program: bool, limit: int) -> None:
        self._sampler = sampler
        self._by_program = by_program
        self._limit = limit
        self._lock = threading.Lock()  # the server has a thread for each scrape
        self._last: dict[tuple[object, ...], tuple[Labels, Tally]] = {}  # of each counter, by program only
        self._gone: dict[Labels, Tally] = {}  # sums of counters that are no more

    def describe(self) -> Iterable[Metric]:
        return []  # nothing is looked at before the first scrape

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            try:
                snapshot = self._sampler.sample()
            except (OSError, ValueError):
                return iter([_gauge("codetimer_reader_up", "1: the counters could be read.", [], [([], 0)])])
            found, left_out = self._tallies(snapshot.rows)
        return iter([*self._metrics(found, _help(snapshot.rows)), *_facts(snapshot, left_out)])

    # ---- sums ----

    def _tallies(self, rows: Sequence[Row]) -> tuple[dict[Labels, Tally], int]:
        found: dict[Labels, Tally] = {}
        left_out = 0
        present: dict[tuple[object, ...], tuple[Labels, Tally]] = {}
        for row in rows:
            labels = self._labels(row)
            if labels not in found and len(found) >= self._limit:
                left_out += 1
                continue
            values = tally(row)
            present[row.pid, row.start_time, row.key, row.sample.generation] = (labels, values)
            found[labels] = found[labels] + values if labels in found else values
        if self._by_program:
            self._keep_gone(present)
            for labels, values in self._gone.items():
                found[labels] = found[labels] + values if labels in found else values
        return found, left_out

    def _keep_gone(self, present: dict[tuple[object, ...], tuple[Labels, Tally]]) -> None:
        for name in self._last.keys() - present.keys():
            labels, values = self._last[name]
            values = values._replace(in_flight=0)
            self._gone[labels] = self._gone.pop(labels) + values if labels in self._gone else values
        while len(self._gone) > self._limit:
            self._gone.pop(next(iter(self._gone)))  # the one that has been gone for longest
        self._last = present

    def _labels(self, row: Row) -> Labels:
        labels = (label(row.category), label(row.member), label(row.program))
        return labels if self._by_program else (*labels, str(row.pid))

    # ---- metrics ----

    def _metrics(self, found: dict[Labels, Tally], help_text: str) -> list[Metric]:
        names = ["category", "member", "program", *([] if self._by_program else ["pid"])]
        calls = HistogramMetricFamily("codetimer_call_duration_seconds", help_text, labels=names)
        active = CounterMetricFamily("codetimer_active_seconds", ACTIVE_HELP, labels=names)
        errors = CounterMetricFamily("codetimer_errors", "Calls that ended with an error.", labels=names)
        cancelled = CounterMetricFamily("codetimer_cancelled", "Calls that were cancelled.", labels=names)
        in_flight = GaugeMetricFamily("codetimer_in_flight", "Calls that are under way.", labels=names)
        longest = GaugeMetricFamily("codetimer_max_seconds", "Longest call since the counter began.", labels=names)
        for labels, values in found.items():
            buckets = list(zip(BOUNDS, values.cumulative, strict=True))
            calls.add_metric(labels, buckets, values.total_ns / 1e9)
            if values.active_ns is not None:
                active.add_metric(labels, values.active_ns / 1e9)
            errors.add_metric(labels, values.errors)
            cancelled.add_metric(labels, values.cancelled)
            in_flight.add_metric(labels, values.in_flight)
            longest.add_metric(labels, values.max_ns / 1e9)
        return [calls, active, errors, cancelled, in_flight, longest]


def _help(rows: Sequence[Row]) -> str:
    """Prometheus has one help text for a metric; it takes up those of the counters, as far as they go."""
    texts = dict.fromkeys(f"{row.member}: {row.help}" for row in rows if row.help)
    text = "; ".join(["How long calls of measured functions took.", *map(storable, texts)]).replace(".; ", ". ", 1)
    return text if len(text) <= LONGEST_HELP else f"{text[: LONGEST_HELP - 1]}…"


def _facts(snapshot: Snapshot, left_out: int) -> list[Metric]:
    """About the processes and the reader itself."""
    up: dict[tuple[str, str], float] = {}
    refused: dict[tuple[str, str], float] = {}
    for each in snapshot.processes:
        labels = (label(each.program or ""), str(each.pid))
        up[labels] = max(up.get(labels, 0), float(each.state == "live"))
        refused[labels] = refused.get(labels, 0) + (each.refused or 0)
    busy, unclean = sum(row.busy for row in snapshot.rows), sum(row.unclean for row in snapshot.rows)
    names = ["program", "pid"]
    refusals = CounterMetricFamily("codetimer_refused_counters", "Counters that could not be made.", labels=names)
    for labels, number in refused.items():
        refusals.add_metric(labels, number)
    return [
        _gauge("codetimer_up", "1: the process runs; 0: it has ended, and was not reaped.", names, list(up.items())),
        refusals,
        _gauge("codetimer_reader_up", "1: the counters could be read.", [], [([], 1)]),
        _gauge("codetimer_busy_counters", "Counters with older values: their writer was in the way.", [], [([], busy)]),
        _gauge("codetimer_unclean_counters", "Counters in which one call may be half in.", [], [([], unclean)]),
        _gauge("codetimer_unusable_segments", "Segments that cannot be read.", [], [([], len(snapshot.problems))]),
        _gauge("codetimer_left_out_counters", "Counters beyond the limit of serve.", [], [([], left_out)]),
    ]


def _gauge(name: str, text: str, names: Sequence[str], values: Sequence[tuple[Sequence[str], float]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=names)
    for labels, value in values:
        family.add_metric(labels, value)
    return family
