# SPDX-License-Identifier: MIT
"""The counters of all local processes as metrics of Prometheus: a custom collector for prometheus_client.

Buckets are the powers of two from 2^10 ns (1 µs) to 2^36 ns (69 s), every eighth of ours, so that their counts are
exact. +Inf and _count are the sum of all buckets of the same copy; _sum belongs to the calls of that copy within the
calls that ended while it was read.

Labels are bounded: no value is longer than LONGEST_LABEL, no more than a given number of series is exported, and what
is left out is counted. By process, each new process is a new set of series. By program there is one set for all
processes of a program: what processes that have gone had counted stays in its sums, so that they only grow, as rate()
needs it (series.py).
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from codetimer.cli.sampling import Row, Sampler, Snapshot
from codetimer.cli.series import BOUNDS, Labels, Series, Tally
from codetimer.cli.store import storable

ACTIVE_HELP = "Time in which the calls ran: their duration without what they waited; absent where it is not known."
LONGEST_LABEL = 128
LONGEST_HELP = 2000


def label(text: str) -> str:
    """The text as a label value: cut where it is long, and then still different from other long ones."""
    text = storable(text)
    if len(text) <= LONGEST_LABEL:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{text[: LONGEST_LABEL - 9]}~{digest}"


class ProcessCollector(Collector):
    """Looks at the processes at each scrape."""

    def __init__(self, sampler: Sampler, by_program: bool, limit: int) -> None:
        self._sampler = sampler
        self._by_program = by_program
        self._lock = threading.Lock()  # the server has a thread for each scrape
        self._series = Series(limit, keep=by_program)

    def describe(self) -> Iterable[Metric]:
        return []  # nothing is looked at before the first scrape

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            try:
                snapshot = self._sampler.sample()
            except (OSError, ValueError):
                return iter([_gauge("codetimer_reader_up", "1: the counters could be read.", [], [([], 0)])])
            segments = Counter((each.pid or 0, each.start_time or 0) for each in snapshot.processes)
            found, left_out = self._series.look([(self._labels(row), row) for row in snapshot.rows], segments)
        return iter([*self._metrics(found, _help(snapshot.rows)), *_facts(snapshot, left_out)])

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
