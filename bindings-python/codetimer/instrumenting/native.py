# SPDX-License-Identifier: MIT
"""What of the C extension is for this package only, with types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from codetimer import _codetimer


class _Pass(Protocol):
    def __call__(self, standin: Any, to: bool = ..., /) -> bool: ...


class _Note(Protocol):
    def __call__(self, standin: Any, note: Any = ..., /) -> Any: ...


_extension: Any = _codetimer

member_of: Callable[[Any], str] = _extension._member
standin_wrapped: Callable[[Any], Any] = _extension._standin_wrapped
standin_note: _Note = _extension._standin_note
standin_pass: _Pass = _extension._standin_pass
and_then: Callable[[Any, Callable[[tuple[Any, ...], Any], object]], Any] = _extension._and_then
untraced: Callable[[Callable[[Any], Any]], Callable[[Any], Any]] = _extension._untraced
