# SPDX-License-Identifier: MIT
"""Text for tables: numbers in few characters, names that cannot disturb a terminal, and how wide all that is.

Names come from other processes, so whatever is not printable in them (an escape sequence, a newline, half a character)
is written out. What the stream cannot encode becomes plain ASCII.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple, TextIO

LARGEST_WHOLE = 1e15  # up to here each digit before the point of a float is one


class Symbols(NamedTuple):
    """The characters beyond ASCII that tables use."""

    dash: str  # there is no value
    micro: str
    ellipsis: str  # cut here
    encoding: str


def symbols(stream: TextIO) -> Symbols:
    """Those that the stream can encode, else their ASCII forms."""
    encoding = stream.encoding or "ascii"
    try:
        "—µ…".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return Symbols("-", "u", "~", encoding)
    return Symbols("—", "µ", "…", encoding)


def printable(text: str, encoding: str = "utf-8") -> str:
    """The text with everything written out that a terminal would not show as itself."""
    if not text.isprintable():
        text = "".join(each if each.isprintable() else _written_out(each) for each in text)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _written_out(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def cells(text: str) -> int:
    """How many cells of a terminal it takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(each) for each in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int, ellipsis: str = "…") -> str:
    """The text, cut to so many cells."""
    if cells(text) <= width:
        return text
    room = width - cells(ellipsis)
    kept = []
    for character in text:
        room -= _cells(character)
        if room < 0:
            break
        kept.append(character)
    return "".join(kept) + (ellipsis if width > 0 else "")


def pad(text: str, width: int, left: bool = True) -> str:
    """The text with blanks up to so many cells; left: it stands on the left."""
    blanks = " " * (width - cells(text))
    return text + blanks if left else blanks + text


def duration(ns: float, micro: str = "µ") -> str:
    """Three digits and a unit: 1.23 µs, 45.6 ms, 789 s."""
    for unit, size in (("ns", 1), (f"{micro}s", 1_000), ("ms", 1_000_000)):
        if ns / size < 999.5:
            return f"{number(ns / size)} {unit}"
    return f"{number(ns / 1_000_000_000)} s"


def number(value: float) -> str:
    """Three digits, or all those before the point, where all of them are known; alike in every locale."""
    if value >= LARGEST_WHOLE:
        return f"{value:.2e}"
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def count(value: int) -> str:
    return f"{value:,}"


def percent(part: float) -> str:
    return f"{part * 100:.1f}"
