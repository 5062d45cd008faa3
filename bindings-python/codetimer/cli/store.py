# SPDX-License-Identifier: MIT
"""What record writes: readings of counters in an SQLite or a CSV file, in whole flushes.

A reading has the raw values of the two samples (numerator and denominator each) and the value made of them, so that
other averages than ours can be made later. A flush is one transaction (SQLite, with a write-ahead log) or one write
(CSV): what is flushed outlives a kill of the recorder. A file that is there is continued with a new run if it is one
of ours, and refused before anything is written to it if it is not.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import fcntl
import io
import json
import os
import sqlite3
import stat
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import codetimer
from codetimer.cli import Refused, UsageError

SQLITE_SUFFIXES = (".sqlite", ".sqlite3", ".db")
APPLICATION_ID, VERSION = 0x43645465, 1  # "CdTe": what makes an SQLite file ours
LARGEST = 2**63 - 1  # an integer of SQLite

SCHEMA = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    started_ns INTEGER NOT NULL, -- UTC
    ended_ns INTEGER NOT NULL,   -- UTC, of the last flush
    rate_s REAL NOT NULL,
    paths TEXT NOT NULL,         -- JSON
    clock TEXT NOT NULL,         -- of the recorder: source, resolution, and its value at started_ns
    clock_resolution_ns REAL NOT NULL,
    clock_started_ns INTEGER NOT NULL,
    version TEXT NOT NULL        -- of codetimer
);
CREATE TABLE counters (
    id INTEGER PRIMARY KEY,
    pid INTEGER NOT NULL,
    start_time INTEGER NOT NULL, -- as the system counts it; with the pid it names one process
    program TEXT NOT NULL,
    key TEXT NOT NULL,           -- category/member
    kind TEXT NOT NULL,          -- average, calls, rate, ...
    unit TEXT NOT NULL,
    UNIQUE (pid, start_time, program, key, kind)
);
CREATE TABLE readings (
    run INTEGER NOT NULL REFERENCES runs,
    counter INTEGER NOT NULL REFERENCES counters,
    time_ns INTEGER NOT NULL,    -- UTC
    first_numerator INTEGER,     -- NULL: there is none, or no earlier sample to compare with
    first_denominator INTEGER,
    numerator INTEGER,
    denominator INTEGER,
    value REAL                   -- NULL: there was no call
);
CREATE VIEW recorded AS
    SELECT run, time_ns, datetime(time_ns / 1000000000, 'unixepoch') AS time_utc, pid, start_time, program, key, kind,
           unit, first_numerator, first_denominator, numerator, denominator, value
    FROM readings JOIN counters ON counters.id = readings.counter;
"""

HEADER = [
    "run", "time_utc", "time_ns", "pid", "start_time", "program", "key", "counter", "unit",
    "first_numerator", "first_denominator", "numerator", "denominator", "value",
]  # fmt: skip


class Subject(NamedTuple):
    """Which counter a reading is of."""

    pid: int
    start_time: int
    program: str
    key: str
    kind: str
    unit: str


class Reading(NamedTuple):
    subject: Subject
    time_ns: int
    first_numerator: int | None
    first_denominator: int | None
    numerator: int | None
    denominator: int | None
    value: float | int | None


class Store(Protocol):
    """An open file. After an exception of flush() only close() may follow; what was flushed before is in the file."""

    run: int

    def flush(self, readings: Sequence[Reading]) -> None: ...
    def size(self) -> int: ...
    def close(self) -> None: ...


# What goes wrong while writing: no room, no right, a disk that is gone.
FAILURES = (OSError, sqlite3.Error)


def open_store(path: str, paths: Sequence[str], rate_s: float) -> Store:
    """The file, new or continued. Raises Refused, UsageError or one of FAILURES."""
    if path.lower().endswith(SQLITE_SUFFIXES):
        return SqliteStore(path, paths, rate_s)
    if path.lower().endswith(".csv"):
        return CsvStore(path)
    raise UsageError(f"{path!r} must end in .csv or {', '.join(SQLITE_SUFFIXES)}: that decides what is written")


