# SPDX-License-Identifier: MIT
"""A program as python finds it on its command line: its __main__, sys.argv, sys.path[0], and the way it is run.

What python itself does there is done again, with python's own means: a script goes to the C function that reads and
runs scripts, -m and what has a __main__.py go to runpy. So the program finds what it would have found.
"""

from __future__ import annotations

import builtins
import os
import sys

from codetimer import _codetimer

TYPE_CHECKING = False  # as typing has it, without importing it
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    _Decorator = Callable[[Any], Any]

STDIN = "<stdin>"
Namespace: Any = type(sys.implementation)
_extension: Any = _codetimer  # what of it is for this package only has no stubs


class Program:
    """module: what -m named, or None; argv: sys.argv, which begins with the script, with - or with -m."""

    def __init__(self, module: str | None, argv: list[str]) -> None:
        self.module = module
        self.argv = argv
        self.path = argv[0] if module is None and argv[0] != "-" else None
        if self.path is not None:  # as python does: no other change
            self.path = os.path.join(os.getcwd(), self.path)
        self.is_folder = self.path is not None and has_importer(self.path)
        if self.path is not None and not self.is_folder:
            open(self.path, "rb").close()  # tells what is wrong while it can still be told

    @property
    def name(self) -> str:
        """The module part of the members that __main__ defines."""
        if self.module is not None:
            return self.module.removesuffix(".__main__")
        if self.is_folder:
            return "__main__"
        return stem(self.path or STDIN)

    @property
    def package(self) -> str:
        """What the program calls its own: the script, or the package that -m named."""
        return self.name.partition(".")[0] if self.module is not None else self.name

    def prepare(self) -> None:
        """Puts everything where the program will look for it."""
        self.main: Any = new_main()
        sys.modules["__main__"] = self.main
        sys.argv[:] = self.argv
        first = self._folder()
        if not is_path_safe():
            sys.path[:1] = [first]
        elif self.is_folder:
            sys.path.insert(0, first)
        # What is asked for a name before the program begins gets the one that will be right.
        self.main.__spec__ = Namespace(name=self.name)

    def _folder(self) -> str:
        if self.module is not None:
            return os.getcwd()
        if self.path is None:
            return ""
        return self.path if self.is_folder else os.path.dirname(os.path.realpath(self.path))

    def run(self, decorator: _Decorator | None = None) -> None:
        """The whole life of the program and the end of the process: does not return. decorator: of the functions that
        its main module defines."""
        self.main.__spec__ = None
        if self.module is not None or self.is_folder:
            self._run_module(decorator)
        elif self.path is None:
            self._run_stdin(decorator)
        else:
            self._run_file(self.path, decorator)

    def _run_stdin(self, decorator: _Decorator | None) -> None:
        if decorator is not None:
            from codetimer.cli.run_defs import run_stdin

            run_stdin(vars(self.main), decorator)
        _extension._run_stdin()

    def _run_file(self, path: str, decorator: _Decorator | None) -> None:
        if decorator is not None:
            from codetimer.cli.run_defs import run_file

            run_file(path, vars(self.main), decorator)
        _extension._run_file(path)

    def _run_module(self, decorator: _Decorator | None) -> None:
        import runpy

        if decorator is not None:
            from codetimer.cli.run_defs import decorate_module

            decorate_module(decorator)
        as_main: Any = runpy
        _extension._run_call(as_main._run_module_as_main, self.module or "__main__", self.module is not None)


def new_main() -> ModuleType:
    """As the interpreter makes it before it knows the program."""
    main = type(sys)("__main__")
    names: dict[str, object] = {"__annotations__": {}} if sys.version_info < (3, 14) else {}
    vars(main).update(names, __builtins__=builtins, __loader__=builtins.__loader__)
    return main


def is_path_safe() -> bool:
    """Whether python left sys.path[0] alone, which would be the folder of a script."""
    return bool(getattr(sys.flags, "safe_path", sys.flags.isolated))


def has_importer(path: str) -> bool:
    """Whether it is a place of modules, so that its __main__ is the program: a folder, a zip."""
    for hook in sys.path_hooks:
        try:
            hook(path)
        except ImportError:
            continue
        return True
    return False


def stem(path: str) -> str:
    """As the members of a script are named: its file without its folder and its ending."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return name[:1] + name[1:].rpartition(".")[0] if "." in name[1:] else name
