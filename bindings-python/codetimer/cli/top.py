# SPDX-License-Identifier: MIT
"""codetimer top: the counters of all running processes, once, and on a terminal again and again.

On a terminal a row stays for a minute after its process ended, greyed, with its last values.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from codetimer import Process
from codetimer.cli import NOTHING, OK, UsageError, folder, paths, process_id, tell
from codetimer.cli.sampling import Row, Sampler, Snapshot
from codetimer.cli.table import (
    BY_DIGIT,
    BY_NAME,
    COLUMNS,
    MARK_ENDED,
    MARK_TROUBLE,
    Column,
    Identity,
    Layout,
    Order,
    identity,
    words,
)
from codetimer.cli.text import Symbols, cut, printable, symbols

DESCRIPTION = """\
The counters of all running processes. On a terminal they are shown again and again: number keys sort by a column, n by
name, / filters, p pauses, z hides counters that nobody calls, ? explains the columns, q quits. Elsewhere it is one
table, of one interval."""
REMEMBERED_S, REMEMBERED = 60, 200  # how long, and how many, rows of ended processes stay
SHORTEST_S, LONGEST_S = 0.05, 3600.0


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "top", help="show all counters, refreshed on a terminal", description=DESCRIPTION
    )
    parser.add_argument("paths", metavar="PATH", nargs="*", help="only these: category/member, with * and ?")
    parser.add_argument("--interval", metavar="S", type=seconds, default=1.0, help="seconds between looks (1)")
    parser.add_argument(
        "--pid", metavar="PID", type=process_id, action="append", help="only this process; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="one interval as JSON")
    parser.add_argument("--dir", metavar="FOLDER", type=folder, help="where to look; else where your processes publish")
    return parser


def run(args: argparse.Namespace) -> int:
    wanted = [selection(text) for text in args.paths]
    if sys.stdout.isatty() and not args.json:
        from codetimer.cli import terminal

        if terminal.is_capable():
            return _run_on_terminal(args, wanted)
    return _run_once(args, wanted)


def seconds(text: str) -> float:
    """The type of options that are a time."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not SHORTEST_S <= value <= LONGEST_S:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from {SHORTEST_S} to {LONGEST_S:.0f}")
    return value


def selection(text: str) -> paths.Path:
    r"""A path without its counter, as top has no use for one: \category(members), category/members, or members."""
    ends = ["", "\\rate"] if text.startswith("\\") else ["", "/rate"]
    for attempt in [text + end for end in ends] + ([] if "/" in text or "\\" in text else [f"*/{text}/rate"]):
        try:
            return paths.parse(attempt)
        except ValueError as error:
            reason = error
    raise UsageError(str(reason))


def _select(rows: Sequence[Row], wanted: Sequence[paths.Path]) -> list[Row]:
    """Those that are switched on (`list PID` shows the others too), and named if there are names."""
    return [row for row in rows if row.enabled and (not wanted or any(path.matches(row.key) for path in wanted))]


# ---- once ----


def _run_once(args: argparse.Namespace, wanted: Sequence[paths.Path]) -> int:
    with Sampler(directory=args.dir, pids=args.pid) as sampler:
        sampler.sample()
        time.sleep(args.interval)
        snapshot = sampler.sample()
        rows = _select(snapshot.rows, wanted)
    if args.json:
        print(json.dumps({"interval_s": args.interval, "rows": [_to_json(row, snapshot) for row in rows]}, indent=2))
        return OK if rows else NOTHING
    if not rows:
        tell("no counters" + (" match" if snapshot.rows else ": no process publishes any; `codetimer list` says more"))
        return NOTHING
    layout = Layout(symbols(sys.stdout))
    troubles = _troubles(rows, snapshot.processes)
    rows = Order(BY_DIGIT["6"]).sort(rows)
    for line in layout.lines(rows, [_mark(row, troubles) for row in rows], None):
        print(line)
    for text in dict.fromkeys(troubles.values()):
        tell(f"{MARK_TROUBLE} {printable(text)}")
    return OK


def _to_json(row: Row, snapshot: Snapshot) -> dict[str, object]:
    left_out = ("sample", "window")
    fields = {name: value for name, value in row._asdict().items() if name not in left_out}
    return fields | {"trouble": _troubles([row], snapshot.processes).get(identity(row))}


