# SPDX-License-Identifier: MIT
"""Two samples of the counters of running processes, turned into rows: what top, watch, record and serve show.

A Sampler looks at the processes again and again and remembers of each counter the sample before. What happened in
between is the window of the row. A row has no window when its counter is seen for the first time, when it was reset
meanwhile, or when its writer was in the way. Where there is no window, or no call in it, the values of the window are
None, never 0.

    with Sampler() as sampler:
        sampler.sample()
        time.sleep(1)
        for row in sampler.sample().rows:
            print(row.pid, row.key, row.rate, row.average_ns)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import TracebackType
from typing import NamedTuple

import codetimer
from codetimer import Process, Sample, View

NANOSECONDS = 1_000_000_000


class Row(NamedTuple):
    """One counter of one process at one moment, and what happened in the window before it."""

    pid: int
    start_time: int  # with the pid it names one process
    program: str  # "" where it is not known
    host: str  # the language, "Python 3.12"; "" where it is not known
    key: str  # "category/member"
    help: str  # "" if it has none
    enabled: bool
    busy: bool  # its writer was in the way: these are the values of the sample before
    unclean: bool  # one call may be half in: the process ended in the middle of an update
    reset: bool  # its values began again since the sample before
    live: bool  # the process runs; else these are its last values

    # The window; None without one.
    window_ns: int | None  # its length
    window_calls: int | None  # 0: nobody called

    # What happened in the window; None without a call.
    rate: float | None  # calls per second
    average_ns: float | None
    active_average_ns: float | None  # of which the calls ran; None also where that is not known
    p50_ns: float | None
    p90_ns: float | None
    p99_ns: float | None
    max_ns: int | None  # known within a bucket (9 %)
    share: float | None  # time in the member by time that passed; over 1.0 where calls overlap

    # The life of the counter.
    lifetime_average_ns: float | None  # None without a call
    lifetime_active_average_ns: float | None  # None also where that is not known
    waits: bool  # some of its calls waited, or may have: their active time is another than their duration
    calls: int
    errors: int
    cancelled: int
    total_ns: int
    active_ns: int | None  # None where it is not known
    in_flight: int  # now

    sample: Sample  # all values, with buckets
    window: Sample | None  # the difference

    @property
    def category(self) -> str:
        return self.key.partition("/")[0]

    @property
    def member(self) -> str:
        return self.key.partition("/")[2]


class Snapshot(NamedTuple):
    """What one look at the processes gave."""

    time_ns: int  # codetimer.now_ns() when it began
    rows: list[Row]  # by process in the order of their pids, in it by key
    processes: list[Process]  # whose segments were read, one line for each segment
    problems: list[Process]  # segments that could not be read; .reason says why


class _Watched:
    """A process that is being looked at: its view, and the sample before of each of its counters."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.samples: dict[str, Sample] = {}
        self.help: dict[str, str] = {}

    def sample(self) -> Iterator[Row]:
        samples = self.view.sample()
        if samples.keys() != self.help.keys():
            self.help = {key: info.help for key, info in self.view.counters.items()}
        process, busy = self.view.process, self.view.busy
        if process.pid is None:
            return  # damaged since it was opened
        for key in sorted(samples):
            before = self.samples.get(key)
            if key in busy and before is None:
                del samples[key]  # nothing is known of it yet: it has no row, and is new when it can be read
                continue
            if before is not None and key in busy:
                samples[key] = before
            yield make_row(process, samples[key], before, busy=key in busy, help=self.help.get(key, ""))
        self.samples = samples


