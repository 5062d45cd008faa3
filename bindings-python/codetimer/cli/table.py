# SPDX-License-Identifier: MIT
"""The table of top: its columns, which of them fit, and the order of its rows.

Order: rows that are sorted by a value that moves would dance. So a row overtakes the one above it only when it is
more than a tenth larger; within that, rows stay where they were. The first time, and whenever the user chooses
another column, the order is exact.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from codetimer.cli.sampling import Row
from codetimer.cli.text import Symbols, cells, count, cut, duration, number, pad, percent, printable

MARK_TROUBLE, MARK_ENDED = "!", "x"
HEADROOM = 1.1  # by how much a row must exceed the one above it to overtake it
SMALLEST_MEMBER = 16  # columns are dropped before the member gets less
LONGEST_PROGRAM = 24
BETWEEN = "  "

Identity = tuple[int, int, str]


def identity(row: Row) -> Identity:
    """What names a row for as long as it is shown."""
    return (row.pid, row.start_time, row.key)


class Column(NamedTuple):
    title: str
    digit: str  # the key that sorts by it
    field: str  # of Row
    kind: str  # how it is written
    worth: float  # the column with the least is the first to go in a narrow window
    meaning: str


COLUMNS = (
    Column("CALLS/s", "1", "rate", "number", 9, "calls per second in the interval"),
    Column("AVG", "2", "average_ns", "duration", 10, "mean duration of the calls in the interval"),
    Column("ACTIVE", "a", "active_average_ns", "duration", 9.5, "of AVG, how long they ran; shown where some wait"),
    Column("P50", "3", "p50_ns", "duration", 3, "half of the calls in the interval took less"),
    Column("P99", "4", "p99_ns", "duration", 7, "99 % of the calls in the interval took less"),
    Column("MAX", "5", "max_ns", "duration", 4, "longest call in the interval, within 9 %"),
    Column("TIME%", "6", "share", "percent", 8, "share of the time that passed; over 100 where calls overlap"),
    Column("LIFE AVG", "7", "lifetime_average_ns", "duration", 2, "mean duration since the counter began"),
    Column("CALLS", "8", "calls", "count", 6, "calls since the counter began"),
    Column("ERRORS", "9", "errors", "count", 5, "calls that failed since the counter began"),
    Column("INFL", "0", "in_flight", "count", 1, "calls that are under way"),
)
BY_DIGIT = {column.digit: column for column in COLUMNS}
ACTIVE = BY_DIGIT["a"]
BY_NAME = None  # the order without a column: program, PID, member

# The columns of words, by their worth among the others.
PID_WORTH, PROGRAM_WORTH = 6.5, 2.5


def words(row: Row) -> tuple[str, str]:
    """Program and member as they are shown: the category only where the member does not say it."""
    category, _, member = row.key.partition("/")
    shown = member if member.startswith(category + ".") else row.key
    return row.program.rpartition("/")[2] or row.program, shown


def cell(column: Column, row: Row, symbols: Symbols) -> str:
    value = getattr(row, column.field)
    if value is None:
        return symbols.dash
    if column.kind == "duration":
        return duration(value, symbols.micro)
    forms: dict[str, Callable[[float], str]] = {"number": number, "percent": percent}
    return forms[column.kind](value) if column.kind in forms else count(value)


class Order:
    """Sorts the rows; see above."""

    def __init__(self, column: Column | None) -> None:
        self.column = column
        self.ascending = False
        self._before: list[Identity] = []

    def choose(self, column: Column | None) -> None:
        """Sort by this column from now on; the same one again turns the order round."""
        self.ascending = column is self.column and not self.ascending
        self.column = column
        self._before = []

    def sort(self, rows: Iterable[Row]) -> list[Row]:
        ordered = sorted(rows, key=lambda row: (row.program, row.pid, row.start_time, row.key))
        if self.column is None:
            return ordered[::-1] if self.ascending else ordered
        ordered.sort(key=self._value, reverse=not self.ascending)
        if self._before:
            places = {each: place for place, each in enumerate(self._before)}
            ordered.sort(key=lambda row: places.get(identity(row), len(places)))
            ordered.sort(key=functools.cmp_to_key(self._compare))
        self._before = [identity(row) for row in ordered]
        return ordered

    def _value(self, row: Row) -> float:
        assert self.column is not None
        value = getattr(row, self.column.field)
        return -1.0 if value is None else float(value)

    def _compare(self, one: Row, other: Row) -> int:
        """Negative: "one" goes above, 0: they stay as they are."""
        a, b = self._value(one), self._value(other)
        if self.ascending:
            a, b = b, a
        if (a < 0) != (b < 0):
            return -1 if b < 0 else 1
        return -1 if a > b * HEADROOM else 1 if b > a * HEADROOM else 0


class Layout:
    """Lays rows out in a width. Columns only grow, so that they stand still from refresh to refresh; that of the active
    time comes with the first row whose calls wait."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self._widths: dict[str, int] = {}
        self._columns = [column for column in COLUMNS if column is not ACTIVE]

    def forget(self) -> None:
        self._widths.clear()

    def lines(self, rows: Sequence[Row], marks: Sequence[str], width: int | None) -> list[str]:
        """The header and a line for each row; width None: as wide as it takes."""
        if any(row.waits for row in rows):
            self._columns = list(COLUMNS)
        table = [self._texts(row, mark) for row, mark in zip(rows, marks, strict=True)]
        titles = {"mark": "", "PID": "PID", "PROGRAM": "PROGRAM", "MEMBER": "MEMBER"}
        titles |= {column.title: column.title for column in self._columns}
        for line in [titles, *table]:
            for name, text in line.items():
                self._widths[name] = max(self._widths.get(name, 1), cells(text))
        names, member = self._fitting(list(titles), width)
        return [self._line(line, names, member, width) for line in [titles, *table]]

    def _texts(self, row: Row, mark: str) -> dict[str, str]:
        program, member = (printable(word, self.symbols.encoding) for word in words(row))
        program = cut(program, LONGEST_PROGRAM, self.symbols.ellipsis)
        texts = {"mark": mark, "PID": str(row.pid), "PROGRAM": program, "MEMBER": member}
        return texts | {column.title: cell(column, row, self.symbols) for column in self._columns}

    def _fitting(self, names: list[str], width: int | None) -> tuple[list[str], int]:
        """The columns that fit, and the room for the member."""
        longest = self._widths["MEMBER"]
        if width is None:
            return names, longest
        worths: dict[str, float] = {column.title: column.worth for column in COLUMNS}
        worths |= {"PID": PID_WORTH, "PROGRAM": PROGRAM_WORTH}
        while True:
            others = sum(self._widths[name] for name in names if name != "MEMBER")
            room = width - others - len(BETWEEN) * (len(names) - 1) + 1  # one blank only after the mark
            droppable = [name for name in names if name in worths]
            if room >= min(SMALLEST_MEMBER, longest) or not droppable:
                return names, max(min(room, longest), 1)
            names.remove(min(droppable, key=lambda name: worths[name]))

    def _line(self, texts: dict[str, str], names: list[str], member: int, width: int | None) -> str:
        parts = []
        for name in names[1:]:
            left = name in ("PROGRAM", "MEMBER")
            size = member if name == "MEMBER" else self._widths[name]
            parts.append(pad(cut(texts[name], size, self.symbols.ellipsis), size, left))
        line = f"{texts['mark'] or ' '} {BETWEEN.join(parts)}".rstrip()
        return line if width is None else cut(line, width, "")
