# SPDX-License-Identifier: MIT
"""codetimer watch: a line of values per interval, as typeperf prints them.

The header comes first, and again when counters have come that it does not name; columns never change their place. A
value is of the interval that the line ends; where there was no call it is a dash, never 0.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from datetime import datetime, timezone
from typing import Any, NamedTuple

from codetimer.cli import NOTHING, OK, UsageError, folder, paths, process_id, tell
from codetimer.cli.sampling import Row, Sampler, Snapshot
from codetimer.cli.text import printable, symbols

DESCRIPTION = r"""
Print the values of counters, one line per interval. A PATH is \category(members)\counter or category/member/counter,
with * and ? in category and members."""
SHORTEST_S, LONGEST_S = 0.01, 86_400.0


class Cell(NamedTuple):
    """What a column shows: one counter of one process."""

    pid: int
    start_time: int
    key: str
    counter: str

    @property
    def path(self) -> str:
        return f"{self.key}/{self.counter}"

    @property
    def unit(self) -> str:
        return paths.COUNTERS[self.counter].unit


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    counters = "\n".join(f"  {name:<10} {kind.meaning}" for name, kind in paths.COUNTERS.items())
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "watch",
        help="print values of counters, one line per interval",
        description=DESCRIPTION,
        epilog=f"counters:\n{counters}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="what to print")
    parser.add_argument("--interval", metavar="S", type=float, default=1.0, help="seconds between lines (1)")
    parser.add_argument("--count", metavar="N", type=int, help="end after so many lines")
    parser.add_argument(
        "--pid", metavar="PID", type=process_id, action="append", help="only of this process; may be repeated"
    )
    parser.add_argument("--dir", metavar="FOLDER", type=folder, help="where to look; else where your processes publish")
    parser.add_argument("--json", action="store_true", help="each line as a JSON object")
    return parser


def run(args: argparse.Namespace) -> int:
    wanted = parse_arguments(args)
    with Sampler(directory=args.dir, pids=args.pid) as sampler:
        if not find(sampler.sample(), wanted):
            tell("no counter matches; codetimer list shows the processes, codetimer list PID their counters")
            return NOTHING
        return watch(sampler, wanted, JsonLines() if args.json else CsvLines(), args.interval, args.count)


def parse_arguments(args: argparse.Namespace) -> list[paths.Path]:
    if not SHORTEST_S <= args.interval <= LONGEST_S:
        raise UsageError(f"--interval must be from {SHORTEST_S:g} to {LONGEST_S:g} seconds, not {args.interval:g}")
    if args.count is not None and args.count < 1:
        raise UsageError(f"--count must be at least 1, not {args.count}")
    try:
        return paths.parse_all(args.paths)
    except ValueError as error:
        raise UsageError(str(error)) from None


def find(snapshot: Snapshot, wanted: list[paths.Path]) -> dict[Cell, Row]:
    """The rows that the paths name, in the order of the paths."""
    found: dict[Cell, Row] = {}
    for path in wanted:
        for row in snapshot.rows:
            if path.matches(row.key):
                found.setdefault(Cell(row.pid, row.start_time, row.key, path.counter), row)
    return found


class CsvLines:
    """Lines for people and spreadsheets."""

    def __init__(self) -> None:
        self._signs = symbols(sys.stdout)
        self._writer = csv.writer(sys.stdout, lineterminator="\n")

    def header(self, columns: list[Cell]) -> None:
        self._writer.writerow(["time", *(self._name(cell) for cell in columns)])

    def line(self, moment: datetime, columns: list[Cell], rows: dict[Cell, Row]) -> None:
        values = (_value(cell, rows) for cell in columns)
        self._writer.writerow([moment.isoformat(timespec="milliseconds"), *(self._text(value) for value in values)])

    def _name(self, cell: Cell) -> str:
        name = printable(f"{cell.pid} {cell.path}", self._signs.encoding)
        return f"{name} ({cell.unit})" if cell.unit else name

    def _text(self, value: float | int | None) -> str:
        if value is None:
            return self._signs.dash
        return str(value) if isinstance(value, int) else f"{value:.3f}"


class JsonLines:
    """Lines for programs."""

    def header(self, columns: list[Cell]) -> None:
        """Each line names what it has."""

    def line(self, moment: datetime, columns: list[Cell], rows: dict[Cell, Row]) -> None:
        values = [
            {
                "pid": cell.pid,
                "program": rows[cell].program if cell in rows else None,
                "path": cell.path,
                "unit": cell.unit or None,
                "value": _value(cell, rows),
                "busy": cell in rows and rows[cell].busy,
                "unclean": cell in rows and rows[cell].unclean,
            }
            for cell in columns
        ]
        print(json.dumps({"time": moment.isoformat(timespec="milliseconds"), "values": values}))


def _value(cell: Cell, rows: dict[Cell, Row]) -> float | int | None:
    """None also where the writer was in the way: what is known is of an earlier interval."""
    row = rows.get(cell)
    return paths.value(row, cell.counter) if row is not None and not row.busy else None


def _tell_unclean(rows: dict[Cell, Row], told: set[tuple[int, str]]) -> None:
    """Once for each counter: its column looks like any other."""
    for cell, row in rows.items():
        if row.unclean and (cell.pid, cell.key) not in told:
            told.add((cell.pid, cell.key))
            tell(f"{cell.pid} {printable(cell.key)}: taken in the middle of an update, one call may be half in")


def watch(
    sampler: Sampler, wanted: list[paths.Path], lines: CsvLines | JsonLines, interval: float, count: int | None
) -> int:
    """Print lines until "count" of them are there, or nothing is left to watch."""
    columns: list[Cell] = []
    told: set[tuple[int, str]] = set()
    due, printed = time.monotonic(), 0
    while count is None or printed < count:
        due += interval
        time.sleep(max(0.0, due - time.monotonic()))
        rows = find(sampler.sample(), wanted)
        if not rows:
            tell("the processes that were watched have ended")
            return OK
        _tell_unclean(rows, told)
        new = [cell for cell in rows if cell not in columns]
        if new:
            columns += new
            lines.header(columns)
        lines.line(datetime.now(timezone.utc).astimezone(), columns, rows)
        sys.stdout.flush()
        printed += 1
    return OK
