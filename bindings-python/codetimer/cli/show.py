# SPDX-License-Identifier: MIT
"""codetimer show: reads back what record wrote, SQLite or CSV: a summary of each counter, or all values.

The mean is over calls, not over intervals: it is made of the raw values where a counter is a quotient, and each
percentile weighs as many calls as it was made of.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import sqlite3
import sys
import urllib.parse
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

from codetimer.cli import NOTHING, OK, Refused, tell
from codetimer.cli.look import print_table
from codetimer.cli.store import HEADER, SQLITE_SUFFIXES, beginning, check_sqlite, utc
from codetimer.cli.text import duration, number, symbols

QUOTIENTS = {"average": 1.0, "active": 1.0, "rate": 1e9}  # kinds whose value is numerator by denominator, times this


class Value(NamedTuple):
    """A row of a recording."""

    run: int
    time_ns: int
    pid: int
    start_time: int
    program: str
    key: str
    kind: str
    unit: str
    first_numerator: int | None
    first_denominator: int | None
    numerator: int | None
    denominator: int | None
    value: float | None

    def differences(self) -> tuple[int | None, int | None]:
        """What numerator and denominator grew by."""
        return _difference(self.numerator, self.first_numerator), _difference(self.denominator, self.first_denominator)


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "show", help="read a recording", description="Read what `codetimer record` wrote: a line for each counter."
    )
    parser.add_argument("file", metavar="FILE", help="an SQLite or CSV file of record")
    parser.add_argument("--run", type=int, dest="number", metavar="N", help="only this run of those in the file")
    parser.add_argument("--values", action="store_true", help="all values instead of a summary")
    parser.add_argument("--json", action="store_true", help="as JSON, durations in ns")
    return parser


def run(args: argparse.Namespace) -> int:
    with contextlib.closing(_read(args.file)) as found:
        values = (each for each in found if args.number is None or each.run == args.number)
        shown = _show_values(values, args.json) if args.values else _show_summary(values, args.json)
    if shown == 0:
        tell(f"{args.file} has no values" + ("" if args.number is None else f" of run {args.number}"))
    return OK if shown else NOTHING


# ---- reading ----


def _read(path: str) -> Generator[Value, None, None]:
    start = beginning(path, 100)
    if not start:
        raise Refused(f"{path} is not there, or empty")
    if path.lower().endswith(SQLITE_SUFFIXES) or start.startswith(b"SQLite format 3\0"):
        check_sqlite(path, start)
        return _read_sqlite(path)
    return _read_csv(path)


def _read_sqlite(path: str) -> Generator[Value, None, None]:
    columns = ", ".join(Value._fields)
    query = f"SELECT {columns} FROM readings JOIN counters ON counters.id = counter ORDER BY readings.rowid"
    try:
        with contextlib.closing(_open_sqlite(path)) as database:
            for row in database.execute(query):
                yield Value(*row)
    except sqlite3.Error as error:
        raise Refused(f"{path} cannot be read: {error}") from None


def _open_sqlite(path: str) -> sqlite3.Connection:
    """To read only. Where that is allowed, as a writer, who alone tidies up the log and its index beside the file;
    where nothing may be made there and there is no log, as the file stands."""
    if os.access(path, os.W_OK) and os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
        mode = "mode=rw"
    else:
        mode = "mode=ro" if os.path.exists(path + "-wal") else "immutable=1"
    database = sqlite3.connect(f"file:{urllib.parse.quote(os.path.abspath(path))}?{mode}", uri=True, timeout=10)
    database.execute("PRAGMA query_only = ON")
    return database


def _read_csv(path: str) -> Generator[Value, None, None]:
    with open(path, encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        try:
            if next(rows, []) != HEADER:
                raise Refused(f"{path} does not begin with the header of a recording")
            for row in rows:
                yield _from_csv(row)
        except (csv.Error, ValueError):
            tell(f"{path}: line {rows.line_num} is cut or damaged; what stands before it is shown")


def _from_csv(row: list[str]) -> Value:
    if len(row) != len(HEADER):
        raise ValueError
    run, _, time_ns, pid, start_time, program, key, kind, unit, *raw, value = row
    before, denominator_before, now, denominator = (int(each) if each else None for each in raw)
    return Value(
        int(run), int(time_ns), int(pid), int(start_time), program, key, kind, unit,
        before, denominator_before, now, denominator, float(value) if value else None,
    )  # fmt: skip


def _difference(later: int | None, earlier: int | None) -> int | None:
    return None if later is None or earlier is None else later - earlier


# ---- a summary ----


class Summary:
    """Of one counter of one process."""

    def __init__(self, of: Value) -> None:
        self.of = of
        self.samples = self.empty = 0
        self.least: float | None = None
        self.most: float | None = None
        self.last: float | None = None
        self._sum = self._weight = 0.0

    def add(self, each: Value) -> None:
        grown, called = each.differences()
        if each.kind in QUOTIENTS:
            if grown is not None and called is not None:  # an interval without calls lowers the rate, too
                self._sum += grown * QUOTIENTS[each.kind]
                self._weight += called
        elif each.value is not None:
            weight = 1 if called is None else called
            self._sum += each.value * weight
            self._weight += weight
        if each.value is None:
            self.empty += 1
            return
        self.samples += 1
        self.least = each.value if self.least is None else min(self.least, each.value)
        self.most = each.value if self.most is None else max(self.most, each.value)
        self.last = each.value

    @property
    def mean(self) -> float | None:
        return self._sum / self._weight if self._weight > 0 and self.samples else None

    def to_json(self) -> dict[str, object]:
        named = {name: getattr(self.of, name) for name in ("pid", "start_time", "program", "key", "kind", "unit")}
        counts = {"samples": self.samples, "without_calls": self.empty}
        return named | counts | {"min": self.least, "mean": self.mean, "max": self.most, "last": self.last}


def _show_summary(values: Iterator[Value], as_json: bool) -> int:
    summaries: dict[tuple[object, ...], Summary] = {}
    for each in values:
        subject = (each.program, each.pid, each.start_time, each.key, each.kind)
        summaries.setdefault(subject, Summary(each)).add(each)
    if as_json:
        print(json.dumps([each.to_json() for each in summaries.values()], indent=2))
        return len(summaries)
    titles = ["PID", "PROGRAM", "COUNTER", "VALUES", "MIN", "MEAN", "MAX", "LAST"]
    rows = []
    for summary in summaries.values():
        of = summary.of
        numbers = [_form(value, of.unit) for value in (summary.least, summary.mean, summary.most, summary.last)]
        names = [of.program.rpartition("/")[2], f"{of.key}/{of.kind}"]
        rows.append([str(of.pid), *names, str(summary.samples), *numbers])
    if rows:
        print_table(titles, rows, ("PROGRAM", "COUNTER"))
    return len(rows)


def _form(value: float | None, unit: str) -> str:
    used = symbols(sys.stdout)
    if value is None:
        return used.dash
    if unit == "ns":
        return duration(value, used.micro)
    return f"{int(value):,}" if float(value).is_integer() else number(value)


# ---- all values ----


def _show_values(values: Iterator[Value], as_json: bool) -> int:
    shown = 0
    if as_json:
        for shown, each in enumerate(values, 1):
            print("[" if shown == 1 else ",", json.dumps(each._asdict()))
        print("]" if shown else "[]")
        return shown
    rows = []
    for each in values:
        value = _form(each.value, each.unit)
        program = each.program.rpartition("/")[2]
        rows.append([str(each.run), utc(each.time_ns), str(each.pid), program, f"{each.key}/{each.kind}", value])
    if rows:
        print_table(["RUN", "TIME", "PID", "PROGRAM", "COUNTER", "VALUE"], rows, ("TIME", "PROGRAM", "COUNTER"))
    return len(rows)