def beginning(path: str, size: int) -> bytes:
    """The first bytes of a file; b"" if it is not there. Refuses what is no file."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return b""
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{path} is no regular file; name another one")
    with open(path, "rb") as file:
        return file.read(size)


def storable(text: str) -> str:
    """A name as UTF-8 can hold it."""
    return text.encode("utf-8", "backslashreplace").decode()


def _integer(value: int | None) -> int | None:
    return None if value is None or value > LARGEST else value


# ---- SQLite ----


def check_sqlite(path: str, start: bytes) -> None:
    """Refuses a file that is not ours, by its first 100 bytes alone: opening it would already make files beside it."""
    if not start.startswith(b"SQLite format 3\0"):
        raise Refused(f"{path} is no SQLite file; it was left as it is")
    if int.from_bytes(start[68:72], "big") != APPLICATION_ID:
        raise Refused(f"{path} is an SQLite file of something else; it was left as it is")
    version = int.from_bytes(start[60:64], "big")
    if version != VERSION:
        raise Refused(f"{path} has the format {version}, this codetimer knows {VERSION}; name another file")


class SqliteStore:
    def __init__(self, path: str, paths: Sequence[str], rate_s: float) -> None:
        start = beginning(path, 100)
        if start:
            check_sqlite(path, start)
        self._counters: dict[Subject, int] = {}
        self._database = sqlite3.connect(path, timeout=10, isolation_level=None)
        try:
            self._prepare(not start)
            self._begin_run(paths, rate_s)
        except BaseException:
            self._database.close()
            raise

    def _prepare(self, new: bool) -> None:
        if new:
            script = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};"
            self._database.executescript(f"BEGIN IMMEDIATE; {script} {SCHEMA} COMMIT;")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")

    def _begin_run(self, paths: Sequence[str], rate_s: float) -> None:
        import time

        clock = codetimer.clock_info()
        now = time.time_ns()
        row = (now, now, rate_s, json.dumps(paths), clock.source, clock.resolution_ns, codetimer.now_ns())
        cursor = self._database.execute(
            "INSERT INTO runs"
            " (started_ns, ended_ns, rate_s, paths, clock, clock_resolution_ns, clock_started_ns, version)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*row, codetimer.__version__),
        )
        self.run = cursor.lastrowid or 0

    def flush(self, readings: Sequence[Reading]) -> None:
        if not readings:
            return
        self._database.execute("BEGIN IMMEDIATE")
        try:
            known = dict(self._counters)
            rows = [
                (self.run, self._counter(each.subject, known), *map(_integer, each[1:6]), each.value)
                for each in readings
            ]
            self._database.executemany("INSERT INTO readings VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            latest = max(each.time_ns for each in readings)
            self._database.execute("UPDATE runs SET ended_ns = ? WHERE id = ?", (latest, self.run))
            self._database.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # some failures have rolled it back already
                self._database.execute("ROLLBACK")
            raise
        self._counters = known

    def _counter(self, subject: Subject, known: dict[Subject, int]) -> int:
        if subject not in known:
            names = (subject.program, subject.key, subject.kind, subject.unit)
            row = (subject.pid, _integer(subject.start_time), *map(storable, names))
            found = self._database.execute(
                "INSERT INTO counters (pid, start_time, program, key, kind, unit) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT DO UPDATE SET unit = excluded.unit RETURNING id",
                row,
            ).fetchone()
            known[subject] = found[0]
        return known[subject]

    def size(self) -> int:
        """Of the file when the log has been written into it, as it is after the end."""
        pages, size = (self._database.execute(f"PRAGMA {each}").fetchone()[0] for each in ("page_count", "page_size"))
        return int(pages * size)

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._database.close()


# ---- CSV ----


class CsvStore:
    def __init__(self, path: str) -> None:
        start = beginning(path, 1024)
        header = _csv_lines([HEADER])
        if start and not start.startswith(header):
            raise Refused(f"{path} does not begin with the header of a recording; it was left as it is")
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._lock(path)
            self._end, self.run = _complete_csv(self._file)
            os.ftruncate(self._file, self._end)
            if self._end == 0:
                self._write(header)
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self, path: str) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"{path}: another recorder is writing to it") from None

    def flush(self, readings: Sequence[Reading]) -> None:
        self._write(_csv_lines([self._row(each) for each in readings]))

    def _row(self, reading: Reading) -> list[object]:
        subject = reading.subject
        names = [storable(text) for text in (subject.program, subject.key, subject.kind, subject.unit)]
        row = [self.run, utc(reading.time_ns), reading.time_ns, subject.pid, subject.start_time, *names, *reading[2:]]
        return ["" if each is None else each for each in row]

    def _write(self, data: bytes) -> None:
        """All of it, or nothing."""
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(self._file, data[done:], self._end + done)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise
        self._end += len(data)

    def size(self) -> int:
        return self._end

    def close(self) -> None:
        os.close(self._file)


def _csv_lines(rows: Sequence[Sequence[object]]) -> bytes:
    """A reader takes a carriage return for the end of a row unless it is quoted, which older writers leave out."""
    text = io.StringIO(newline="")
    plain = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        (quoted if any("\r" in str(each) for each in row) else plain).writerow(row)
    return text.getvalue().encode()


def _complete_csv(descriptor: int) -> tuple[int, int]:
    """Where the last complete row ends (a kill may have cut one), and the number of the next run.

    A newline ends a row unless it stands between quotes, that is, after an odd number of them.
    """
    end = position = quotes = 0
    row, last = b"", b""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        for line in file:
            position += len(line)
            quotes += line.count(b'"')
            row += line
            if quotes % 2 == 0 and line.endswith(b"\n"):
                end, last, row = position, row, b""
    run = last.partition(b",")[0].strip(b'"')
    return end, int(run) + 1 if run.isdigit() else 1


def utc(time_ns: int) -> str:
    whole, rest = divmod(time_ns, 1_000_000_000)
    moment = datetime.datetime.fromtimestamp(whole, datetime.timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{rest:09}Z"
