# SPDX-License-Identifier: MIT
"""codetimer record: looks at counters again and again and writes what it sees to an SQLite or a CSV file."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import sqlite3
import sys
import time
from typing import Any

import codetimer
from codetimer import Sample
from codetimer.cli import NOTHING, OK, UsageError, folder, paths, tell
from codetimer.cli.ending import Ending
from codetimer.cli.sampling import Row, Sampler
from codetimer.cli.store import FAILURES, Reading, Store, Subject, open_store
from codetimer.cli.text import cut
from codetimer.cli.top import seconds

DESCRIPTION = r"""Record counters to a file: raw and computed values, a row for each counter and interval. PATH is
\category(members)\counter or category/member/counter; the counter is one of """ + ", ".join(paths.COUNTERS)
EPILOG = """\
The end of the name decides: .csv, else .sqlite, .sqlite3 or .db. A file that is there is continued with a new run.
Ctrl-C ends the recording. `codetimer show FILE` reads it back."""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "record", help="record counters to a file", description=DESCRIPTION, epilog=EPILOG
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="what to record")
    parser.add_argument("--to", metavar="FILE", required=True, help="where to")
    parser.add_argument("--rate", metavar="S", type=seconds, default=1.0, help="seconds between looks (1)")
    parser.add_argument("--duration", metavar="S", type=_duration, help="end after so many seconds, with a last look")
    parser.add_argument("--flush", metavar="S", type=seconds, default=1.0, help="seconds between writes (1)")
    parser.add_argument("--size-limit", metavar="BYTES", type=_size, help="end when the file is so large; k, M, G")
    parser.add_argument("--dir", metavar="FOLDER", type=folder, help="where to look; else where your processes publish")
    return parser


def run(args: argparse.Namespace) -> int:
    try:
        wanted = paths.parse_all(args.paths)
    except ValueError as error:
        raise UsageError(str(error)) from None
    try:
        store = open_store(args.to, args.paths, args.rate)
    except sqlite3.Error as error:
        tell(f"{args.to} cannot be opened: {error}")
        return NOTHING
    with contextlib.closing(store):
        return Recorder(store, wanted, args).record()


class _NotWritten(Exception):
    """The file takes no more."""


class Recorder:
    """One run. Readings are kept until the next flush."""

    def __init__(self, store: Store, wanted: list[paths.Path], args: argparse.Namespace) -> None:
        self._store, self._wanted, self._args = store, wanted, args
        self._kept: list[Reading] = []
        self._looks = self._flushed = self._size = 0
        self._subjects: set[Subject] = set()
        self._started = time.monotonic()

    def record(self) -> int:
        display = Display(self._args.duration)
        reason = ""
        with Ending() as ending, Sampler(directory=self._args.dir) as sampler:
            try:
                reason = self._loop(ending, sampler, display)
                self._flush()
            except _NotWritten as error:
                display.clear()
                tell(f"cannot write to {self._args.to}: {error}; it holds the {self._flushed} values flushed before")
                return NOTHING
        display.clear()
        if not self._flushed:
            tell(f"{self._args.to}: no counter matched{reason}; codetimer list shows the processes and their counters")
            return NOTHING
        values = f"{self._flushed} values of {len(self._subjects)} counters"
        print(f"{self._args.to}: {values} in {self._looks} intervals, run {self._store.run}{reason}")
        return OK

    def _loop(self, ending: Ending, sampler: Sampler, display: Display) -> str:
        """Until it has to end; says why, if that is not what was asked for."""
        rate, duration, limit = self._args.rate, self._args.duration, self._args.size_limit
        sampler.sample()
        last_flush = self._started
        due = self._started + rate
        end = math.inf if duration is None else self._started + duration
        last = end - rate / 1000
        while True:
            ending.sleep(due if due < last else end)  # what is left of the duration is an interval too
            if ending.asked:
                return " (interrupted)"
            self._look(sampler)
            now = time.monotonic()
            if now - last_flush >= self._args.flush - rate / 1000:
                self._flush()
                last_flush = now
                if limit is not None and self._size >= limit:
                    return f" (ended by the size limit: {self._size} bytes)"
            display.show(now - self._started, self._line())
            if now >= last:
                return ""
            due += rate * max(1, int((now - due) / rate) + 1)  # looks that are too late are left out

    def _look(self, sampler: Sampler) -> None:
        snapshot = sampler.sample()
        offset = time.time_ns() - codetimer.now_ns()
        self._looks += 1
        for row in snapshot.rows:
            for path in self._wanted:
                if path.matches(row.key):
                    self._kept.append(reading(row, path.counter, offset))

    def _flush(self) -> None:
        try:
            self._store.flush(self._kept)
            self._size = self._store.size()
        except FAILURES as error:
            raise _NotWritten(_words(error)) from error
        self._flushed += len(self._kept)
        self._subjects |= {each.subject for each in self._kept}
        self._kept = []

    def _line(self) -> str:
        size = f"{self._size / 1024:,.0f} KiB"
        return f"{self._looks} intervals, {self._flushed} values of {len(self._subjects)} counters, {size}"


def reading(row: Row, kind: str, offset_ns: int) -> Reading:
    """A row's reading of one counter. "offset_ns" makes UTC of the clock."""
    counter = paths.COUNTERS[kind]
    subject = Subject(row.pid, row.start_time, row.program, row.key, kind, counter.unit)
    if row.busy:  # the sample is an older one
        return Reading(subject, codetimer.now_ns() + offset_ns, None, None, None, None, None)
    numerator, denominator = _raw(row.sample, kind)
    first: tuple[int | None, int | None] = (None, None)
    if row.window is not None and row.window_ns is not None:
        grown, called = _raw(row.window, kind)
        if kind == "rate":
            called = row.window_ns
        # What a difference does not have (in_flight, the longest call) has no first value either.
        if kind not in ("in_flight", "max") and grown is not None and numerator is not None:
            first = (numerator - grown, None)
        if called is not None and denominator is not None:
            first = (first[0], denominator - called)
    return Reading(
        subject, row.sample.time_ns + offset_ns, *first, numerator, denominator, paths.value(row, kind)
    )


