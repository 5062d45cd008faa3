# SPDX-License-Identifier: MIT
"""Tables on standard output: plain and aligned; on a terminal by rich, where that is installed."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from codetimer.cli.text import cells, pad, printable, symbols


def print_table(titles: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str]) -> None:
    """left: the titles of columns of words; the others hold numbers, and stand on the right."""
    encoding = symbols(sys.stdout).encoding
    rows = [[printable(text, encoding) for text in row] for row in rows]
    if not (sys.stdout.isatty() and _print_rich(titles, rows, left)):
        _print_plain(titles, rows, left)


def _print_plain(titles: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str]) -> None:
    widths = [max(map(cells, column)) for column in zip(titles, *rows, strict=True)]
    for row in [titles, *rows]:
        columns = zip(titles, row, widths, strict=True)
        print("  ".join(pad(text, width, title in left) for title, text, width in columns).rstrip())


def _print_rich(titles: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str]) -> bool:
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    table = Table(box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for title in titles:
        words = title in left
        table.add_column(title, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    for row in rows:
        table.add_row(*map(Text, row))  # names are no markup
    Console().print(table)
    return True
