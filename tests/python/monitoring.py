# SPDX-License-Identifier: MIT
"""What the tests of the engine on sys.monitoring share."""

import contextlib
import sys
import types

import codetimer
import pytest
from codetimer import _codetimer

MODULE = "subject"
missing = pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with Python 3.12")


@pytest.fixture(autouse=True)
def fresh():
    """Each test has the counters for itself, and leaves no tool id, no event and no list behind."""
    for counter in list(codetimer.counters.values()):
        counter.remove()
    before = tools()
    yield
    _codetimer._monitoring_stop()
    codetimer.configure("*")
    assert tools() == before


def tools():
    return [sys.monitoring.get_tool(tool) for tool in range(6)]


@contextlib.contextmanager
def monitored(members=MODULE + ".*"):
    """Measures these inside the block; all calls that began in it must have ended in it."""
    _codetimer._monitoring_start(members)
    try:
        yield
    finally:
        under_way = _codetimer._monitoring_info()["under_way"]
        _codetimer._monitoring_stop()
    assert under_way == 0 or members == "*"


def make(source, name=MODULE):
    """A module of that source."""
    module = types.ModuleType(name)
    exec(compile(source, f"<{name}>", "exec"), module.__dict__)
    return module


def counter(qualname, module=MODULE):
    return codetimer.counters[f"{module}.{qualname}"]


def calls(module=MODULE):
    """{qualified name: calls} of all counters of the module that were called."""
    start = module + "."
    return {
        key.member.removeprefix(start): key.calls
        for key in codetimer.counters.values()
        if key.calls and key.member.startswith(start)
    }
