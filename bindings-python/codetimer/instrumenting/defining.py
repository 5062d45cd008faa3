# SPDX-License-Identifier: MIT
"""Functions at the moment of their definition, where stand-ins measure Python functions.

The main module of a program is not imported but run, so its functions are called before anyone could look for them.
codetimer run compiles it with this decorator at each of them. What is decorated so is as instrumented as what was
found in a module: it follows the same texts, and uninstrument() lets its calls pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codetimer import instrumenting
from codetimer.instrumenting import standins
from codetimer.instrumenting.native import member_of, untraced
from codetimer.instrumenting.wanted import Wanted

_wanted: tuple[tuple[str, ...], Wanted] = ((), Wanted(()))


def decorator() -> Callable[[Any], Any] | None:
    """For all functions of the main module; None where sys.monitoring finds them by itself."""
    return None if instrumenting.monitors() else untraced(_decorate)


def _decorate(function: Any) -> Any:
    """What is to be called in its place: a stand-in, or itself. Never raises."""
    try:
        member = member_of(function)
        return standins.standin_for(function, member) if _now().selects(member) else function
    except Exception:  # standins.Refused: no function of a program is worth its failure
        return function


def _now() -> Wanted:
    """What is wanted, made anew when the texts have changed: functions may be defined in a loop."""
    global _wanted
    texts = instrumenting.texts()
    if _wanted[0] != texts:
        _wanted = (texts, Wanted(texts))
    return _wanted[1]
