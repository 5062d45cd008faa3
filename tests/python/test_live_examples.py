# SPDX-License-Identifier: MIT
"""Guards the example of the workers: what list and watch show of it agrees with what the workers count themselves, and
the third worker appears when it is switched on from outside."""

import csv
import json
import re
import sys
from pathlib import Path

import pytest
from live import command, descriptors, program, threads

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.mark.skipif(not (EXAMPLES / "workers.py").exists(), reason="no examples here: this is a source package")
def test_workers(folder):
    with program("", folder, command=[sys.executable, str(EXAMPLES / "workers.py"), "4"]) as measured:
        pid = re.match(r"process (\d+): try", measured.hear())[1]
        watched = command(folder, "watch", "*/*/average", "--count", "2", "--interval", "0.5")
        assert (threads(pid), len(descriptors(pid))) == (4, 3)
        header, *rows = csv.reader(watched.stdout.splitlines())
        assert [name.split("/")[1] for name in header[1:]] == ["workers.first", "workers.second", "workers.third"]
        for _, first, second, third in rows:
            assert 1e6 < float(first) < float(second) and third == "—"
        assert "workers/workers.third" in command(folder, "enable", pid, "*.third").stdout
        _, row = csv.reader(command(folder, "watch", "*/*.third/rate", "--count", "1").stdout.splitlines())
        assert float(row[1]) > 5
        shown = {}
        for line in (measured.hear(), measured.hear(), measured.hear()):
            name, calls, average = re.match(r"(\w+): (\d+) calls, ([\d.]+) ms", line).groups()
            shown[name] = int(calls), float(average) * 1e6
        report = measured.popen.stdout.read()
    for name in ("first", "second"):
        calls, average = re.search(rf"workers.{name} +([\d,]+) +([\d.]+) ms", report).groups()
        assert int(calls.replace(",", "")) == shown[name][0]
        assert float(average) * 1e6 == pytest.approx(shown[name][1], rel=0.02)


@pytest.mark.skipif(not (EXAMPLES / "workers.py").exists(), reason="no examples here: this is a source package")
def test_the_last_values_seen_from_outside_are_the_true_ones(folder):
    line = [sys.executable, str(EXAMPLES / "workers.py"), "1.5"]
    with program("", folder, command=line, CODETIMER_KEEP="1") as measured:
        pid = measured.popen.pid
        measured.hear()
        truth = {}
        for line in (measured.hear(), measured.hear(), measured.hear()):
            name, calls, average = re.match(r"(\w+): (\d+) calls, ([\d.]+) ms", line).groups()
            truth[name] = int(calls), float(average) * 1e6
        measured.end()
    document = json.loads(command(folder, "list", str(pid), "--json").stdout)
    shown = {each["member"]: each for each in document["counters"]}
    for name in ("first", "second"):
        assert shown[f"workers.{name}"]["calls"] == truth[name][0]
        assert shown[f"workers.{name}"]["average_ns"] == pytest.approx(truth[name][1], rel=0.02)
    assert shown["workers.third"]["enabled"] is False and shown["workers.third"]["average_ns"] is None
