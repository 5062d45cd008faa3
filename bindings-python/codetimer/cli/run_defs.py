# SPDX-License-Identifier: MIT
"""The functions of the program itself, where instrument() replaces functions: before Python 3.12.

A function that the main module defines and calls in one go cannot be replaced in between. So its source is compiled
with one more decorator, innermost and on the line of its "def", at each of its functions. The decorator is no name but
a constant of the code; no line, name, signature or traceback changes. What cannot be compiled like that is given to
python as it is, which says what is wrong in its own words.
"""

from __future__ import annotations

import _ast
import os
import sys
import warnings
from types import CodeType

from codetimer import _codetimer

TYPE_CHECKING = False  # as typing has it, without importing it
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_extension: Any = _codetimer  # what of it is for this package only has no stubs
_FUNCTIONS = (_ast.FunctionDef, _ast.AsyncFunctionDef)
_PLACE = "codetimer: here comes the decorator"  # until the code is there


def run_file(path: str, main: dict[str, Any], decorator: Callable[[Any], Any]) -> None:
    """As _run_file does it. Returns where it has not run anything."""
    if path.endswith(".pyc"):
        return
    with open(path, "rb") as file:
        source = file.read()
    code = compiled(source, path, decorator) if is_readable(source) else None
    if code is not None:
        loader: Any = sys.modules["_frozen_importlib_external"]
        main.update(__file__=path, __cached__=None, __loader__=loader.SourceFileLoader("__main__", path))
        _extension._run_code(code, main)


def run_stdin(main: dict[str, Any], decorator: Callable[[Any], Any]) -> None:
    """As _run_stdin does it. Returns where it has not run anything."""
    if os.isatty(0):
        return
    with open(0, "rb", closefd=False) as file:
        source = file.read()
    main.update(__file__="<stdin>", __cached__=None)
    code = compiled(source, "<stdin>", decorator) if is_readable(source) else None
    if code is None:
        _extension._run_call(compile, source, "<stdin>", "exec", 0, True)
    _extension._run_code(code, main)


def decorate_module(decorator: Callable[[Any], Any]) -> None:
    """The module that runpy looks up next gets the decorator."""
    import runpy

    details: Any = runpy
    original = details._get_module_details

    def change(found: tuple[str, Any, CodeType]) -> tuple[str, Any, CodeType]:
        details._get_module_details = original
        name, spec, code = found
        return name, spec, _compiled_again(spec, code, decorator) or code

    details._get_module_details = _extension._and_change(original, change)


def _compiled_again(spec: Any, code: CodeType, decorator: Callable[[Any], Any]) -> CodeType | None:
    if _has(decorator, code):
        return code
    try:
        source = spec.loader.get_source(spec.name)
    except Exception:  # the loader is anybody's
        return None
    return compiled(source, code.co_filename, decorator, told=True) if source is not None else None


# ---- code ----


def is_readable(source: bytes) -> bool:
    """compile() does not mind everything that python minds in a file."""
    try:
        source.decode()
    except UnicodeDecodeError:
        return any(b"coding" in line for line in source.splitlines()[:2])
    return True


def compiled(
    source: bytes | str, filename: str, decorator: Callable[[Any], Any], told: bool = False
) -> CodeType | None:
    """The code of a module with the decorator at each function; None where it cannot be compiled. The warnings of
    compiling it are given unless they have been told."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            code = _with(decorator, _compile(source, filename))
    except (SyntaxError, ValueError, OverflowError, MemoryError, RecursionError, Warning):
        return None
    for each in caught if not told else ():
        warnings.showwarning(each.message, each.category, each.filename, each.lineno)
    return code


def _compile(source: bytes | str, filename: str) -> CodeType:
    tree: Any = compile(source, filename, "exec", _ast.PyCF_ONLY_AST, dont_inherit=True)
    for function in _functions(tree):
        function.decorator_list.append(_constant(function))
    code: CodeType = compile(tree, filename, "exec", dont_inherit=True)
    return code


def _functions(tree: Any) -> Iterator[Any]:
    """All below, without recursion: sources may be nested deeper than calls may be."""
    nodes = [tree]
    while nodes:
        node = nodes.pop()
        if any(map(_is_measured, getattr(node, "decorator_list", ()))):
            continue  # it has said itself how
        if isinstance(node, _FUNCTIONS):
            yield node
        for name in node._fields:
            value = getattr(node, name, None)
            children = value if isinstance(value, list) else [value]
            nodes += [child for child in children if isinstance(child, _ast.AST)]


def _is_measured(decorator: Any) -> bool:
    """@measured, @codetimer.measured, either also with arguments."""
    called = decorator.func if isinstance(decorator, _ast.Call) else decorator
    return "measured" in (getattr(called, "attr", None), getattr(called, "id", None))


def _constant(function: Any) -> Any:
    """On the line of its "def", which stays the first line of a function without decorators."""
    line = function.lineno
    column = function.col_offset
    return _ast.Constant(_PLACE, None, lineno=line, col_offset=column, end_lineno=line, end_col_offset=column)


def _with(decorator: Callable[[Any], Any], code: CodeType) -> CodeType:
    constants = [_constant_with(decorator, each) for each in code.co_consts]
    return code.replace(co_consts=tuple(constants))


def _constant_with(decorator: Callable[[Any], Any], constant: Any) -> Any:
    if type(constant) is CodeType:
        return _with(decorator, constant)
    return decorator if type(constant) is str and constant == _PLACE else constant


def _has(decorator: Callable[[Any], Any], code: CodeType) -> bool:
    return any(each is decorator or (type(each) is CodeType and _has(decorator, each)) for each in code.co_consts)