class Sampler:
    """Looks at the processes that publish counters, again and again.

    directory: where they publish; None: where this user's processes do.
    pids: only these; None: all.
    dead: whether to go on with the last values of a process that ended while it was looked at, until it is reaped.
        Those that were dead before are left out: nobody knows how many there are.

    Processes that begin are found by the next sample(), and those that end are dropped by it.
    """

    def __init__(
        self, *, directory: str | None = None, pids: Collection[int] | None = None, dead: bool = False
    ) -> None:
        self._directory = directory
        self._pids = pids
        self._dead = dead
        self._watched: dict[tuple[int, int], _Watched] = {}

    def sample(self) -> Snapshot:
        """Look once. Raises OSError where the directory cannot be read."""
        now = codetimer.now_ns()
        found: dict[tuple[int, int], list[Process]] = {}
        problems: list[Process] = []
        for process in codetimer.processes(self._directory):
            if process.pid is None or process.start_time is None:
                problems.append(process)
            elif self._is_wanted(process):
                found.setdefault((process.pid, process.start_time), []).append(process)
        for identity in self._watched.keys() - found.keys():
            self._watched.pop(identity).view.close()
        rows: list[Row] = []
        processes: list[Process] = []
        for identity in sorted(found):
            live = [process for process in found[identity] if process.state == "live"]
            found[identity] = live or found[identity]  # dead ones beside them are from before an exec
            watched = self._watch(identity, found[identity], problems)
            if watched is not None:
                rows.extend(watched.sample())
                processes.extend(found[identity])
        return Snapshot(now, rows, processes, problems)

    def close(self) -> None:
        """Let go of all processes. A later sample() begins anew."""
        for watched in self._watched.values():
            watched.view.close()
        self._watched.clear()

    def __enter__(self) -> Sampler:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _is_wanted(self, process: Process) -> bool:
        known = self._dead and (process.pid, process.start_time) in self._watched
        return (process.state == "live" or known) and (self._pids is None or process.pid in self._pids)

    def _watch(
        self, identity: tuple[int, int], segments: list[Process], problems: list[Process]
    ) -> _Watched | None:
        watched = self._watched.get(identity)
        now = {(process.path, process.state) for process in segments}
        if watched is not None and {(process.path, process.state) for process in watched.view.segments} == now:
            return watched
        try:
            view = codetimer.attach(segments[0], directory=self._directory)
        except ProcessLookupError:
            return None  # it ended between the two looks
        except (OSError, ValueError):
            problems.extend(segments)
            return None
        if watched is None:
            watched = self._watched[identity] = _Watched(view)
        else:  # another language of the process has begun to publish, or its file was made anew
            watched.view.close()
            watched.view = view
        return watched


def make_row(process: Process, sample: Sample, before: Sample | None, *, busy: bool = False, help: str = "") -> Row:
    """The row of a sample and the one before it (None: there is none)."""
    reset = before is not None and before.generation != sample.generation
    comparable = before is not None and not reset and not busy and sample.time_ns > before.time_ns
    window = sample - before if comparable and before is not None else None
    window_ns = sample.time_ns - before.time_ns if window is not None and before is not None else None
    called = window if window is not None and window.calls > 0 else None
    seconds = window_ns / NANOSECONDS if window_ns is not None else None
    return Row(
        pid=process.pid or 0,
        start_time=process.start_time or 0,
        program=process.program or "",
        host=process.host or "",
        key=sample.key,
        help=help,
        enabled=sample.enabled,
        busy=busy,
        unclean=sample.unclean,
        reset=reset,
        live=process.state == "live",
        window_ns=window_ns,
        window_calls=window.calls if window is not None else None,
        rate=called.calls / seconds if called is not None and seconds is not None else None,
        average_ns=called.average_ns if called is not None else None,
        active_average_ns=called.active_average_ns if called is not None else None,
        p50_ns=called.percentile(50) if called is not None else None,
        p90_ns=called.percentile(90) if called is not None else None,
        p99_ns=called.percentile(99) if called is not None else None,
        max_ns=called.max_ns if called is not None else None,
        share=called.total_ns / window_ns if called is not None and window_ns is not None else None,
        lifetime_average_ns=sample.average_ns,
        lifetime_active_average_ns=sample.active_average_ns,
        waits=sample.active_ns != sample.total_ns,
        calls=sample.calls,
        errors=sample.errors,
        cancelled=sample.cancelled,
        total_ns=sample.total_ns,
        active_ns=sample.active_ns,
        in_flight=sample.in_flight,
        sample=sample,
        window=window,
    )
