# SPDX-License-Identifier: MIT
"""What the tests of measured and of runs share."""

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


# What a run may say when the machine has other things to do: no test can know.
OF_THE_MACHINE = ("CPU time is ", "still warming up: ", "it slows down: ")


def own_notes(result):
    return tuple(note for note in result.notes if not note.startswith(OF_THE_MACHINE))


def run(source, *arguments, name="script.py", directory=None):
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source), "utf-8")
    command = [sys.executable, *(arguments or [str(path)])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()
