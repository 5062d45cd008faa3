# SPDX-License-Identifier: MIT
r"""Paths name counters: \category(members)\counter, or category/member/counter.

The category and the members are patterns as in a members list ("*" for any characters, "?" for one, ";" between
several, "!" to exclude); the counter is one of COUNTERS. In the second form the first "/" ends the category and the
last one the member.

    \shop(shop.handle*)\average     shop/shop.handle/p99     */*/rate
"""

from __future__ import annotations

import re
from typing import NamedTuple

from codetimer import Members
from codetimer.cli.sampling import Row


class CounterKind(NamedTuple):
    """What the last part of a path can be."""

    field: str  # of Row
    unit: str  # "ns", "1/s" or ""
    meaning: str


COUNTERS = {
    "average": CounterKind("average_ns", "ns", "mean duration of the calls in the interval"),
    "active": CounterKind("active_average_ns", "ns", "of this the calls ran; less where they waited"),
    "calls": CounterKind("calls", "", "calls since the counter began"),
    "rate": CounterKind("rate", "1/s", "calls per second in the interval"),
    "errors": CounterKind("errors", "", "calls that failed since the counter began"),
    "p50": CounterKind("p50_ns", "ns", "median duration in the interval"),
    "p90": CounterKind("p90_ns", "ns", "90 % of the calls in the interval took less"),
    "p99": CounterKind("p99_ns", "ns", "99 % of the calls in the interval took less"),
    "max": CounterKind("max_ns", "ns", "longest call in the interval"),
    "total": CounterKind("total_ns", "ns", "time in all calls since the counter began"),
    "in_flight": CounterKind("in_flight", "", "calls that are under way"),
}

_BACKSLASHES = re.compile(r"\\(?P<category>[^(]+)\((?P<members>.*)\)\\(?P<counter>[^\\()]*)", re.DOTALL)
_SLASHES = re.compile(r"(?P<category>[^/]+)/(?P<members>.+)/(?P<counter>[^/]*)", re.DOTALL)


class Path(NamedTuple):
    """A parsed path."""

    text: str
    categories: Members
    members: Members
    counter: str  # a key of COUNTERS

    def matches(self, key: str) -> bool:
        """Whether it names the counter of this key, "category/member"."""
        category, _, member = key.partition("/")
        return self.categories.selects(category) and self.members.selects(member)

    def value(self, row: Row) -> float | int | None:
        """Its value in a row; None where there was no call."""
        return value(row, self.counter)


def value(row: Row, counter: str) -> float | int | None:
    """The value of a counter (a key of COUNTERS) in a row; None where there was no call."""
    found: float | int | None = getattr(row, COUNTERS[counter].field)
    return found


def parse(text: str) -> Path:
    """The path of a text. Raises ValueError that says what is wrong with it."""
    form = _BACKSLASHES if text.startswith("\\") else _SLASHES
    match = form.fullmatch(text)
    if match is None:
        raise ValueError(rf"{text!r} is no path: write \category(members)\counter or category/member/counter")
    counter = match["counter"]
    if counter not in COUNTERS:
        raise ValueError(f"{text!r} has no counter {counter!r}: it is one of {', '.join(COUNTERS)}")
    return Path(text, _patterns(text, match["category"]), _patterns(text, match["members"]), counter)


def parse_all(texts: list[str]) -> list[Path]:
    """The paths of several texts, in their order, each once. Raises ValueError."""
    return [parse(text) for text in dict.fromkeys(texts)]


def _patterns(path: str, text: str) -> Members:
    members = Members(text)
    for pattern in members.patterns:
        if pattern.problem is not None:
            raise ValueError(f"{path!r}: the pattern {pattern.text!r} is wrong: {pattern.problem}")
    if not members.patterns:
        raise ValueError(f"{path!r} selects nothing: write * for all")
    return members