def _troubles(rows: Sequence[Row], processes: Sequence[Process]) -> dict[Identity, str]:
    """What is wrong with a row, where something is."""
    refused = {(each.pid, each.start_time): each for each in processes if each.refused}
    found = {}
    for row in rows:
        process = refused.get((row.pid, row.start_time))
        if row.unclean:
            found[identity(row)] = f"{row.pid} {row.key}: ended in the middle of an update; one call may be half in"
        elif row.busy:
            found[identity(row)] = f"{row.pid} {row.key}: its writer was busy; these are older values"
        elif process is not None:
            last = f", the last one {process.last_refused}" if process.last_refused else ""
            found[identity(row)] = f"{row.pid}: counters that could not be made: {process.refused}{last}"
    return found


def _mark(row: Row, troubles: dict[Identity, str]) -> str:
    return MARK_TROUBLE if identity(row) in troubles else "" if row.live else MARK_ENDED


# ---- again and again ----


def _run_on_terminal(args: argparse.Namespace, wanted: Sequence[paths.Path]) -> int:
    from codetimer.cli.terminal import Terminal

    with Sampler(directory=args.dir, pids=args.pid, dead=True) as sampler, Terminal() as screen:
        top = Top(args.interval, symbols(sys.stdout))
        due = time.monotonic()
        try:
            while not top.ended:
                if time.monotonic() >= due:
                    snapshot = sampler.sample()
                    top.look(_select(snapshot.rows, wanted), snapshot, time.monotonic())
                    due = max(due + args.interval, time.monotonic())
                if screen.resized:
                    screen.resized = False
                    top.layout.forget()
                    screen.redraw()
                screen.draw(top.frame(*screen.size()))
                for key in screen.keys(due):
                    top.press(key, screen.size()[1])
        except KeyboardInterrupt:
            pass  # one more way to quit
    return OK


