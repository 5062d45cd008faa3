# SPDX-License-Identifier: MIT
"""What is to be instrumented: the union of the texts that instrument() was given.

Python functions are wanted if a text selects them. What has no code of its own to measure (C functions), and what
everything runs through (the import system), has to be named: by a whole pattern, or at least by one that says the
module in letters. So "*" means all Python functions, and "math.*" those of math in C too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from codetimer._codetimer import Members

# Never touched, whatever is asked for: this package measures itself at its own risk.
OWN = "codetimer"

# What runs in the middle of every import.
_MACHINERY = ("_frozen_importlib", "importlib._bootstrap")

# These take part in every access to an attribute, or come before there is an object.
_DELICATE = frozenset(("__getattribute__", "__setattr__", "__delattr__", "__del__"))


def is_own(name: str) -> bool:
    """Whether a module or member belongs to this package."""
    return name == OWN or name.startswith(OWN + ".")


def letters(text: str) -> tuple[str, bool]:
    """What a pattern says in letters before its first wildcard, and whether that is all of it."""
    said: list[str] = []
    quoted = False
    for character in text:
        if not quoted and character in "*?":
            return "".join(said), False
        if quoted or character != "\\":
            said.append(character)
        quoted = character == "\\" and not quoted
    return "".join(said), True


class Wanted:
    """The union of some members lists."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.lists = [Members(text) for text in texts]
        self._exact: set[str] = set()
        self._beginnings: list[str] = []
        self._last: set[str] = set()  # the names at the end of exact patterns
        self._named: dict[str, bool] = {}  # what names() has said
        self._possible: dict[str, bool] = {}  # and may_be_in()
        for members in self.lists:
            patterns = [pattern.text for pattern in members.patterns if pattern.problem is None]
            for text in patterns:
                if not text.startswith("!"):
                    self._add(*letters(text))
            if patterns and patterns[0].startswith("!"):
                self._beginnings.append("")

    def _add(self, said: str, whole: bool) -> None:
        if whole:
            self._exact.add(said)
            self._last.add(said.rpartition(".")[2])
        self._beginnings.append(said)

    def __bool__(self) -> bool:
        return bool(self._beginnings)

    def may_be_in(self, module: Any) -> bool:
        """A quick look at a module: whether the letters of any pattern fit its name. That of __main__ is another."""
        if not isinstance(module, str):
            return True
        known = self._possible.get(module)
        if known is None:
            known = module in ("__main__", "__mp_main__")
            begins = f"{module}."
            known = known or any(said.startswith(begins) or begins.startswith(said) for said in self._beginnings)
            self._possible[module] = known
        return known

    def selects(self, member: str) -> bool:
        """Whether a Python function is wanted."""
        if not any(members.selects(member) for members in self.lists) or is_own(member):
            return False
        name = member.rpartition(".")[2]
        return (name not in _DELICATE and not member.startswith(_MACHINERY)) or member in self._exact

    def names(self, module: str) -> bool:
        """Whether a pattern says this module in letters."""
        known = self._named.get(module)
        if known is None:
            begins = module + "."
            known = self._named[module] = any(said.startswith(begins) for said in self._beginnings)
        return known

    def may_select_c(self, name: str, function: Any) -> bool:
        """A quick look at a builtin function that lies under this name."""
        if name in self._last or function.__name__ in self._last:
            return True
        module = function.__module__
        return not isinstance(module, str) or self.names(module)

    def selects_c(self, member: str, module: str) -> bool:
        """Whether a C function of this module is wanted; one of builtins only by its whole name."""
        if is_own(member) or not (member in self._exact or (module != "builtins" and self.names(module))):
            return False
        return any(members.selects(member) for members in self.lists)

    def in_c_class(self, member: str) -> list[str]:
        """What is wanted of a class in C: the methods that are named, or all."""
        named = [said for said in self._exact if said.startswith(member + ".")]
        every = member + ".*"
        return [every] if self.selects_c(every, member.rpartition(".")[0]) else named

    def selects_exactly(self, member: str) -> bool:
        """Whether a pattern is just this member."""
        return member in self._exact and not is_own(member) and any(each.selects(member) for each in self.lists)
