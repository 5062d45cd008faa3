# SPDX-License-Identifier: MIT
"""Members lists that are arguments, or are shown."""

from __future__ import annotations

from codetimer import Members
from codetimer.cli import UsageError
from codetimer.cli.text import printable


def parse(text: str) -> Members:
    """The patterns of an argument. Raises UsageError for those that a process would skip."""
    try:
        members = Members(text)
    except ValueError as error:
        raise UsageError(str(error)) from None
    for pattern in members.patterns:
        if pattern.problem is not None:
            raise UsageError(f"the pattern {pattern.text!r} at {pattern.position} is wrong: {pattern.problem}")
    return members


def on_one_line(members: str, encoding: str) -> str:
    """The list as it was written; one of several lines, as files have it, without what separates and explains them."""
    line = members.strip("\r\n")
    if "\n" in line:
        line = ";".join(pattern.text for pattern in Members(members).patterns)
    return printable(line, encoding)
