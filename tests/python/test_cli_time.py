# SPDX-License-Identifier: MIT
"""Guards `codetimer time`, and `python -m codetimer STATEMENT`: what timeit takes is taken, and means the same; counts
are those of the statement; what fails is told as Python tells it; nothing that was measured is lost."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from cli_processes import Screen, command, environment, run


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def saved(folder, *arguments, name="r.json"):
    """The results that a command saves, which must go well."""
    ended = run(folder, "time", "-t", "0.02", "--json", folder / name, *arguments, cwd=folder)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return json.loads((folder / name).read_text())["results"]


def measured(folder, *arguments):
    """Runs the command to its end, which must be a good one; what it printed."""
    ended = run(folder, *arguments, cwd=folder)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return ended.stdout


# ---- the statement and its count ----


@pytest.mark.parametrize("words", [["time"], []], ids=["time", "none"])
def test_number_is_exact(folder, words):
    """Fails if a statement is executed more or less often than is said, warm-up included."""
    setup = "import atexit; seen = []; atexit.register(lambda: print('seen', len(seen)))"
    out = measured(folder, *words, "-n", "777", "-s", setup, "seen.append(1)")
    assert "    Calls:          777\n" in out and out.endswith("seen 777\n")


def test_automatic_number(folder):
    (result,) = saved(folder, "pass")
    assert result["automatic"] and result["calls"] > 0
    assert result["overheads"][0]["label"] == "empty statement"
    assert measured(folder, "time", "-n", "0", "-t", "0.01", "pass").startswith("pass\n    Calls: ")


def test_lines_of_one_text(folder):
    """Several statements, and several -s, are lines, as with timeit; setup's names are there for the statement."""
    setup = ["-s", "import atexit", "-s", "x = []", "-s", "atexit.register(lambda: print(x))"]
    out = measured(folder, *setup[:2], "-n", "2", *setup[2:], "for i in range(2):", "  x.append(i)", "x.append('.')")
    assert out.startswith("for i in range(2):; x.append(i); x.append('.')\n")
    assert out.endswith("[0, 1, '.', 0, 1, '.']\n")


def test_string_of_several_lines_stays_as_it_is(folder):
    """timeit indents it."""
    assert "'a\\n  b'" in measured(folder, "-n", "1", "print(repr('''a\n  b'''))")


def test_without_a_statement(folder):
    """As timeit does; only to no word at all, which may be somebody who looks what there is, the help is shown."""
    for words in (["time", "-n", "5"], ["-n", "5"], ["-n5", "--"], ["-n", "5", "-s", "x = 1"]):
        assert measured(folder, *words).startswith("pass\n    Calls:          5\n")
    assert measured(folder, "time").startswith("pass\n    Calls: ")
    ended = run(folder)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("usage: codetimer ") and "\n    compare " in ended.stderr


def test_a_comment_is_nothing(folder):
    assert "Calls:          5\n" in measured(folder, "-n", "5", "# nothing")


def test_the_loop_costs_what_timeit_costs(folder):
    """In one process, in turns with timeit: an empty statement takes no more than three times what it takes there."""
    code = """
import timeit
from codetimer.cli.statements import Source
import codetimer
def ours(): return codetimer.time("", 20_000, Source("", "pass").make(None)).elapsed_ns
def theirs(): return timeit.timeit("pass", number=20_000) * 1e9
print(min(ours() for _ in range(40)), min(theirs() for _ in range(40)))
"""
    ended = subprocess.run([sys.executable, "-c", code], env=environment(folder), capture_output=True, text=True)
    ours, theirs = map(float, ended.stdout.split())
    assert ours < theirs * 3


def test_modules_of_the_working_directory(folder):
    (folder / "shop.py").write_text("def price(): return 7\n")
    assert "Calls:          3\n" in measured(folder, "-n", "3", "-s", "from shop import price", "price()")


# ---- options ----


def test_repeat(folder):
    """Each run has its own setup, and its own report."""
    out = measured(folder, "-n", "10", "-r", "3", "-s", "print('setup')", "pass")
    assert out.count("setup\n") == 3 and out.count("Calls:          10\n") == 3
    assert re.search(r"\n3 runs: best \S+ \w+, median \S+ \w+, worst \S+ \w+ per call\n\n$", out)
    assert len(saved(folder, "-r", "2", "pass")) == 2


