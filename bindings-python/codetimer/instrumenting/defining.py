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

_BARE = ("__new__", "__init_subclass__", "__class_getitem__")
_WHY = "type makes a static or class method of it only while it is bare"

_wanted: tuple[tuple[str, ...], Wanted] = ((), Wanted(()))


def decorator() -> Callable[[Any], Any] | None:
    """For all functions of the main module; None where sys.monitoring finds them by itself."""
    return None if instrumenting.monitors() else untraced(_decorate)


def _decorate(function: Any) -> Any:
    """What is to be called in its place: a stand-in, or itself. Never raises."""
    try:
        member = member_of(function)
        if not _now().selects(member):
            return function
        if function.__name__ not in _BARE:
            return standins.standin_for(function, member)
        instrumenting.refuse(member, _WHY)
    except standins.Refused as reason:
        instrumenting.refuse(member, str(reason))
    except Exception:  # no measurement is worth the failure of a program
        pass
    return function


def _now() -> Wanted:
    """What is wanted, made anew when the texts have changed: functions may be defined in a loop."""
    global _wanted
    texts = instrumenting.texts()
    if _wanted[0] != texts:
        _wanted = (texts, Wanted(texts))
    return _wanted[1]
