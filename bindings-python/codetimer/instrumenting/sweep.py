# SPDX-License-Identifier: MIT
"""Finding what is wanted: a walk through the dicts of modules, and of the classes that are in them.

Nothing is asked of the things that are found but what they are: no attribute is read that could run code of the
program, no lazy module is loaded. A function is known by its own member wherever it lies, so a name that another module
took earlier by "from m import f" is reached too; where its own name does not tell ("<lambda>", "<locals>"), the place
where it lies may give the name. Of a decorated function the innermost is taken that its decorators let us reach, which
is what sys.monitoring measures.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from codetimer.instrumenting import standins
from codetimer.instrumenting.native import member_of, standin_pass, standin_wrapped
from codetimer.instrumenting.standins import CACHED, Holder, Refused, parts
from codetimer.instrumenting.wanted import Wanted, is_own

_METHOD_DESCRIPTOR = 1 << 17
_IMMUTABLE = 1 << 8
_HEAP = 1 << 9
_RUNS_LATER = 0x20 | 0x80 | 0x100 | 0x200  # generator, coroutine, iterable coroutine, async generator
_ATTRIBUTE = functools.singledispatchmethod

# What dataclasses and attrs compile from text.
_GENERATED = "<attrs generated"


def modules() -> list[Any]:
    """Those of sys.modules that are modules, but for this package's."""
    return [module for module in list(sys.modules.values()) if is_module(module)]


def is_module(module: Any) -> bool:
    if not issubclass(type(module), ModuleType):
        return False
    return not is_own(str(standins.namespace(module).get("__name__", "")))


def walk(things: Iterable[Any]) -> Iterator[Any]:
    """Modules or classes, and the classes that are in them, once each."""
    seen: set[int] = set()
    waiting = list(things)
    while waiting:
        thing = waiting.pop()
        if id(thing) not in seen:
            seen.add(id(thing))
            yield thing
            waiting += [value for value in standins.namespace(thing).copy().values() if issubclass(type(value), type)]


class Sweep:
    """One walk: puts stand-ins where they are wanted. With "python" false only in place of C functions."""

    def __init__(self, wanted: Wanted, python: bool) -> None:
        self.wanted = wanted
        self.python = python
        self.new: list[str] = []  # the members of what was put now
        self.reached: list[str] = []  # and what was there before
        self.refused: dict[str, str] = {}  # member: reason
        self._kinds: dict[type, bool] = {}  # whether values of a type are functions

    def over(self, things: Iterable[Any]) -> None:
        if self.wanted:
            for thing in walk(things):
                try:
                    if _is_fixed(thing):
                        self._fixed(thing)
                    else:
                        self._namespace(thing)
                except Exception as error:
                    self.refused[f"{_module_name(thing)}.*"] = f"{type(error).__name__}: {error}"

    def _fixed(self, cls: type) -> None:
        for member in self.wanted.in_c_class(member_of(cls)):
            self.refused[member] = "the methods of an immutable type cannot be replaced"

    def _namespace(self, thing: Any) -> None:
        here = self.wanted.may_be_in(_module_name(thing))
        for name, value in standins.namespace(thing).copy().items():
            if isinstance(name, str) and self._is_candidate(name, value, here):
                self._guarded(thing, name, value)

    def _is_candidate(self, name: str, value: Any, here: bool) -> bool:
        """A quick look, as nearly all that there is is not wanted. "here": a member of this module may be."""
        kind = type(value)
        if kind is FunctionType:
            return self.python and (here or self.wanted.may_be_in(value.__module__))
        if kind is BuiltinFunctionType:
            return self.wanted.may_select_c(name, value)
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = _is_function(kind)
        return known and (self.python or not _is_python(value))

    def _guarded(self, thing: Any, name: str, value: Any) -> None:
        """Whatever goes wrong with one value is a fact about that value."""
        try:
            self._value(thing, name, value)
        except Refused as reason:
            self.refused[_place(thing, name)] = str(reason)
        except Exception as error:
            self.refused[_place(thing, name)] = f"{type(error).__name__}: {error}"

    # ---- one value ----

    def _value(self, thing: Any, name: str, value: Any) -> None:
        chosen, given = self._choose(thing, name, value)
        if not chosen or _is_generated(thing, name, value):
            return
        try:
            holder, key, target = _innermost(Holder(thing), name, value)
            bare = self._bare(target, chosen)
            if bare:
                self._put(holder, key, target, bare, given)
            self.reached += chosen.values()
        except Refused as reason:
            self.refused.update(dict.fromkeys(chosen.values(), str(reason)))

    def _put(self, holder: Holder, name: str, target: Any, chosen: dict[str, str], given: str | None) -> None:
        function = parts(target)[0][0]
        if _makes_only(function):
            raise Refused("what its decorator returns may only make what runs later")
        standins.put(holder, name, target, standins.build(target, chosen, given), tuple(chosen.values()))
        self.new += chosen.values()

    def _bare(self, target: Any, chosen: dict[str, str]) -> dict[str, str]:
        """Of what is chosen, what is not measured, also not below its decorators. What is ours there, and passes,
        measures again."""
        bare = dict(chosen)
        for function, label in parts(target):
            for standin in filter(standins.is_standin, standins.chain(function)):
                bare.pop(label, None)
                if label in chosen and standins.note_of(standin) is not None:
                    standin_pass(standin, False)
        return bare

    def _choose(self, thing: Any, name: str, value: Any) -> tuple[dict[str, str], str | None]:
        """The wanted members of a value by their labels, and the name of all where it is given by the place."""
        functions = parts(value)
        own = [(function, label, _own_member(function) + label) for function, label in functions]
        chosen = {label: member for function, label, member in own if self._selects(function, member)}
        if chosen:
            return chosen, None
        place = _place(thing, name)
        wanted = [label for function, label in functions if self._selects_place(function, place + label)]
        return {label: place + label for label in wanted}, place

    def _selects(self, function: Any, member: str) -> bool:
        if _is_python(function):
            return self.wanted.selects(member)
        return self.wanted.selects_c(member, _module_of(function, member))

    def _selects_place(self, function: Any, place: str) -> bool:
        if not _is_python(function):
            return self.wanted.selects_exactly(place)
        return "<" in _own_member(function) and self.wanted.selects(place)

    def keeps(self, standin: Any, members: Iterable[str]) -> bool:
        """Whether what was put is still wanted."""
        python = _is_python(standin)
        exactly = not python and any(self.wanted.selects_exactly(member) for member in members)
        return exactly or any(self._selects(standin, member) for member in members)


