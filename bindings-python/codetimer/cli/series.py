# SPDX-License-Identifier: MIT
"""The series that serve exports, from look to look: their sums only grow, and count every call once.

Of each counter there is what was last seen of it. A counter that is not in a look need not be gone: its segment may
have been deleted, and is published again when its process next measures; or it could not be read. So what it had
counted stays in the sum of its series as it was, and when it is seen again, what it says takes that place. Only what
cannot come back is settled: what a counter had before it began anew, and counters of processes that have ended.

No more than a given number of series is kept. One that has a place keeps it; what comes when there is no room takes the
place of the one that has been without a counter for longest, or is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from codetimer.cli.sampling import Row

FIRST_POWER, LAST_POWER, BUCKETS_AN_OCTAVE = 10, 36, 8
BOUNDS = [repr(2**power / 1e9) for power in range(FIRST_POWER, LAST_POWER + 1)] + ["+Inf"]
PATIENCE = 20  # looks that a counter is waited for, even if its process has ended: reading it may fail for a while
MOST_ABSENT = 10_000  # counters that are waited for longer, since their processes run

Labels = tuple[str, ...]  # category, member, program, and the pid where it is by process
Identity = tuple[int, int]  # of a process: its pid and when it started


class Tally(NamedTuple):
    """Values of a counter, or of several together."""

    cumulative: tuple[int, ...]  # for each of BOUNDS
    total_ns: int
    active_ns: int | None  # None where it is not known
    errors: int
    cancelled: int
    in_flight: int
    max_ns: int

    @property
    def calls(self) -> int:
        return self.cumulative[-1]

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


@dataclass(slots=True)
class _Counter:
    """What was last seen of a counter of a process."""

    labels: Labels
    generation: int
    segments: int  # of its process; the generation is a sum over them
    values: Tally
    absent: int = 0  # looks since then

    def begins_anew(self, labels: Labels, row: Row, segments: int, calls: int) -> bool:
        """Whether the row is of another counter, or of this one after a reset: its values come on top."""
        if labels != self.labels:  # another program in the process
            return True
        if row.sample.generation == self.generation:
            return calls < self.values.calls and not row.unclean
        return segments == self.segments  # else it is the same counter with, or without, a segment


class Series:
    """The sums of all series. keep: what counters had that have gone stays in them; else they are of one look."""

    def __init__(self, limit: int, keep: bool) -> None:
        self._limit = limit
        self._keep = keep
        self._looks = 0
        self._seen: dict[Labels, int] = {}  # of each series, the last look with a counter of it
        self._settled: dict[Labels, Tally] = {}
        self._counters: dict[tuple[int, int, str], _Counter] = {}

    def look(
        self, rows: Sequence[tuple[Labels, Row]], segments: Mapping[Identity, int]
    ) -> tuple[dict[Labels, Tally], int]:
        """The sums after a look that saw these rows, and how many of them are left out. segments: how many the
        processes have."""
        self._looks += 1
        self._give_places(dict.fromkeys(labels for labels, _ in rows))
        if not self._keep:
            self._counters.clear()
        for counter in self._counters.values():
            counter.absent += 1
        left_out = 0
        for labels, row in rows:
            if labels in self._seen:
                self._take(labels, row, segments.get((row.pid, row.start_time), 0))
            else:
                left_out += 1
        self._settle()
        return self._sums(), left_out

    # ---- which series ----

    def _give_places(self, present: Iterable[Labels]) -> None:
        new = [labels for labels in present if labels not in self._seen]
        self._seen.update((labels, self._looks) for labels in present if labels in self._seen)
        gone = sorted((labels for labels, look in self._seen.items() if look < self._looks), key=self._seen.__getitem__)
        if self._keep:
            gone = gone[: max(0, len(self._seen) + len(new) - self._limit)]
        self._forget(gone)
        self._seen.update((labels, self._looks) for labels in new[: self._limit - len(self._seen)])

    def _forget(self, gone: Iterable[Labels]) -> None:
        for labels in gone:
            del self._seen[labels]
            self._settled.pop(labels, None)
        self._counters = {name: each for name, each in self._counters.items() if each.labels in self._seen}

    # ---- their sums ----

    def _take(self, labels: Labels, row: Row, segments: int) -> None:
        name, values = (row.pid, row.start_time, row.key), tally(row)
        before = self._counters.get(name)
        if before is not None and before.begins_anew(labels, row, segments, values.calls):
            self._add_settled(before)
        elif before is not None and values.calls < before.values.calls:  # not all of it was seen
            before.values = before.values._replace(in_flight=values.in_flight)
            before.absent = 0
            return
        self._counters[name] = _Counter(labels, row.sample.generation, segments, values)

    def _settle(self) -> None:
        """Those that need not be waited for any more."""
        absent = [name for name, counter in self._counters.items() if counter.absent >= PATIENCE]
        absent.sort(key=lambda name: -self._counters[name].absent)
        ended = {pid: has_ended(pid) for pid in {pid for pid, _, _ in absent}}
        for at, name in enumerate(absent):
            if ended[name[0]] or at < len(absent) - MOST_ABSENT:
                self._add_settled(self._counters.pop(name))

    def _add_settled(self, counter: _Counter) -> None:
        labels, values = counter.labels, counter.values._replace(in_flight=0)
        self._settled[labels] = self._settled[labels] + values if labels in self._settled else values

    def _sums(self) -> dict[Labels, Tally]:
        sums = dict(self._settled)
        for counter in self._counters.values():
            labels, values = counter.labels, counter.values
            if counter.absent:
                values = values._replace(in_flight=0)
            sums[labels] = sums[labels] + values if labels in sums else values
        return sums


def has_ended(pid: int) -> bool:
    """Whether there is certainly no process of this number."""
    if os.name != "posix":  # elsewhere this would not ask
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is somebody else's
        pass
    return False