def _raw(sample: Sample, kind: str) -> tuple[int | None, int | None]:
    """What a counter is made of: numerator and denominator, where it has them. Percentiles are made of the buckets,
    which are not kept; their calls are, as the weight of each."""
    calls = sample.calls
    raw: dict[str, tuple[int | None, int | None]] = {
        "average": (sample.total_ns, calls),
        "active": (sample.active_ns, calls),
        "calls": (calls, None),
        "rate": (calls, sample.time_ns),
        "errors": (sample.errors, None),
        "max": (sample.max_ns, calls),
        "total": (sample.total_ns, None),
        "in_flight": (sample.in_flight, None),
    }
    return raw.get(kind, (None, calls))


class Display:
    """A line on standard error that is written over again and again; nothing where that is no terminal."""

    def __init__(self, duration: float | None) -> None:
        self._duration = duration
        self._on = sys.stderr.isatty()

    def show(self, elapsed: float, text: str) -> None:
        if not self._on:
            return
        try:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError):
            columns = 80
        bar = ""
        if self._duration is not None:
            done = min(elapsed / self._duration, 1.0)
            bar = f" [{'#' * int(done * 20):20}]"
        minutes, rest = divmod(int(elapsed), 60)
        self._write("\r" + cut(f"{minutes:02}:{rest:02}{bar} {text}", columns - 1, "") + "\x1b[K")

    def clear(self) -> None:
        if self._on:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError):  # the display is not worth a recording
            sys.stderr.write(text)
            sys.stderr.flush()


def _words(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _duration(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0")
    return value


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d{1,15})([kMG]?)", text)
    if match is None or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: a whole number of bytes above 0, or with k, M or G")
    return int(match[1]) << {"": 0, "k": 10, "M": 20, "G": 30}[match[2]]
