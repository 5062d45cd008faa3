# SPDX-License-Identifier: MIT
"""codetimer list: the processes that publish counters, and the counters of one of them.

Every file in the folder has a line: a segment that cannot be read says why, and is not silently left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import codetimer
from codetimer import Process, Sample, View
from codetimer.cli import NOTHING, OK, folder, process_id, tell
from codetimer.cli.patterns import on_one_line
from codetimer.cli.text import Symbols, cells, count, cut, duration, pad, printable, symbols

DESCRIPTION = """\
The processes that publish counters: one line for each segment, also for those that ended processes left behind and for
files that cannot be read, with the reason. With PID, the counters of that process, also those that are switched off."""

ACTIVE = 4  # the column that is left out where it says the same as the one before it
LONGEST_LIST = 200  # characters of a members list that are shown


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "list", help="list processes, or the counters of one", description=DESCRIPTION
    )
    parser.add_argument("pid", metavar="PID", nargs="?", type=process_id, help="list the counters of this process")
    parser.add_argument("--dir", metavar="FOLDER", type=folder, help="where to look; else where your processes publish")
    parser.add_argument("--json", action="store_true", help="as one JSON document")
    return parser


def run(args: argparse.Namespace) -> int:
    return list_processes(args) if args.pid is None else list_counters(args)


# ---- processes ----


def list_processes(args: argparse.Namespace) -> int:
    processes = sorted(codetimer.processes(args.dir), key=_in_order)
    if args.json:
        print(json.dumps([_described(process) for process in processes]))
    elif processes:
        signs = symbols(sys.stdout)
        rows: list[tuple[str, ...]] = [("PID", "STATE", "PROGRAM", "LANGUAGE", "COUNTERS", "LAST SIGN", "NOTE")]
        rows += [_process_row(process, signs) for process in processes]
        print_table(rows, right={0, 4, 5})
    else:
        tell("no process publishes counters here (a process does so with its first measured call)")
    return OK if processes else NOTHING


def _in_order(process: Process) -> tuple[bool, int, int, str]:
    return (process.pid is None, process.pid or 0, process.start_time or 0, process.path)


def _described(process: Process) -> dict[str, Any]:
    return dict(zip(Process.__match_args__, process, strict=True))


def _process_row(process: Process, signs: Symbols) -> tuple[str, ...]:
    def shown(text: str | None) -> str:
        return signs.dash if text is None else printable(text, signs.encoding)

    age = process.heartbeat_age_ns
    return (
        shown(None if process.pid is None else str(process.pid)),
        process.state,
        shown(process.program),
        shown(process.host),
        shown(None if process.counters is None else count(process.counters)),
        shown(None if age is None else f"{duration(age, signs.micro)} ago"),
        printable(_note(process), signs.encoding),
    )


def _note(process: Process) -> str:
    notes = []
    if process.reason:
        notes.append(process.reason if process.state != "unusable" else f"{process.path}: {process.reason}")
    if process.refused:
        notes.append(f"{process.refused} counters refused, last {process.last_refused}")
    return "; ".join(notes)


# ---- counters ----


def list_counters(args: argparse.Namespace) -> int:
    with codetimer.attach(args.pid, directory=args.dir) as view:
        samples, infos = view.sample(), view.counters
        rows = [(samples[key], infos[key].help) for key in sorted(samples.keys() & infos.keys())]
        if args.json:
            print(json.dumps(_document(view, rows)))
        else:
            _print_counters(view, rows)
    return OK if rows else NOTHING


def _document(view: View, rows: list[tuple[Sample, str]]) -> dict[str, Any]:
    return {
        "segments": [_described(process) for process in view.segments],
        "members": view.members,
        "acknowledged": view.acknowledged,
        "counters": [_counter(sample, help, sample.key in view.busy) for sample, help in rows],
    }


def _counter(sample: Sample, help: str, busy: bool) -> dict[str, Any]:
    """Of a busy one, which this view never saw otherwise, no value is known."""
    names = ("key", "category", "member", "enabled")
    fields = "calls errors cancelled total_ns active_ns active_unknown average_ns active_average_ns".split()
    fields += "min_ns max_ns in_flight".split()
    return {
        **{name: getattr(sample, name) for name in names},
        "busy": busy,
        "unclean": sample.unclean,
        **{field: None if busy else getattr(sample, field) for field in fields},
        **{f"p{q}_ns": None if busy else sample.percentile(q) for q in (50, 90, 99)},
        "help": help,
    }


def _print_counters(view: View, rows: list[tuple[Sample, str]]) -> None:
    signs = symbols(sys.stdout)
    for process in view.segments:
        note = _note(process)
        print(
            f"{process.pid} {process.state}: {printable(process.program or 'a program without a name', signs.encoding)}"
            f" ({printable(process.host or 'language unknown', signs.encoding)})"
            + (f"; {printable(note, signs.encoding)}" if note else "")
        )
    members = view.members
    shown = "none, all is measured" if members is None else _shortened(on_one_line(members, signs.encoding), signs)
    print(f"members list: {shown}{'' if view.acknowledged else ' (not acknowledged yet)'}")
    header = ("ENABLED", "KEY", "CALLS", "AVERAGE", "ACTIVE", "P50", "P99", "MAX", "ERRORS", "IN FLIGHT", "HELP")
    busy = view.busy
    table = [header, *(_counter_row(sample, help, sample.key in busy, signs) for sample, help in rows)]
    if all(sample.active_ns == sample.total_ns for sample, _ in rows):  # nobody waited
        table = [row[:ACTIVE] + row[ACTIVE + 1 :] for row in table]
    print_table(table, right=set(range(2, len(table[0]) - 1)))
    if busy or any(sample.unclean for sample, _ in rows):
        tell("busy: its writer was in the way; unclean: taken in the middle of an update, one call may be half in")


def _shortened(members: str, signs: Symbols) -> str:
    if len(members) <= LONGEST_LIST:
        return members
    length = f"{count(len(members))} characters; codetimer members shows all"
    return f"{cut(members, LONGEST_LIST, signs.ellipsis)} ({length})"


def _counter_row(sample: Sample, help: str, busy: bool, signs: Symbols) -> tuple[str, ...]:
    def time(ns: float | None) -> str:
        return signs.dash if busy or ns is None else duration(ns, signs.micro)

    def number(value: int) -> str:
        return signs.dash if busy else count(value)

    mark = " (busy)" if busy else " (unclean)" if sample.unclean else ""
    return (
        "yes" if sample.enabled else "no",
        printable(sample.key, signs.encoding) + mark,
        number(sample.calls),
        time(sample.average_ns),
        time(sample.active_average_ns),
        time(sample.percentile(50)),
        time(sample.percentile(99)),
        time(sample.max_ns),
        number(sample.errors),
        number(sample.in_flight),
        printable(help, signs.encoding),
    )


def print_table(rows: list[tuple[str, ...]], right: set[int]) -> None:
    """The rows with their columns aligned: those in "right" on the right."""
    widths = [max(cells(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        padded = (pad(text, widths[column], column not in right) for column, text in enumerate(row))
        print("  ".join(padded).rstrip())