class Top:
    """What is shown, and what keys do to it. It knows no terminal."""

    def __init__(self, interval: float, used: Symbols) -> None:
        self.layout = Layout(used)
        self.ended = False
        self._interval = interval
        self._symbols = used
        self._order = Order(BY_DIGIT["6"])
        self._paused = self._hides_zeros = self._explains = False
        self._filter, self._edited = "", ""
        self._editing = False
        self._first = 0  # the row at the top
        self._rows: list[Row] = []  # in their order
        self._troubles: dict[Identity, str] = {}
        self._latest: list[Row] = []
        self._ended: dict[Identity, tuple[float, Row]] = {}
        self._processes = 0

    def look(self, rows: list[Row], snapshot: Snapshot, now: float) -> None:
        """Takes what the sampler saw."""
        rows = self._without_ended(rows, now)
        if self._paused:
            return
        self._processes = len({(each.pid, each.start_time) for each in snapshot.processes if each.state == "live"})
        self._rows = self._order.sort([*rows, *(row for _, row in self._ended.values())])
        self._troubles = _troubles(self._rows, snapshot.processes)

    def _without_ended(self, rows: list[Row], now: float) -> list[Row]:
        """The rows of processes that run; those of ended ones stay for a while with what was last known of them."""
        live = [row for row in rows if row.live]
        running = {(row.pid, row.start_time) for row in live}
        unlinked = [row for row in self._latest if (row.pid, row.start_time) not in running]
        for row in [*unlinked, *(row for row in rows if not row.live)]:
            since = self._ended.get(identity(row), (now, row))[0]
            self._ended[identity(row)] = (since, _without_window(row))
        self._latest = live
        young = [each for each, (since, _) in self._ended.items() if now - since < REMEMBERED_S]
        self._ended = {each: self._ended[each] for each in young[-REMEMBERED:]}
        return live

    # ---- keys ----

    def press(self, key: str, height: int) -> None:
        if self._editing:
            self._edit(key)
        elif self._explains:
            self._explains = False
            self.ended = key == "q"
        elif key in BY_DIGIT or key == "n":
            self._order.choose(BY_DIGIT.get(key, BY_NAME))
            self._rows = self._order.sort(self._rows)
        elif key in ("up", "down", "page up", "page down", "home", "end", "k", "j"):
            page = max(height - 4, 1)
            self._first += {"up": -1, "k": -1, "down": 1, "j": 1, "page up": -page, "page down": page}.get(key, 0)
            self._first = {"home": 0, "end": len(self._rows)}.get(key, self._first)
        else:
            self._command(key)

    def _command(self, key: str) -> None:
        if key == "q":
            self.ended = True
        elif key == "/":
            self._editing, self._edited = True, self._filter
        elif key == "escape":
            self._filter = ""
        elif key == "p":
            self._paused = not self._paused
        elif key == "z":
            self._hides_zeros = not self._hides_zeros
        elif key == "?":
            self._explains = True

    def _edit(self, key: str) -> None:
        if key in ("enter", "escape"):
            self._editing = False
            self._filter = self._edited if key == "enter" else self._filter
        elif key == "backspace":
            self._edited = self._edited[:-1]
        elif len(key) == 1 and key.isprintable():
            self._edited += key

    # ---- the frame ----

    def frame(self, width: int, height: int) -> list[str]:
        """All lines of the screen, none longer than it is wide."""
        if self._explains:
            return [cut(line, width, "") for line in self._explanation()][:height]
        rows = [row for row in self._rows if self._is_shown(row)]
        room = max(height - 4, 1)  # status, header, trouble, keys
        self._first = max(min(self._first, len(rows) - room), 0)
        shown = rows[self._first : self._first + room]
        header, *lines = self.layout.lines(shown, [_mark(row, self._troubles) for row in shown], width)
        body = [_styled(line, row, self._troubles) for line, row in zip(lines, shown, strict=True)]
        body += [""] * (room - len(body))
        frame = [self._status(len(rows), width), f"\x1b[7m{header}{' ' * (width - len(header))}", *body]
        return [*frame, self._trouble(shown, width), self._bottom(width)][:height]

    def _is_shown(self, row: Row) -> bool:
        if self._hides_zeros and not row.window_calls:
            return False
        text = (self._edited if self._editing else self._filter).lower()
        program, member = words(row)
        name = f"{row.pid} {program} {row.key}".lower()
        return text in name or fnmatchcase(member.lower(), text)

    def _status(self, shown: int, width: int) -> str:
        column = self._order.column
        parts = [
            f"codetimer top, every {self._interval:g} s",
            f"{self._processes} process{'' if self._processes == 1 else 'es'}",
            f"{shown} of {len(self._rows)} counters",
            f"by {'name' if column is None else column.title}{' upwards' if self._order.ascending else ''}",
        ]
        states = {"PAUSED": self._paused, "without zeros": self._hides_zeros, f"filter {self._filter}": self._filter}
        parts += [printable(name, self._symbols.encoding) for name, on in states.items() if on]
        return cut("  ".join(parts), width, "")

    def _trouble(self, shown: Sequence[Row], width: int) -> str:
        text = next((self._troubles[identity(row)] for row in shown if identity(row) in self._troubles), "")
        return cut(f"{MARK_TROUBLE} {printable(text, self._symbols.encoding)}" if text else "", width, "")

    def _bottom(self, width: int) -> str:
        if self._editing:
            return cut(f"/{printable(self._edited, self._symbols.encoding)}_   (Enter keeps, Esc drops)", width, "")
        return cut("1-9 0 a sort  n name  / filter  p pause  z zeros  ? help  q quit", width, "")

    def _explanation(self) -> list[str]:
        def line(column: Column) -> str:
            return f"  {column.digit}  {column.title:10}{column.meaning}"

        return [
            "Columns, and the keys that sort by them; again: the other way round; n: by program, PID and member",
            *(line(column) for column in COLUMNS),
            f"{self._symbols.dash} means that there was no call in the interval. A row overtakes another by a tenth.",
            f"{MARK_TROUBLE} marks values to mistrust, the line below the table says why; {MARK_ENDED}: it has ended.",
            "/ keeps rows that contain a text, or members that match it with * and ?; Esc drops the filter",
            "p stops and goes on, z hides counters without calls, arrows and pages scroll, q or Ctrl-C quits",
            "",
            "Any key goes back.",
        ]


def _without_window(row: Row) -> Row:
    """The row of a process that has ended: only its life is left."""
    row = row._replace(live=False, busy=False, window=None, window_ns=None, window_calls=None, rate=None, share=None)
    row = row._replace(active_average_ns=None)
    return row._replace(average_ns=None, p50_ns=None, p90_ns=None, p99_ns=None, max_ns=None)


def _styled(line: str, row: Row, troubles: dict[Identity, str]) -> str:
    """Grey for what has ended, bold for what is to be mistrusted: no colours."""
    if not row.live:
        return f"\x1b[2m{line}"
    return f"\x1b[1m{line}" if identity(row) in troubles else line