def test_unit_and_process(folder):
    out = measured(folder, "-t", "0.01", "-u", "msec", "-p", "-v", "pass")
    assert re.search(r"Per Call: +[\d.]+ ms", out)
    assert re.search(r"CPU Time: +[\d.]+ ms per call\n", out)
    assert re.search(r"Empty Call: +[\d.]+ ms to [\d.]+ ms \(empty statement\)\n", out)
    assert "CPU Time: " not in measured(folder, "-n", "5", "pass")


def test_target_time(folder):
    (result,) = saved(folder, "pass")
    assert result["budget_ns"] == 20_000_000


def test_memory_and_gc_time(folder):
    (result,) = saved(folder, "--memory", "--gc-time", "object()")
    assert result["memory"]["allocations"] == result["memory"]["calls"] > 0
    assert result["gc_time"] is not None
    (result,) = saved(folder, "object()")
    assert result["memory"] is None and result["gc_time"] is None


def test_priority_and_cpu(folder):
    """Granted or not, the run is made; what is not granted is told once."""
    cpu = min(os.sched_getaffinity(0))
    where = "import os; print(os.sched_getaffinity(0))"
    ended = run(folder, "time", "-n", "5", "--priority", "high", "--cpu", cpu, where)
    assert ended.returncode == 0 and ended.stdout.startswith(f"{{{cpu}}}\n" * 5)
    assert ended.stderr == "" or re.fullmatch(r"codetimer: Priority: .+\n", ended.stderr)
    ended = run(folder, "time", "-n", "5", "--cpu", "100000", "pass")
    assert ended.returncode == 0 and ended.stderr.startswith("codetimer: Priority: ")


