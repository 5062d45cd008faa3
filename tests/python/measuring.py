# SPDX-License-Identifier: MIT
"""What the tests of measured share."""

import subprocess
import sys
import textwrap

import codetimer
import pytest


@pytest.fixture(autouse=True)
def fresh():
    for counter in list(codetimer.counters.values()):
        counter.remove()
    yield


def calls(module):
    """{member without the module: calls} of all counters that were called."""
    return {
        counter.member.removeprefix(module + ".").split("<locals>.")[-1]: counter.calls
        for counter in codetimer.counters.values()
        if counter.calls
    }


def run(source, *arguments, name="script.py", directory=None):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), "utf-8")
    command = [sys.executable, *(arguments or [str(path)])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
