# SPDX-License-Identifier: MIT
"""Statements given as text, compiled for the loop of a run, and told about as Python tells about a script.

Setup and statement become one function, so that what the setup binds are local variables to the statement, as with
timeit. It is put together from their syntax trees, not from their text: a string literal of several lines stays what it
is, and a statement cannot end the loop that it stands in. Their lines are in linecache, for tracebacks.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
import traceback
import types
import warnings
from collections.abc import Callable

from codetimer import time
from codetimer.cli.native import Statement

TEMPLATE = """
def statement(_codetimer_turns):
    yield
    while True:
        for _codetimer_turn in _codetimer_turns:
            pass
        yield
"""
FILES = "<setup>", "<statement>", "<setup and statement>"
EMPTY_BUDGET_S = 0.02
EMPTY_ATTEMPTS = 4  # on a machine that is busy with something else; the budget doubles


class Broken(Exception):
    """The text is no Python, or the setup failed; what there is to say has been said on stderr."""


class Nowhere:
    """A file for reports that are printed later."""

    def write(self, text: str) -> None:
        pass


class Source:
    """A statement and its setup. Raises Broken where they are no Python."""

    def __init__(self, setup: str, statement: str, label: str = "") -> None:
        self._setup, self._statement = setup, statement
        self._file = (FILES[2] if setup else FILES[1]).replace(">", f" {label}>" if label else ">")
        self._code = self._compile()

    def make(self, empty: tuple[float, float] | None) -> Callable[[], None]:
        """For one run: the setup is executed now. empty: what a turn takes without a statement, see empty_turn."""
        names = {"__name__": "__main__", "__builtins__": builtins}
        exec(self._code, names)
        function = names["statement"]
        assert isinstance(function, types.FunctionType)
        try:
            return Statement(function, empty)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            tell_traceback(error)
            raise Broken from None

    def _compile(self) -> types.CodeType:
        trees = [_parse(text, file) for text, file in ((self._setup, FILES[0]), (self._statement, FILES[1]))]
        lines = [*self._setup.splitlines(), *self._statement.splitlines()]
        linecache.cache[self._file] = (0, None, [f"{line}\n" for line in lines], self._file)
        ast.increment_lineno(trees[1], len(self._setup.splitlines()))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)  # shown before, of each part
                return compile(_put_together(*trees), self._file, "exec", dont_inherit=True)
        except (SyntaxError, RecursionError) as error:  # what cannot stand in a function, as "from x import *"
            tell_traceback(error)
            raise Broken from None


def _parse(text: str, file: str) -> ast.Module:
    try:
        compile(text, file, "exec", dont_inherit=True)  # finds a "return" or "break" too
        return ast.parse(text, file)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, SyntaxError) and error.text is None and error.lineno:
            error.text = "".join(text.splitlines(keepends=True)[error.lineno - 1 : error.lineno])
        tell_traceback(error)
        raise Broken from None


def _put_together(setup: ast.Module, statement: ast.Module) -> ast.Module:
    whole = ast.parse(TEMPLATE)
    for node in ast.walk(whole):
        if isinstance(node, (ast.stmt, ast.expr, ast.arg)):
            node.lineno = node.end_lineno = 1
    function = whole.body[0]
    assert isinstance(function, ast.FunctionDef)
    loop = function.body[1]
    assert isinstance(loop, ast.While) and isinstance(loop.body[0], ast.For)
    loop.body[0].body = statement.body or loop.body[0].body
    function.body[:0] = setup.body
    return whole


def tell_traceback(error: BaseException) -> None:
    """On stderr, as Python does at the end of a script: with the part of the traceback that is the user's."""
    entry = error.__traceback__
    while entry is not None and not entry.tb_frame.f_code.co_filename.startswith(("<setup", "<statement")):
        entry = entry.tb_next
    traceback.print_exception(type(error), error, entry, file=sys.stderr)


def empty_turn() -> tuple[float, float] | None:
    """Nanoseconds of a turn of the loop without a statement, at least and at most; None where that is not to be had."""
    source = Source("", "pass", "of nothing")
    for attempt in range(EMPTY_ATTEMPTS):
        result = time("", None, source.make(None), budget=EMPTY_BUDGET_S * 2**attempt, file=Nowhere())
        if result.interval_low_ns is not None and result.interval_high_ns is not None:
            return result.interval_low_ns, result.interval_high_ns
    return None


def name_of(statement: str, longest: int = 60) -> str:
    """What a result is called by its statement: one line, not too long."""
    name = "; ".join(line.strip() for line in statement.splitlines() if line.strip()) or "pass"
    return name if len(name) <= longest else name[: longest - 3] + "..."
