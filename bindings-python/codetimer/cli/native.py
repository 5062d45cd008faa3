# SPDX-License-Identifier: MIT
"""What of the C extension is for the command line only, with types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from codetimer import Comparison, Ratio, Result, _codetimer

Numbers = tuple[float | None, ...]


class _Export(Protocol):
    def __call__(
        self, what: Comparison | Sequence[Result], format: str, *, host: str, machine: str, date: str
    ) -> str: ...


class _Print(Protocol):
    def __call__(
        self, what: Comparison | Sequence[Result], file: Any, *, verbose: bool, unit: str | None, process: bool = False
    ) -> None: ...


_extension: Any = _codetimer

# Made of a generator function, and of what an empty turn takes, at least and at most.
Statement: Callable[[Callable[[Any], Iterator[None]], tuple[float, float] | None], Callable[[], None]]
Statement = _extension._Statement

export_text: _Export = _extension._export
print_report: _Print = _extension._print

# part, elapsed_ns, per_call_ns, unit, ascii
progress_line: Callable[[float, int, float, str | None, bool], str] = _extension._progress_line

# a, b, net, name of a, name of b, ascii, color
result_ratio: Callable[[Numbers, Numbers, bool, str, str, bool, bool], tuple[Ratio, str] | None]
result_ratio = _extension._result_ratio