_KINDS = frozenset((FunctionType, BuiltinFunctionType, MethodType, CACHED, functools.partial))
_KINDS_TOO = (property, staticmethod, classmethod, functools.cached_property, functools.partialmethod, _ATTRIBUTE)


# ---- what a function is ----


def _is_fixed(thing: Any) -> bool:
    """Whether it is a class that no class statement has made."""
    return issubclass(type(thing), type) and (_flags(thing) & _IMMUTABLE != 0 or not _flags(thing) & _HEAP)


def _flags(kind: type) -> int:
    flags: int = type.__getattribute__(kind, "__flags__")
    return flags


def _is_function(kind: type) -> bool:
    return kind in _KINDS or issubclass(kind, _KINDS_TOO) or bool(_flags(kind) & _METHOD_DESCRIPTOR)


def _is_python(value: Any) -> bool:
    """Whether a call of it ends up in Python code that is its own."""
    function = parts(value)[0][0] if parts(value) else value
    if issubclass(type(function), _ATTRIBUTE):
        return True
    function = standin_wrapped(function)
    return type(function) in (FunctionType, CACHED)


def _own_member(function: Any) -> str:
    if issubclass(type(function), _ATTRIBUTE):
        function = function.func
    return member_of(function)


def _module_of(function: Any, member: str) -> str:
    """The module of a C function, which may be a method of a hidden object."""
    module = getattr(standin_wrapped(function), "__module__", None)
    return module if isinstance(module, str) else member.partition(".")[0]


def _place(thing: Any, name: str) -> str:
    if issubclass(type(thing), type):
        return f"{member_of(thing)}.{name}"
    return f"{_module_name(thing)}.{name}"


def _module_name(thing: Any) -> Any:
    names = standins.namespace(thing)
    return names.get("__module__") if issubclass(type(thing), type) else names.get("__name__")


def _runs_later(function: Any) -> bool:
    return type(function) is FunctionType and bool(function.__code__.co_flags & _RUNS_LATER)


def _makes_only(function: Any) -> bool:
    """Whether it is a plain function around one whose call only makes a generator or coroutine."""
    *_, last = standins.chain(function)
    return _runs_later(last) and not _runs_later(function)


def _is_generated(thing: Any, name: str, value: Any) -> bool:
    """Methods that dataclasses and attrs make."""
    function = parts(value)[0][0]
    if type(function) is not FunctionType or not issubclass(type(thing), type):
        return False
    fields = "__dataclass_fields__" in type.__getattribute__(thing, "__dict__")
    return has_no_source(function, name) and (fields or not _is_in_a_string(function))


def has_no_source(function: FunctionType, name: str) -> bool:
    """Whether it may be such a method."""
    return (_is_in_a_string(function) and name.startswith("_")) or function.__code__.co_filename.startswith(_GENERATED)


def _is_in_a_string(function: FunctionType) -> bool:
    return function.__code__.co_filename == "<string>"


# ---- below decorators ----


def _innermost(holder: Holder, name: str, value: Any) -> tuple[Holder, str, Any]:
    """Where the function lies that a decorated one calls: in the cell of a closure, as far as we can follow."""
    functions = parts(value)
    function = functions[0][0]
    if len(functions) > 1 or type(function) is not FunctionType:
        return holder, name, value
    for cell, inner in _steps(function):
        holder, name, value = Holder(cell), "", inner
    return holder, name, value


def _steps(function: Any) -> Iterator[tuple[Any, Any]]:
    """Each cell below a function in which lies what __wrapped__ names, or the stand-in of that."""
    for _ in range(64):
        inner = standin_wrapped(function.__dict__.get("__wrapped__"))
        cells: Iterable[Any] = function.__closure__ or ()
        found = ((cell, standins.contents(cell)) for cell in cells)
        step = next(((cell, content) for cell, content in found if standin_wrapped(content) is inner), None)
        if step is None or type(inner) is not FunctionType:
            return
        yield step
        function = inner
