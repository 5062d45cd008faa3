# SPDX-License-Identifier: MIT
"""Being told of every module that has just been imported, or reloaded.

The two functions of the import system that execute a module are called through their names in importlib._bootstrap,
whatever finder found the module and whatever loads it: builtin, frozen, extension, zip, a test runner's. In place of
each stands one that calls it and then tells us. Finders, loaders and specs are the import's own, and as what stands
there is C, no traceback has a frame more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from codetimer.instrumenting.native import and_then

_bootstrap: Any = sys.modules.get("_frozen_importlib")
_watched: dict[str, tuple[Any, Any]] = {}  # name: what was there, what stands there
_tell: Callable[[Any], object] | None = None


def watch(tell: Callable[[Any], object]) -> bool:
    """Calls tell(module) after each import, in the thread that imports, before that gets the module. Returns whether it
    can; only one is told at a time."""
    global _tell
    _tell = tell
    if not _watched:
        _stand_in("_load_unlocked", _loaded)
        _stand_in("_exec", _executed)
    return "_load_unlocked" in _watched


def unwatch() -> None:
    """As it was before. Where somebody has put something on top of what stands there, that stays, and tells nobody."""
    global _tell
    _tell = None
    for name, (original, standing) in _watched.items():
        if getattr(_bootstrap, name, None) is standing:
            setattr(_bootstrap, name, original)
    _watched.clear()


def _stand_in(name: str, after: Callable[[tuple[Any, ...], Any], None]) -> None:
    original = getattr(_bootstrap, name, None)
    if callable(original):
        standing = and_then(original, after)
        _watched[name] = (original, standing)
        setattr(_bootstrap, name, standing)


def _loaded(_args: tuple[Any, ...], module: Any) -> None:
    if _tell is not None:
        _tell(module)


def _executed(args: tuple[Any, ...], _result: Any) -> None:
    """_exec(spec, module), which reloads."""
    if _tell is not None and len(args) > 1:
        _tell(args[1])
