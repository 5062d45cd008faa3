# SPDX-License-Identifier: MIT
"""Putting measured stand-ins in place of functions, and taking them away again.

A function has at most one stand-in, wherever it is put. What must be known to take it away hangs on the stand-in, as
its note; here are only weak references. So nothing lives longer because it is instrumented, and a module that is
dropped takes its stand-ins with it.

Taking away means: where the stand-in still is, the original comes back; where somebody has put something else since,
that stays; and whoever kept the stand-in makes bare calls through it from then on.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from codetimer._codetimer import measured
from codetimer.instrumenting.native import standin_note, standin_pass, standin_wrapped

CACHED = type(functools.lru_cache(lambda: None))
_MISSING: Any = object()

_ours: dict[int, weakref.ref[Any]] = {}  # by the id of the stand-in
_of: dict[int, weakref.ref[Any]] = {}  # the same by the id of what it stands in for


class Refused(Exception):
    """Why something cannot be measured."""


# ---- holders: modules, classes, and the cells of decorators ----


class Holder:
    """A thing with names in it, weakly."""

    __slots__ = ("_reference",)

    def __init__(self, thing: Any) -> None:
        self._reference: Callable[[], Any] = (lambda: thing) if type(thing) is CellType else weakref.ref(thing)

    def get(self, name: str) -> Any:
        """What is under that name; _MISSING where there is nothing any more."""
        thing = self._reference()
        if type(thing) is CellType:
            return contents(thing)
        return _MISSING if thing is None else namespace(thing).get(name, _MISSING)

    def put(self, name: str, value: Any) -> None:
        """No code of the program runs, whatever the thing makes of assignments."""
        thing = self._reference()
        if type(thing) is CellType:
            thing.cell_contents = value
        elif issubclass(type(thing), type):
            _refuse_metaclass(thing, name)
            type.__setattr__(thing, name, value)
            if issubclass(type(value), property) and hasattr(property, "__set_name__"):
                property.__set_name__(value, thing, name)
        elif thing is not None:
            namespace(thing)[name] = value


def namespace(thing: Any) -> Any:
    """The dict of a module or class as the interpreter has it."""
    if issubclass(type(thing), type):
        return type.__getattribute__(thing, "__dict__")
    return ModuleType.__getattribute__(thing, "__dict__")


def _refuse_metaclass(cls: type, name: str) -> None:
    """Setting such an attribute of a class would set one of its metaclass: __class__, __name__, one of the program."""
    for base in type.__getattribute__(type(cls), "__mro__"):
        if hasattr(type(namespace(base).get(name)), "__set__"):
            raise Refused(f"the metaclass has an attribute {name}")


def contents(cell: CellType) -> Any:
    """_MISSING of an empty one."""
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


# ---- what a value is made of ----


def parts(value: Any) -> list[tuple[Any, str]]:
    """The functions that a value is or holds, each with what its member ends in."""
    if issubclass(type(value), property):
        pairs = ((value.fget, ""), (value.fset, ".setter"), (value.fdel, ".deleter"))
        return [(function, label) for function, label in pairs if function is not None]
    inner = _inside(value)
    return [(value, "")] if inner is None else parts(inner)


def _inside(value: Any) -> Any:
    kind = type(value)  # not isinstance, which asks proxies for their __class__
    if issubclass(kind, (staticmethod, classmethod)) or kind is MethodType:
        return value.__func__
    if issubclass(kind, (functools.cached_property, functools.partialmethod)) or kind is functools.partial:
        return value.func
    return None


def is_standin(value: Any) -> bool:
    return standin_wrapped(value) is not value


def chain(function: Any) -> Iterator[Any]:
    """A function and what its decorators say is below them."""
    for _ in range(64):
        yield function
        if is_standin(function):
            function = standin_wrapped(function)
        attributes = function.__dict__ if type(function) in (FunctionType, CACHED) else {}
        if "__wrapped__" not in attributes:
            return
        function = attributes["__wrapped__"]


# ---- notes ----


class Note:
    """What a stand-in of ours knows: its members, and where it, or what is built around it, was put."""

    __slots__ = ("members", "places")

    def __init__(self, members: tuple[str, ...]) -> None:
        self.members = members
        self.places: list[tuple[Holder, str, Any, Any]] = []  # holder, name, original, replacement


def note_of(standin: Any) -> Note | None:
    note = standin_note(standin)
    return note if isinstance(note, Note) else None


def ours() -> Iterator[tuple[Any, Note]]:
    """All stand-ins of ours that are alive, also those that pass."""
    for table in (_ours, _of):
        for key, reference in list(table.items()):
            if reference() is None and table.get(key) is reference:
                del table[key]
    for reference in list(_ours.values()):
        standin = reference()
        note = note_of(standin) if standin is not None else None
        if note is not None:
            yield standin, note


def active() -> Iterator[tuple[Any, Note]]:
    """Those that measure."""
    return ((standin, note) for standin, note in ours() if not standin_pass(standin))


def _remember(standin: Any, members: tuple[str, ...], alone: bool) -> Note:
    note = Note(members)
    standin_note(standin, note)
    reference = weakref.ref(standin)
    _ours[id(standin)] = reference
    if alone:
        _of[id(standin_wrapped(standin))] = reference
    return note


# ---- making ----


def _existing(function: Any) -> Any:
    """The stand-in of a function, if it has one of ours."""
    reference = _of.get(id(function))
    standin = reference() if reference is not None else None
    return standin if standin is not None and standin_wrapped(standin) is function else None


def standin_for(function: Any, member: str) -> Any:
    """The one stand-in of a function; Refused where it cannot have one."""
    standin = _existing(function)
    if standin is not None:
        standin_pass(standin, False)
        return standin
    standin = _measure(function, member)
    _remember(standin, (member,), alone=True)
    return standin


def _measure(value: Any, name: str | None) -> Any:
    try:
        made = measured(value, name=name)
    except Exception as error:
        raise Refused(str(error) or type(error).__name__) from error
    if made is value:
        raise Refused("it is measured already, or there is no room for its counter")
    return made


def _build_property(value: Any, chosen: dict[str, str]) -> property:
    """A property of which not all functions are wanted."""
    if type(value) is not property:
        raise Refused(f"of a {type(value).__name__} either all functions can be measured or none")
    made: dict[str, Any] = {
        label: standin_for(function, chosen[label]) if label in chosen else function for function, label in parts(value)
    }
    doc = value.__doc__ if value.fget is None or value.__doc__ is not value.fget.__doc__ else None
    return property(made.get(""), made.get(".setter"), made.get(".deleter"), doc)


def build(value: Any, chosen: dict[str, str], name: str | None) -> Any:
    """What stands in for a value: "chosen" has the members of its functions by their labels; "name" is given where
    their own do not tell. Refused where it cannot be made."""
    functions = parts(value)
    if functions[0][0] is value:
        return standin_for(value, chosen[""])
    if type(value) is MethodType and type(value.__func__) is FunctionType:
        return MethodType(standin_for(value.__func__, chosen[""]), value.__self__)
    if len(chosen) < len(functions):
        return _build_property(value, chosen)
    return _measure(value, name)


# ---- putting and taking away ----


def put(holder: Holder, name: str, value: Any, replacement: Any, members: tuple[str, ...]) -> None:
    """Puts a replacement in place of a value. Refused where the holder does not let us."""
    standins = [function for function, _ in parts(replacement) if is_standin(function)]
    note = note_of(standins[0]) or _remember(standins[0], members, alone=replacement is standins[0])
    for other in standins[1:]:
        if note_of(other) is None:
            _remember(other, members, alone=False)
    place = (holder, name, value, replacement)
    note.places.append(place)
    try:
        holder.put(name, replacement)
    except Exception as error:
        note.places.remove(place)
        raise Refused(str(error)) from error


def clean(thing: Any) -> None:
    """Puts back what a module or class took of stand-ins that pass by now: by "from m import f" while they measured."""
    for name, value in namespace(thing).copy().items():
        if is_standin(value) and note_of(value) is not None and standin_pass(value):
            with contextlib.suppress(Exception):
                Holder(thing).put(name, standin_wrapped(value))


def take_away(standin: Any, note: Note) -> None:
    """Puts the originals back, and lets the calls of whoever kept the stand-in pass."""
    places, note.places = note.places, []
    for holder, name, original, replacement in places:
        if holder.get(name) is replacement:
            try:
                holder.put(name, original)
            except Exception:  # a class that has become immutable since: its calls pass
                note.places.append((holder, name, original, replacement))
    standin_pass(standin, True)
