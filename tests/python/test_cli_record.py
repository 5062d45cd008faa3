# SPDX-License-Identifier: MIT
"""Guards `codetimer record` and `codetimer show`: the file holds what the process itself knows, raw and computed; a
killed recorder loses nothing that it had flushed; a file that is something else stays as it was."""

import contextlib
import csv
import itertools
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess

import pytest
from cli_processes import Screen, Worker, check_window, command, environment, run, wait_for

KINDS = ("average", "calls", "rate", "errors", "p50", "p99", "max", "total", "in_flight")
PATHS = [f"*/*/{kind}" for kind in KINDS]
FORMATS = ("sqlite", "csv")


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "segments"
    place.mkdir(mode=0o700)
    return place


@pytest.fixture(params=FORMATS)
def file(request, tmp_path):
    return tmp_path / f"recording.{request.param}"


def values(folder, file, *arguments):
    result = run(folder, "show", file, "--values", "--json", *arguments)
    return json.loads(result.stdout or "[]")


@contextlib.contextmanager
def recording(folder, file, *arguments, **options):
    """A recorder that goes on until it is told to end, or killed at the end of the with statement."""
    recorder = subprocess.Popen(
        command("record", *PATHS, "--to", file, "--rate", "0.1", "--flush", "0.1", *arguments),
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield recorder
    finally:
        recorder.kill()
        recorder.communicate()


def intervals(result):
    """How many it made: those that are too late, on a busy machine, are left out."""
    return int(re.search(r" in (\d+) intervals, run \d+$", result.stdout.rstrip())[1])


def has_values(folder, file, number):
    return file.exists() and len(values(folder, file)) >= number


# ---- what is in it ----


def test_raw_and_computed_values(folder, file):
    with Worker(folder) as worker:
        before = worker.truth()
        result = run(folder, "record", *PATHS, "--to", file, "--rate", "0.25", "--duration", "1.5")
        after, made = worker.truth(), worker.calls()
    assert result.returncode == 0, result.stderr
    assert re.fullmatch(rf"{file}: \d+ values of 27 counters in \d+ intervals, run 1\n", result.stdout)
    assert 1 <= intervals(result) <= 6
    assert result.stderr == ""  # no terminal, no display
    rows = values(folder, file)
    assert len(rows) == intervals(result) * 27
    for row in rows:
        check_raw(row)
    averages, rates = (chain(rows, kind) for kind in ("average", "rate"))
    total_ns, calls = (averages[-1][name] - averages[0][f"first_{name}"] for name in ("numerator", "denominator"))
    window_ns = rates[-1]["denominator"] - rates[0]["first_denominator"]
    assert calls == rates[-1]["numerator"] - rates[0]["first_numerator"]
    check_window(made, before, after, window_ns, calls, total_ns)
    summary = {(each["key"], each["kind"]): each for each in json.loads(run(folder, "show", file, "--json").stdout)}
    average, rate = (summary["shop/shop.handle", kind] for kind in ("average", "rate"))
    assert average["samples"] == len([row for row in averages if row["value"] is not None])
    assert average["min"] <= average["mean"] <= average["max"]
    assert average["mean"] == pytest.approx(total_ns / calls)
    assert rate["mean"] == pytest.approx(calls / window_ns * 1e9)
    assert summary["shop/shop.once", "average"]["samples"] == 0
    assert summary["shop/shop.once", "average"]["mean"] is None


def chain(rows, kind):
    """The rows of the busy counter, each of which begins where the one before ends."""
    found = [row for row in rows if (row["key"], row["kind"]) == ("shop/shop.handle", kind)]
    for before, after in itertools.pairwise(found):
        assert [after[f"first_{name}"] - before[name] for name in ("numerator", "denominator")] == [0, 0]
    return found


def check_raw(row):
    scale = {"average": 1, "rate": 1e9}.get(row["kind"])
    if scale is not None:
        grown, called = row["numerator"] - row["first_numerator"], row["denominator"] - row["first_denominator"]
        empty = called == 0 if row["kind"] == "average" else grown == 0
        assert (row["value"] is None) == empty
        assert row["value"] is None or row["value"] == pytest.approx(grown / called * scale)
    elif row["kind"] in ("calls", "errors", "total", "in_flight"):
        assert row["value"] == row["numerator"]
    if row["key"] == "shop/shop.once" and row["kind"] in ("average", "rate", "p50", "p99", "max"):
        assert row["value"] is None


def test_the_mean_weighs_calls(folder, tmp_path):
    """One interval with a thousand short calls, one with a single long call: the mean of the means would be far off."""
    code = """
import codetimer, sys
codetimer.timer("m.f").__enter__().__exit__(None, None, None)
counter = codetimer.counters["m/m.f"]
counter.reset()
print("ready", flush=True)
for line in sys.stdin:
    calls, ns = map(int, line.split())
    for _ in range(calls):
        counter.record(ns)
    print("done", flush=True)
"""

    def feed(calls, ns):
        worker.process.stdin.write(f"{calls} {ns}\n")
        worker.process.stdin.flush()
        worker.process.stdout.readline()

    def most(kind):
        return max(row["value"] or 0 for row in values(folder, file) if row["kind"] == kind)

    file = tmp_path / "mean.sqlite"
    with Worker(folder, code) as worker:
        feed(1, 1)
        with recording(folder, file):
            wait_for(lambda: has_values(folder, file, len(KINDS)))
            feed(999, 1000)
            wait_for(lambda: most("calls") == 1000)
            feed(1, 1_000_000)
            wait_for(lambda: most("calls") == 1001)
    summaries = {each["kind"]: each for each in json.loads(run(folder, "show", file, "--json").stdout)}
    average, p50 = summaries["average"], summaries["p50"]
    assert average["mean"] == pytest.approx((999 * 1000 + 1_000_000) / 1000)
    assert p50["mean"] == pytest.approx((999 * 1000 + 1_000_000) / 1000, rel=0.1)
    assert average["samples"] >= 2
    assert average["max"] == 1_000_000


def test_tables_of_sqlite(folder, tmp_path):
    file = tmp_path / "a.sqlite"
    with Worker(folder):
        made = run(folder, "record", "shop/*/average", "--to", file, "--rate", "0.1", "--duration", "0.3")
    database = sqlite3.connect(file)
    assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    (run_row,) = database.execute("SELECT id, paths, rate_s, started_ns < ended_ns, clock FROM runs").fetchall()
    assert run_row[:4] == (1, '["shop/*/average"]', 0.1, 1)
    assert run_row[4]
    assert database.execute("SELECT count(*) FROM readings").fetchone() == (3 * intervals(made),)
    assert database.execute("SELECT DISTINCT kind, unit FROM recorded").fetchall() == [("average", "ns")]
    database.close()


@pytest.mark.parametrize("name", ['a,"b"\nc;é', "a\rb", "\r\n"])
def test_csv_is_quoted(folder, tmp_path, name):
    category = "xy" if "\r" in name else "x,y"
    code = f"""
import codetimer, time
print("ready", flush=True)
while True:
    with codetimer.timer({name!r}, category={category!r}):
        time.sleep(0.01)
"""
    file = tmp_path / "a.csv"
    with Worker(folder, code):
        wait_for(lambda: run(folder, "top", "--interval", "0.1").returncode == 0)
        first, second = (
            intervals(run(folder, "record", "*/*/calls", "--to", file, "--rate", "0.1", "--duration", "0.2"))
            for _ in range(2)
        )
    with open(file, newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    assert {row["key"] for row in rows} == {f"{category}/{name}"}
    assert [row["run"] for row in rows] == ["1"] * first + ["2"] * second
    assert {row["key"] for row in values(folder, file)} == {f"{category}/{name}"}


@pytest.mark.parametrize("duration", ["0.0001", "0.4"])
def test_a_duration_below_the_rate_is_one_interval(folder, file, duration):
    with Worker(folder):
        result = run(folder, "record", "shop/*/calls", "--to", file, "--rate", "30", "--duration", duration)
    assert (result.returncode, result.stderr) == (0, "")
    assert intervals(result) == 1 and len(values(folder, file)) == 3


def test_the_rest_of_a_duration_is_an_interval(folder, tmp_path):
    """Where the machine is so busy that the interval before it takes all of the duration, another recording is made."""
    with Worker(folder):
        for attempt in range(10):
            file = tmp_path / f"{attempt}.csv"
            result = run(folder, "record", *PATHS, "--to", file, "--rate", "0.4", "--duration", "0.6")
            if intervals(result) == 2:
                break
    assert intervals(result) == 2
    assert len(chain(values(folder, file), "rate")) == 2


# ---- going on ----


def test_a_second_run_is_appended(folder, file):
    made = []
    with Worker(folder):
        for number in (1, 2):
            result = run(folder, "record", "shop/*/calls", "--to", file, "--rate", "0.1", "--duration", "0.2")
            assert result.stdout.endswith(f"run {number}\n")
            made.append(3 * intervals(result))
    assert [row["run"] for row in values(folder, file)] == [1] * made[0] + [2] * made[1]
    assert [row["run"] for row in values(folder, file, "--run", "2")] == [2] * made[1]
    assert run(folder, "show", file, "--run", "3").returncode == 1


def test_killed_it_loses_nothing_flushed(folder, file):
    with Worker(folder):
        with recording(folder, file):
            wait_for(lambda: has_values(folder, file, 100))
            seen = values(folder, file)
        after = values(folder, file)
        assert after[: len(seen)] == seen
        if file.suffix == ".sqlite":
            database = sqlite3.connect(file)
            assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            database.close()
        result = run(folder, "record", "shop/*/calls", "--to", file, "--rate", "0.1", "--duration", "0.1")
        assert result.stdout.endswith("run 2\n")
    assert values(folder, file)[: len(after)] == after


def test_a_torn_last_row_of_csv_is_dropped(folder, tmp_path):
    file = tmp_path / "a.csv"
    with Worker(folder):
        first = run(folder, "record", "shop/*/calls", "--to", file, "--rate", "0.1", "--duration", "0.2")
        file.write_bytes(file.read_bytes() + b'1,2026,1,1,1,"torn\n' + b"torn\n" * 999)
        shown = run(folder, "show", file)
        assert "cut or damaged" in shown.stderr
        assert shown.returncode == 0
        run(folder, "record", "shop/*/calls", "--to", file, "--rate", "0.1", "--duration", "0.1")
    assert "torn" not in file.read_text()
    assert len(values(folder, file)) == 3 * intervals(first) + 3


# ---- what is refused ----


def snapshot(place):
    return {each.name: each.read_bytes() for each in place.iterdir() if each.is_file()}


@pytest.mark.parametrize("other", ["text", "sqlite", "newer", "csv"])
def test_something_else_stays_untouched(folder, file, other, tmp_path):
    if other in ("sqlite", "newer"):
        if other == "newer":
            run(folder, "record", "*/*/calls", "--to", tmp_path / "new.sqlite", "--rate", "0.1", "--duration", "0.1")
            shutil.move(tmp_path / "new.sqlite", file)
        database = sqlite3.connect(file)
        database.executescript("PRAGMA user_version = 99; CREATE TABLE precious (value);")
        database.close()
    else:
        file.write_text({"text": "Dear diary\n", "csv": "run,time_utc\n1,2\n"}[other])
    before = snapshot(tmp_path)
    result = run(folder, "record", "*/*/calls", "--to", file, "--duration", "0.1")
    assert result.returncode == 1
    assert str(file) in result.stderr
    assert snapshot(tmp_path) == before
    assert run(folder, "show", file).returncode == 1
    assert snapshot(tmp_path) == before


def test_what_is_no_file(folder, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.sqlite")
    for name in ("folder.csv", "pipe.sqlite"):
        result = run(folder, "record", "*/*/calls", "--to", tmp_path / name, "--duration", "0.1")
        assert result.returncode == 1
        assert "no regular file" in result.stderr
    assert run(folder, "record", "*/*/calls", "--to", tmp_path / "no" / "a.csv").returncode == 1
    assert run(folder, "show", tmp_path / "missing.csv").returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["shop/*/nothing", "--to", "a.csv"],
        ["shop", "--to", "a.csv"],
        ["*/*/calls", "--to", "a.txt"],
        ["*/*/calls"],
        ["*/*/calls", "--to", "a.csv", "--rate", "0"],
        ["*/*/calls", "--to", "a.csv", "--duration", "-1"],
        ["*/*/calls", "--to", "a.csv", "--size-limit", "1.5M"],
    ],
)
def test_wrong_usage(folder, tmp_path, arguments):
    assert run(folder, "record", *arguments, cwd=tmp_path).returncode == 2
    assert os.listdir(tmp_path) == ["segments"]


def test_two_recorders_of_one_csv(folder, tmp_path):
    file = tmp_path / "a.csv"
    with Worker(folder), recording(folder, file):
        wait_for(lambda: has_values(folder, file, 10))
        result = run(folder, "record", "*/*/calls", "--to", file, "--duration", "0.1")
        assert result.returncode == 1
        assert "another recorder" in result.stderr


def test_no_counter_that_matches(folder, file):
    result = run(folder, "record", "*/*/calls", "--to", file, "--rate", "0.1", "--duration", "0.2")
    assert result.returncode == 1 and result.stdout == "" and "no counter matched" in result.stderr


# ---- how it ends ----


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_cleanly_with_a_summary(folder, file, number):
    with Worker(folder), recording(folder, file) as recorder:
        wait_for(lambda: has_values(folder, file, 30))
        recorder.send_signal(number)
        output, errors = recorder.communicate(timeout=60)
    assert recorder.returncode == 0
    assert errors == ""
    found = re.fullmatch(rf"{file}: (\d+) values of 27 counters in \d+ intervals, run 1 \(interrupted\)\n", output)
    assert len(values(folder, file)) == int(found[1])
    assert not list(file.parent.glob("*-wal"))


def test_size_limit(folder, file):
    with Worker(folder), recording(folder, file, "--size-limit", "60k") as recorder:
        output, _ = recorder.communicate(timeout=60)
    assert recorder.returncode == 0
    assert "size limit" in output
    assert 60 << 10 <= file.stat().st_size < 120 << 10


def test_disk_full(folder, file):
    """A limit on the size of files stands for a full disk: the write fails in the same place."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    with Worker(folder), recording(folder, file, preexec_fn=limit) as recorder:
        output, errors = recorder.communicate(timeout=60)
    assert recorder.returncode == 1
    assert output == ""
    found = re.fullmatch(rf"codetimer: cannot write to {file}: .+; it holds the (\d+) values flushed before\n", errors)
    assert int(found[1]) > 0
    assert len(values(folder, file)) == int(found[1])


def test_progress_on_a_terminal(folder, file):
    arguments = command("record", "*/*/calls", "--to", file, "--rate", "0.1", "--duration", "1")
    with Worker(folder), Screen(arguments, environment(folder), size=(200, 5)) as screen:
        assert screen.ended() == 0
        assert re.search(r"\r\d\d:\d\d \[#[# ]{19}\] \d+ intervals, \d+ values of \d+ counters", screen.raw)
        assert not screen.overflowed
        assert "[#" not in screen.text()
        told = re.search(r"(\d+) values of 3 counters in (\d+) intervals, run 1", screen.text())
        assert int(told[1]) == 3 * int(told[2])
