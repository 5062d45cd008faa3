# SPDX-License-Identifier: MIT
"""What stand-ins cannot reach, found on request: by a look through all objects that the collector knows."""

from __future__ import annotations

import gc
from types import CellType, FrameType, FunctionType, MethodType
from typing import Any

from codetimer.instrumenting import standins
from codetimer.instrumenting.native import member_of, standin_wrapped
from codetimer.instrumenting.sweep import has_no_source
from codetimer.instrumenting.wanted import Wanted

_NOWHERE = "it is no attribute of a module, or of a class in one"
_GENERATED = "it has no source: it is generated, as by dataclass"
_KINDS = {CellType: "a closure", MethodType: "a bound method", FrameType: "a running function"}


def monitored(wanted: Wanted) -> set[str]:
    """The wanted members of all Python functions that there are, named as sys.monitoring names them: by their code. But
    for those that are measured by a decorator."""
    objects = gc.get_objects()
    decorated = {id(standin_wrapped(thing)) for thing in objects if standins.is_standin(thing)}
    functions = [each for each in objects if type(each) is FunctionType and id(each) not in decorated]
    return {member for member in map(_code_member, functions) if wanted.selects(member)}


def _code_member(function: Any) -> str:
    module = function.__globals__.get("__name__")
    if module in ("__main__", "__mp_main__"):
        module = member_of(type("_", (), {"__module__": module})).rpartition(".")[0]
    qualname: str = function.__code__.co_qualname
    return f"{module}.{qualname}" if isinstance(module, str) else qualname


def unreachable(wanted: Wanted) -> dict[str, str]:
    """{member: reason} of wanted Python functions that are not measured, or not wherever they are held."""
    objects = gc.get_objects()
    replaced = {id(standin_wrapped(standin)): note for standin, note in standins.active()}
    inside = [standin_wrapped(thing) for thing in objects if standins.is_standin(thing)]
    measured = {id(each) for thing in inside for each in standins.chain(thing)}
    reasons = {}
    for thing in objects:
        if type(thing) is FunctionType and id(thing) not in measured:
            member = member_of(thing)
            if wanted.selects(member) and not _calls_measured(thing, measured):
                reasons[member] = _GENERATED if has_no_source(thing, thing.__name__) else _NOWHERE
    return _held(objects, wanted, replaced) | reasons


def _calls_measured(function: Any, measured: set[int]) -> bool:
    """Whether it is a decorator's, around a measured one."""
    return any(id(each) in measured for each in standins.chain(function))


def _held(objects: list[Any], wanted: Wanted, replaced: dict[int, Any]) -> dict[str, str]:
    """Of those that have a stand-in: who else holds the bare function."""
    places = [place for note in replaced.values() for place in note.places]
    known = {id(objects)} | {id(ours) for place in places for ours in (place, *_own(place[2]), place[3])}
    reasons = {}
    for thing in objects:
        if id(thing) in known or standins.is_standin(thing) or type(thing) is FrameType:
            continue
        for referent in gc.get_referents(thing):
            note = replaced.get(id(referent))
            if note is None or _is_wrapped_attribute(thing, referent):
                continue
            for member in note.members:
                if wanted.selects(member):
                    reasons[member] = f"{_describe(thing)} still has the bare function"
    return reasons


def _own(original: Any) -> list[Any]:
    """What was replaced, and where it keeps its attributes."""
    inside = [] if type(original) is FunctionType else gc.get_referents(original)
    return [original, *(each for each in inside if type(each) is dict)]


def _is_wrapped_attribute(thing: Any, function: Any) -> bool:
    return type(thing) is dict and thing.get("__wrapped__") is function


def _describe(thing: Any) -> str:
    return _KINDS.get(type(thing)) or f"a {type(thing).__name__}"
