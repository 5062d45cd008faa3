# SPDX-License-Identifier: MIT
"""Guards the example of the workers: what list and watch show of it agrees with what the workers count themselves; the
third worker appears when it is switched on from outside, and when the file says so, which also takes the second away,
while the main thread waits in join. How long that took is printed: within a second on a quiet machine."""

import csv
import json
import re
import signal
import sys
import time
from pathlib import Path

import codetimer
import pytest
from live import command, descriptors, program, threads, wait_until

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WORKERS = "first", "second", "third"
DEADLINE = 60  # seconds; only a program that hangs needs them

pytestmark = pytest.mark.skipif(not (EXAMPLES / "workers.py").exists(), reason="no examples here: a source package")


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "segments"
    folder.mkdir(0o700)
    return folder


@pytest.fixture
def members(tmp_path):
    file = tmp_path / "workers.members"
    file.write_text((EXAMPLES / "workers.members").read_text())
    return file


def start(folder, members, **env):
    line = ["env", "--default-signal=INT", sys.executable, str(EXAMPLES / "workers.py"), str(members)]
    return program("", folder, command=line, **env)


def interrupt(measured):
    """Ctrl-C; what the workers have counted: calls and average in ns."""
    measured.popen.send_signal(signal.SIGINT)
    truth = {}
    for _ in WORKERS:
        name, calls, average = re.match(r"(\w+): (\d+) calls, ([\d.]+) ms", measured.hear()).groups()
        truth[name] = int(calls), float(average) * 1e6
    return truth


def is_within(average_ns, name, own_ns):
    """What codetimer measures lies within what the worker measures; both are shown rounded."""
    return {"first": 2e6, "second": 5e6}[name] <= average_ns <= own_ns + 2e3


def counting(view):
    """The workers that count, and have counted something."""
    sample = view.sample(buckets=False)
    keys = {name: f"workers/workers.{name}" for name in WORKERS}
    return [name for name, key in keys.items() if key in sample and sample[key].enabled and sample[key].calls]


def attach(measured, folder):
    views = []

    def is_there():
        try:
            views.append(codetimer.attach(measured.pid, directory=folder))
        except (OSError, ValueError):
            return False
        return True

    wait_until(is_there, DEADLINE)
    return views[0]


def write(file, text):
    file.write_text(text)


def replace(file, text):
    file.with_suffix(".new").write_text(text)
    file.with_suffix(".new").replace(file)


@pytest.mark.parametrize("edit", [write, replace])
def test_the_file_is_followed(folder, members, edit):
    with start(folder, members) as measured:
        measured.hear()
        with attach(measured, folder) as view:
            wait_until(lambda: counting(view) == ["first", "second"], DEADLINE)
            edit(members, "*.first\n*.third  # not the second\n")
            began = time.perf_counter()
            wait_until(lambda: counting(view) == ["first", "third"], DEADLINE)
            print(f"the workers were switched {time.perf_counter() - began:.3f} s after the edit")
            second = view.sample()["workers/workers.second"].calls
            edit(members, "*.second")
            wait_until(lambda: counting(view) == ["second"], DEADLINE)
            assert view.sample()["workers/workers.second"].calls >= second


def test_workers(folder, members):
    with start(folder, members) as measured:
        pid = re.match(r"process (\d+): see it by", measured.hear())[1]
        with attach(measured, folder) as view:
            wait_until(lambda: counting(view) == ["first", "second"], DEADLINE)
        assert (threads(pid), len(descriptors(pid))) == (5, 3)  # main, three workers, the one that looks at the file
        watched = command(folder, "watch", "*/*/average", "--count", "2", "--interval", "0.5")
        header, *rows = csv.reader(watched.stdout.splitlines())
        assert [name.split("/")[1] for name in header[1:]] == ["workers.first", "workers.second", "workers.third"]
        for _, first, second, third in rows:
            assert 1e6 < float(first) < float(second) and third == "—"
        assert "workers/workers.third" in command(folder, "enable", pid, "*.third").stdout
        _, row = csv.reader(command(folder, "watch", "*/*.third/rate", "--count", "1").stdout.splitlines())
        assert float(row[1]) > 5
        shown = interrupt(measured)
        report = measured.popen.stdout.read()
    for name in ("first", "second"):
        calls, average = re.search(rf"workers.{name} +([\d,]+) +([\d.]+) ms", report).groups()
        assert int(calls.replace(",", "")) == shown[name][0]
        assert is_within(float(average) * 1e6, name, shown[name][1])


def test_the_last_values_seen_from_outside_are_the_true_ones(folder, members):
    with start(folder, members, CODETIMER_KEEP="1") as measured:
        measured.hear()
        with attach(measured, folder) as view:
            wait_until(lambda: counting(view) == ["first", "second"], DEADLINE)
        truth = interrupt(measured)
        assert measured.popen.wait(DEADLINE) != 0  # it was interrupted
    document = json.loads(command(folder, "list", str(measured.pid), "--json").stdout)
    shown = {each["member"]: each for each in document["counters"]}
    for name in ("first", "second"):
        assert shown[f"workers.{name}"]["calls"] == truth[name][0]
        assert is_within(shown[f"workers.{name}"]["average_ns"], name, truth[name][1])
    assert shown["workers.third"]["enabled"] is False and shown["workers.third"]["average_ns"] is None
