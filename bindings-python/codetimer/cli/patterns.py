# SPDX-License-Identifier: MIT
"""Members lists that are arguments."""

from __future__ import annotations

from codetimer import Members
from codetimer.cli import UsageError


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