def test_options_end(folder):
    """At "--", or at the first statement."""
    assert "Calls:          3\n" in measured(folder, "-n", "3", "--", "-1")
    assert measured(folder, "-n", "3", "-s", "v = 1", "+v", "-v").startswith("+v; -v\n    Calls:          3\n")
    ended = run(folder, "time", "pass", "--gc-time")
    assert ended.returncode == 2 and "options come before the first statement: --gc-time" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["time", "-n", "abc", "pass"], "'abc' is no number of executions: a whole number from 0"),
        (["time", "-n", "-1", "pass"], "'-1' is no number of executions"),
        (["time", "-n", str(2**63), "pass"], "is no number of executions"),
        (["time", "-r", "0", "pass"], "'0' is no number of runs: a whole number from 1"),
        (["time", "-t", "0", "pass"], "'0' is no time to measure: a number of seconds above 0"),
        (["time", "-t", "nan", "pass"], "'nan' is no time to measure"),
        (["time", "-t", "inf", "pass"], "'inf' is no time to measure"),
        (["time", "-n", "5", "-t", "1", "pass"], "give one of them"),
        (["time", "-u", "hours", "pass"], "invalid choice: 'hours'"),
        (["time", "--nosuch", "pass"], "--nosuch"),
        (["-q", "pass"], "-q"),
        (["time", "--cpu", "x", "pass"], "'x' is no number of a CPU"),
        (["time", "--json", "", "pass"], "--json needs the name of a file"),
        (["time", "--json", "-", "pass"], "to standard output: --format json"),
        (["lst"], "'lst' is no command, and as a statement it names nothing"),
    ],
)
def test_wrong_usage(folder, arguments, said):
    """One line, exit code 2, nothing measured."""
    ended = run(folder, *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr and ended.stderr.startswith("codetimer") and ended.stderr.count("\n") == 1


# ---- what fails ----


def failed(folder, *arguments):
    ended = run(folder, *arguments, cwd=folder)
    assert ended.returncode == 1
    assert "codetimer/cli" not in ended.stderr, "our own frames are nobody's business"
    return ended


@pytest.mark.parametrize(
    ("arguments", "file", "line", "error"),
    [
        (["x +"], "<statement>", "    x +\n", "SyntaxError: invalid syntax"),
        (["-s", "import", "pass"], "<setup>", "    import\n", "SyntaxError"),
        (["return 5"], "<statement>", "    return 5\n", "SyntaxError: 'return' outside function"),
        (["if 1:", "  break"], "<statement>", "    break\n", "SyntaxError: 'break' outside loop"),
        (["yield 1"], "<statement>", "    yield 1\n", "SyntaxError: 'yield' outside function"),
        (["-s", "from os import *", "pass"], "<setup and statement>", "", "SyntaxError: import * only allowed"),
    ],
)
def test_no_python(folder, arguments, file, line, error):
    ended = failed(folder, "time", *arguments)
    assert ended.stdout == "" and f'File "{file}", line ' in ended.stderr
    assert line in ended.stderr and error in ended.stderr and "Traceback" not in ended.stderr


def test_exception_in_the_statement(folder):
    """The traceback has its line, and the report what was measured before."""
    statement = ["n = next(numbers)", "if n == 4:", "  raise ValueError('four')"]
    ended = failed(folder, "-n", "10", "-s", "numbers = iter(range(9))", *statement)
    assert "    Calls:          4 of 10 (ValueError)\n" in ended.stdout
    place = 'Traceback (most recent call last):\n  File "<setup and statement>", line 4, in statement\n'
    assert ended.stderr.startswith(place)
    assert "    raise ValueError('four')\n" in ended.stderr and ended.stderr.endswith("ValueError: four\n")


def test_exception_below_the_statement(folder):
    (folder / "shop.py").write_text("def price():\n    return 1 / 0\n")
    ended = failed(folder, "-s", "import shop", "shop.price()")
    assert "    shop.price()\n" in ended.stderr and "    return 1 / 0\n" in ended.stderr
    assert ended.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_exception_in_the_setup(folder):
    ended = failed(folder, "-s", "x = 1", "-s", "x.y", "pass")
    assert ended.stdout == "" and "    x.y\n" in ended.stderr and "line 2, in statement" in ended.stderr


@pytest.mark.parametrize("error", ["StopIteration", "SystemExit(3)", "GeneratorExit"])
def test_exceptions_that_mean_something_to_the_loop(folder, error):
    ended = failed(folder, "-n", "5", f"raise {error}")
    name = error.partition("(")[0]
    assert f"0 of 5 ({name})" in ended.stdout and ended.stderr.splitlines()[-1].startswith(name)


# ---- Ctrl-C ----


def interrupted(folder, *arguments):
    """Ctrl-C when the statement has said that it runs."""
    setup = "import itertools; said = itertools.count()"
    statement = "if next(said) == 1000: print('now', flush=True)"
    process = subprocess.Popen(
        command("time", *arguments, "-s", setup, statement), env=environment(folder), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_ctrl_c_prints_what_is_known(folder):
    code, out, err = interrupted(folder, "-n", str(10**12), "--json", folder / "r.json")
    assert code == 130 and err == ""
    calls = re.search(r"Calls: +([\d,]+) of 1,000,000,000,000 \(interrupted\)\n", out)
    assert int(calls[1].replace(",", "")) >= 1000
    (result,) = json.loads((folder / "r.json").read_text())["results"]
    assert result["interrupted"] == "interrupted" and result["calls"] == int(calls[1].replace(",", ""))


def test_ctrl_c_in_an_automatic_run_of_several(folder):
    code, out, err = interrupted(folder, "-t", "1000", "-r", "5")
    assert code == 130 and err == ""
    assert out.count("Calls: ") == 1 and "(interrupted)" in out


# ---- progress ----


def screen(folder, *arguments):
    return Screen(command("time", *arguments), environment(folder), size=(100, 30))


def test_progress_on_a_terminal(folder):
    """With the figure so far and the time that is left; gone at the end."""
    with screen(folder, "-t", "1.5", "--name", "the name", "pass") as shown:
        assert shown.ended() == 0
        assert re.search(r"\rthe name: \d+ %, [\d.]+ \w+ per call, \d s left\x1b\[K", shown.raw)
        assert "left" not in shown.text() and shown.line(0) == "the name"
        assert not shown.overflowed


def test_no_progress_for_what_is_over_in_a_second(folder):
    with screen(folder, "-n", "50", "pass") as shown:
        assert shown.ended() == 0
        assert "left" not in shown.raw


def test_no_progress_where_a_stream_is_no_terminal(folder):
    ended = run(folder, "time", "-t", "1.2", "pass")
    assert (ended.returncode, ended.stderr) == (0, "") and "left" not in ended.stdout
    quiet = ["/bin/sh", "-c", 'exec "$@" >/dev/null', "sh", *command("time", "-t", "1.2", "pass")]
    with Screen(quiet, environment(folder)) as shown:
        assert shown.ended() == 0
        assert shown.raw == ""
