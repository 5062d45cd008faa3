# SPDX-License-Identifier: MIT
"""Guards list, watch, enable, disable, members and reap as a user sees them: what they print, on which stream, and with
which exit code; and that none of them harms who is watched."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time

import codetimer
import pytest
from live import command, environment, program, wait_until

CODE = """
codetimer.timer("shop.slow", help="100 % of it").counter.record(2_000_000)
slow, quick = (codetimer.timer(name).counter.record for name in ("shop.slow", "shop.quick"))
say("ready")
import threading
threading.Thread(target=lambda: (hear(), os._exit(0)), daemon=True).start()
while True:
    quick(1000)
    quick(3000)
    codetimer.configure().source  # looks after the members list, as a measured call does once a second
    time.sleep(0.005)
"""


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def quick_ns(calls):
    """The time of so many calls of shop.quick: 1000 ns and 3000 ns in turns."""
    return 2000 * calls - 1000 * (calls % 2)


@pytest.fixture
def running(folder):
    with program(CODE, folder) as measured:
        measured.hear()
        yield measured


# ---- the command itself ----


def test_usage(folder):
    for arguments in ([], ["nonsense"], ["list", "x"], ["watch"], ["enable", "5"], ["watch", "x"], ["list", "--nix"]):
        run = command(folder, *arguments)
        assert run.returncode == 2 and run.stderr and not run.stdout, arguments
        assert "Traceback" not in run.stderr
    for arguments in (["--help"], ["watch", "--help"], ["members", "--help"]):
        run = command(folder, *arguments)
        assert run.returncode == 0 and "usage: codetimer" in run.stdout and not run.stderr
        assert "%%" not in run.stdout
    assert "exit codes: 0 done; 1 nothing found" in command(folder, "--help").stdout
    assert command(folder, "--version").stdout == f"codetimer {codetimer.__version__}\n"


def test_import_codetimer_stays_bare(folder):
    code = "import sys; before = set(sys.modules); import codetimer; print(sorted(set(sys.modules) - before))"
    line = [sys.executable, "-c", code]
    run = subprocess.run(line, capture_output=True, text=True, env=environment(folder), timeout=60)
    assert not {"codetimer.cli", "argparse", "json", "logging"} & set(eval(run.stdout)), run.stdout


def test_a_broken_pipe_is_quiet(running, folder):
    for arguments in (["list"], ["watch", "*/*/rate", "--interval", "0.02"], ["list", str(running.pid)]):
        line = f"{sys.executable} -m codetimer {' '.join(arguments)} 2>{folder.parent}/said | head -n 1"
        line += "; echo ${PIPESTATUS[0]}"
        run = subprocess.run(["bash", "-fc", line], capture_output=True, text=True, env=environment(folder), timeout=60)
        assert run.stdout.splitlines()[-1] == "0", run.stdout
        assert (folder.parent / "said").read_text() == ""
    reader, writer = os.pipe()
    os.close(reader)
    for arguments in (["list"], ["--help"], ["members", str(running.pid)], ["enable", str(running.pid), "*"]):
        run = subprocess.run(
            [sys.executable, "-m", "codetimer", *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            env=environment(folder),
            timeout=60,
        )
        assert (run.returncode, run.stderr) == (0, b""), arguments
    os.close(writer)


def test_a_full_disk_is_told(running, folder):
    with open("/dev/full", "w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "codetimer", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(folder),
            timeout=60,
        )
    assert run.returncode == 1 and "No space left" in run.stderr and "Traceback" not in run.stderr


def test_closed_streams(running, folder):
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        line = f"{sys.executable} -m codetimer list {closed}"
        run = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=environment(folder), timeout=60)
        assert (run.returncode, run.stderr) == (0, ""), closed


def test_interrupted(running, folder):
    with subprocess.Popen(
        [sys.executable, "-m", "codetimer", "watch", "*/*/rate", "--interval", "0.05"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
    ) as watching:
        assert watching.stdout.readline().startswith("time,")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 130 and watching.stderr.read() == ""


def test_interrupted_while_it_starts(folder, tmp_path):
    """Also in the middle of its imports."""
    for name in ("argparse", "codetimer.cli"):
        code = f"""
import sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}: raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupts())
from codetimer.__main__ import main
sys.exit(main())
"""
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment(folder), timeout=60)
        assert (run.returncode, run.stdout, run.stderr) == (130, b"", b""), name


# ---- list ----


def test_list(running, folder):
    (folder / "1-1-0").write_text("garbage")
    run = command(folder, "list")
    header, live, unusable = run.stdout.splitlines()
    assert run.returncode == 0 and header.split()[:3] == ["PID", "STATE", "PROGRAM"]
    assert live.split()[:3] == [str(running.pid), "live", "python"]
    assert "unusable" in unusable and "1-1-0: its length, 7 bytes, is not that of a segment" in unusable
    document = json.loads(command(folder, "list", "--json").stdout)
    assert [(each["pid"], each["state"]) for each in document] == [(running.pid, "live"), (None, "unusable")]
    assert document[0]["counters"] == 2 and document[1]["reason"]


def test_list_where_nothing_is(folder):
    run = command(folder, "list")
    assert (run.returncode, run.stdout) == (1, "") and "no process publishes counters here" in run.stderr
    run = command(folder, "list", "--json")
    assert (run.returncode, run.stdout, run.stderr) == (1, "[]\n", "")
    run = command(folder, "list", "--dir", str(folder / "missing"))
    assert run.returncode == 1 and "there is no such folder" in run.stderr


def test_list_a_process(running, folder):
    command(folder, "disable", str(running.pid), "*.quick")
    run = command(folder, "list", str(running.pid))
    lines = run.stdout.splitlines()
    assert run.returncode == 0 and lines[0].startswith(f"{running.pid} live: python (Python 3.")
    assert lines[1].startswith("members list: *;!*.quick")
    assert lines[3].split()[:2] == ["no", "shop/shop.quick"] and lines[4].split()[:3] == ["yes", "shop/shop.slow", "1"]
    assert "2.00 ms" in lines[4] and lines[4].endswith("100 % of it")
    document = json.loads(command(folder, "list", str(running.pid), "--json").stdout)
    quick, slow = document["counters"]
    assert (slow["calls"], slow["average_ns"], slow["help"], slow["enabled"]) == (1, 2_000_000, "100 % of it", True)
    assert quick["enabled"] is False and quick["average_ns"] == quick_ns(quick["calls"]) / quick["calls"]
    assert quick["p50_ns"] <= 3000
    assert document["members"] == "*;!*.quick" and document["segments"][0]["pid"] == running.pid
    run = command(folder, "list", str(2**31 - 1))
    assert run.returncode == 1 and "publishes no counters" in run.stderr


def test_list_shortens_a_huge_members_list(running, folder):
    command(folder, "members", str(running.pid), ";".join(f"shop.{number}" for number in range(5000)))
    run = command(folder, "list", str(running.pid))
    line = next(line for line in run.stdout.splitlines() if line.startswith("members list: shop.0;shop.1;"))
    assert "… (48,889 characters; codetimer members shows all)" in line and len(line) < 300


def test_names_cannot_disturb_the_terminal(folder):
    code = "codetimer.timer('a.\\x1b[2J\\n\\x07ü', help='\\x1b]0;').counter.record(1)\nsay(1)\nhear()"
    with program(code, folder) as measured:
        measured.hear()
        for arguments in (["list", str(measured.pid)], ["watch", "*/*/calls", "--count", "1", "--interval", "0.01"]):
            for extra in ({}, {"PYTHONIOENCODING": "ascii"}):
                run = command(folder, *arguments, env=extra)
                assert run.returncode == 0 and all(each.isprintable() for each in run.stdout.split("\n")), run.stdout
                assert r"a.\x1b[2J\n\x07" in run.stdout and ("ü" in run.stdout) == (not extra)


# ---- watch ----


def test_watch(running, folder):
    line = ["watch", r"\shop(*.quick)\average", "shop/*/calls", "*/*/p50", "--interval", "0.2", "--count", "3"]
    pid = str(running.pid)
    for _ in range(10):  # until the program, too, was on a CPU in each interval
        run = command(folder, *line)
        rows = list(csv.reader(run.stdout.splitlines()))
        if all(row[1] != "—" for row in rows):
            break
    assert rows[0] == [
        "time", f"{pid} shop/shop.quick/average (ns)", f"{pid} shop/shop.quick/calls", f"{pid} shop/shop.slow/calls",
        f"{pid} shop/shop.quick/p50 (ns)", f"{pid} shop/shop.slow/p50 (ns)",
    ]  # fmt: skip
    assert len(rows) == 4 and run.returncode == 0 and run.stderr == ""
    for before, (_, average, calls, slow_calls, median, slow_median) in zip([None, *rows[1:]], rows[1:], strict=False):
        assert 1000 <= float(average) <= 3000 and int(calls) > 2 and slow_calls == "1"
        assert 900 < float(median) < 3300 and slow_median == "—"
        if before is not None:
            grown_ns = quick_ns(int(calls)) - quick_ns(int(before[2]))
            assert float(average) == pytest.approx(grown_ns / (int(calls) - int(before[2])), abs=0.001)


def test_watch_json(running, folder):
    for _ in range(10):  # until the program, too, was on a CPU in each interval
        run = command(folder, "watch", "*/*/rate", "--interval", "0.1", "--count", "2", "--json")
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        if all(line["values"][0]["value"] for line in lines):
            break
    assert len(lines) == 2
    for line in lines:
        quick, slow = line["values"]
        assert quick["path"] == "shop/shop.quick/rate" and quick["pid"] == running.pid and quick["unit"] == "1/s"
        assert quick["value"] > 0 and slow["value"] is None


def test_watch_paces_itself(running, folder):
    start = time.monotonic()
    run = command(folder, "watch", "*/*/rate", "--interval", "0.1", "--count", "10", "--json")
    moments = [json.loads(line)["time"] for line in run.stdout.splitlines()]
    assert len(moments) == 10 and moments == sorted(moments) and time.monotonic() - start > 0.9


def test_watch_ends_with_what_it_watches(running, folder):
    with subprocess.Popen(
        [sys.executable, "-m", "codetimer", "watch", "*/*/rate", "--interval", "0.05"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
    ) as watching:
        watching.stdout.readline()
        running.popen.kill()
        running.popen.wait()
        _, told = watching.communicate(timeout=60)
        assert watching.returncode == 0 and "have ended" in told


def test_watch_names_newcomers_in_a_new_header(running, folder):
    with subprocess.Popen(
        [sys.executable, "-m", "codetimer", "watch", "*/*.quick/calls", "--interval", "0.05"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(folder),
    ) as watching:
        assert watching.stdout.readline() == f"time,{running.pid} shop/shop.quick/calls\n"
        with program(CODE, folder) as second:
            second.hear()
            header = next(line for line in watching.stdout if line.startswith("time,"))
            assert header == f"time,{running.pid} shop/shop.quick/calls,{second.pid} shop/shop.quick/calls\n"
        assert any(line.rstrip().endswith(",—") for line in watching.stdout)  # it waits for that
        watching.kill()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nix/*/rate"], 1, "no counter matches"),
        (["*/*/mean"], 2, "no counter 'mean'"),
        (["*/*/rate", "--interval", "0"], 2, "--interval must be"),
        (["*/*/rate", "--interval", "nan"], 2, "--interval must be"),
        (["*/*/rate", "--count", "0"], 2, "--count must be"),
        (["*/*/rate", "--pid", "1"], 1, "no counter matches"),
        (["*/*/rate", "--dir", "/nowhere/at/all"], 1, "there is no such folder"),
    ],
)
def test_watch_refuses(running, folder, arguments, code, said):
    run = command(folder, "watch", *arguments)
    assert run.returncode == code and said in run.stderr and run.stdout == ""


# ---- control ----


def test_enable_and_disable(running, folder):
    pid = str(running.pid)
    run = command(folder, "disable", pid, "*.quick")
    assert run.returncode == 0 and run.stdout.splitlines()[0] == "1 counter disabled: shop/shop.quick"
    run = command(folder, "disable", pid, "*")
    assert run.stdout.splitlines()[0] == "1 counter disabled: shop/shop.slow; 1 counter was off already"
    run = command(folder, "enable", pid, "*")
    assert run.stdout.splitlines()[0] == "2 counters enabled: shop/shop.quick, shop/shop.slow"
    run = command(folder, "enable", pid, "*.later")
    assert run.returncode == 1 and f"no counter of process {pid} matches *.later; those" in run.stderr
    with codetimer.attach(running.pid, directory=folder) as view:
        wait_until(lambda: view.acknowledged)
        assert view.members.endswith(";*;*.later")
    for _ in range(10):  # it waits for the process for a moment only, and that may not be on a CPU
        run = command(folder, "enable", pid, "*")
        assert "2 counters were on already" in run.stdout
        if "the process has acknowledged" in run.stdout:
            break
    assert "the process has acknowledged" in run.stdout


def test_a_process_that_does_not_listen(folder):
    with program("codetimer.timer('a.n').counter.record(1)\nsay(1)\nhear()", folder) as measured:
        measured.hear()
        run = command(folder, "disable", str(measured.pid), "*")
        assert run.returncode == 0 and "1 counter disabled: a/a.n" in run.stdout
        assert "the process has not acknowledged yet" in run.stdout


def test_members(running, folder):
    pid = str(running.pid)
    assert command(folder, "members", pid).stdout == "no members list: all is measured\n"
    run = command(folder, "members", pid, "*;!*.slow")
    assert run.returncode == 0 and run.stdout.splitlines()[0] == "1 of 2 counters enabled: shop/shop.quick"
    assert command(folder, "members", pid).stdout == "*;!*.slow\n  *: 2 counters\n  !*.slow: 1 counter\n"
    document = json.loads(command(folder, "members", pid, "--json").stdout)
    assert document["members"] == "*;!*.slow"
    assert document["patterns"][1] == {"pattern": "!*.slow", "matches": 1, "problem": None}
    run = command(folder, "members", pid, "--none")
    assert run.stdout.splitlines()[0] == "2 of 2 counters enabled: shop/shop.quick, shop/shop.slow"


@pytest.mark.parametrize(
    ("text", "shown"),
    [("*.quick\n", "*.quick"), ("*;!*.slow # why\r\n", "*;!*.slow # why"), ("# why\n*\n\n!*.slow\n", "*;!*.slow")],
)
def test_members_of_a_file_are_on_one_line(running, folder, text, shown):
    """Whose lines end, and explain."""
    pid = str(running.pid)
    command(folder, "members", pid, text)
    assert command(folder, "members", pid).stdout.splitlines()[0] == shown
    listed = command(folder, "list", pid).stdout
    assert re.search(r"^members list: (.*?)( \(not acknowledged yet\))?$", listed, re.MULTILINE)[1] == shown
    assert json.loads(command(folder, "members", pid, "--json").stdout)["members"] == text


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["enable", "{pid}", "a\\b"], 2, "the pattern 'a\\\\b' at 0 is wrong"),
        (["disable", "{pid}", "!a"], 2, "without '!'"),
        (["members", "{pid}", "x", "--none"], 2, "not both"),
        (["members", "{pid}", "x" * 70_000], 2, "65,536"),
        (["enable", "2147483647", "*"], 1, "publishes no counters"),
        (["members", "2147483647"], 1, "publishes no counters"),
        (["enable", "0", "*"], 2, "'0' is no process id"),
        (["list", "-1"], 2, "'-1' is no process id"),
        (["list", "1" * 20], 2, "is no process id"),
        (["watch", "*/*/rate", "--pid", "x"], 2, "is no process id"),
        (["list", "--dir", ""], 2, "the name of the folder is empty"),
        (["enable", "{pid}", ""], 2, "enable needs a pattern"),
        (["disable", "{pid}", " ;"], 2, "disable needs a pattern"),
        (["reap", "{pid}"], 1, "nothing to reap"),
    ],
)
def test_refused(running, folder, arguments, code, said):
    run = command(folder, *(argument.format(pid=running.pid) for argument in arguments))
    assert run.returncode == code and said in run.stderr and run.stdout == ""


def test_reap(running, folder):
    (folder / "note").write_text("keep me")
    dead = []
    for _ in range(3):
        with program(CODE, folder) as measured:
            measured.hear()
            dead.append(measured.pid)
    run = command(folder, "enable", str(dead[0]), "*")
    assert run.returncode == 1 and "has ended" in run.stderr
    run = command(folder, "reap", str(dead[0]))
    assert (run.returncode, run.stdout) == (0, "1 deleted\n")
    run = command(folder, "reap")
    assert (run.returncode, run.stdout) == (0, "2 deleted\n")
    assert [process.pid for process in codetimer.processes(folder) if process.state == "live"] == [running.pid]
    assert (folder / "note").read_text() == "keep me"
