# SPDX-License-Identifier: MIT
"""What the tests of instrument share: modules written on the spot, and what must be as it was afterwards."""

import importlib
import importlib._bootstrap as bootstrap
import sys
import textwrap

import codetimer
import pytest

# Where sys.monitoring measures, nothing of Python is replaced.
REPLACES = sys.version_info < (3, 12)
replaces = pytest.mark.skipif(not REPLACES, reason="Python functions are measured by sys.monitoring from 3.12 on")


def attributes(*things):
    """What modules and classes hold, by identity."""
    return [{name: id(value) for name, value in vars(thing).items()} for thing in things]


def calls():
    """{member: calls} of all counters that were called."""
    return {counter.member: counter.calls for counter in codetimer.counters.values() if counter.calls}


class Modules:
    """Writes modules into a folder of sys.path, and imports them."""

    def __init__(self, folder):
        self.folder = folder
        self.names = []

    def write(self, name, source):
        path = self.folder.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), "utf-8")
        self.names.append(name)
        importlib.invalidate_caches()
        return path

    def load(self, name, source):
        self.write(name, source)
        return importlib.import_module(name)


@pytest.fixture
def modules(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Modules(tmp_path)
    yield made
    for name in list(sys.modules):
        if name in made.names or name.split(".")[0] in {name.split(".")[0] for name in made.names}:
            del sys.modules[name]


@pytest.fixture(autouse=True)
def nothing_instrumented():
    """No test leaves anything instrumented, or the import system other than it was."""
    for counter in list(codetimer.counters.values()):
        counter.remove()
    before = bootstrap._load_unlocked, bootstrap._exec, list(sys.meta_path), list(sys.path_hooks)
    yield
    codetimer.uninstrument()
    assert (bootstrap._load_unlocked, bootstrap._exec, sys.meta_path, sys.path_hooks) == before
