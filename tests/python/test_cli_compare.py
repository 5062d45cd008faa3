# SPDX-License-Identifier: MIT
"""Guards `codetimer compare`: statements in turns, and files of results beside each other, also of two languages; a
file that is damaged, foreign, newer or older is refused with what it is and what to do."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_processes import environment, run
from codetimer.cli.compare import names_of

PROGRAM = Path(__file__).resolve().parents[2] / "bindings-lua" / "codetimer-lua"


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def compare(folder, *arguments):
    """What a comparison that goes well prints."""
    ended = run(folder, "compare", *arguments, cwd=folder)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return ended.stdout


def lua(folder, *arguments):
    """codetimer-lua with these words; skips where it cannot run."""
    cpath = os.environ.get("CODETIMER_LUA_CPATH", "")
    if not cpath or shutil.which("lua5.4") is None or not PROGRAM.exists():
        pytest.skip("no lua5.4, or CODETIMER_LUA_CPATH does not name a built Lua module")
    env = environment(folder, LUA_CPATH=cpath, LUA="lua5.4", LC_ALL="C.UTF-8")
    ended = subprocess.run(
        [PROGRAM, *map(str, arguments)], env=env, cwd=folder, capture_output=True, encoding="utf-8", timeout=60
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return ended.stdout


# ---- statements ----


def test_statements(folder):
    """The slower one is found; the others are compared with the first."""
    out = compare(folder, "-t", "1", "-s", "n = 100", "[i for i in range(n)]", "n")
    assert re.search(r"^n is [\d,.]+× faster than \[i for i in range\(n\)\], ", out, re.MULTILINE)
    assert re.search(r"^\[i for i in range\(n\)\] +[\d.]+ \w+ .+ baseline ", out, re.MULTILINE)


def test_options(folder):
    out = compare(
        folder, "-t", "0.1", "-v", "-u", "usec", "--memory", "--gc-time", "--json", "r.json", "--", "object()", "1"
    )
    assert re.search(r"object\(\) +[\d.]+ µs", out) and "Rounds: " in out and "Allocations" in out
    document = json.loads((folder / "r.json").read_text())
    assert [result["name"] for result in document["results"]] == ["object()", "1"]
    assert document["results"][0]["memory"]["allocations"] == document["results"][0]["memory"]["calls"]
    assert document["results"][0]["overheads"][0]["label"] == "empty statement"
    assert document["comparison"]["twin"]["in_turns"]


def test_same_statement_twice_has_two_names(folder):
    out = compare(folder, "-t", "0.1", "pass", "pass")
    assert "\npass #1 " in out and "\npass #2 " in out


def test_no_statement_is_lost_among_names_that_look_alike(folder):
    """The number of a name makes one that another statement has."""
    assert names_of(["x", "y", "x #3"]) == ["x", "y", "x #3"]
    words = ["x=1", "x=1", "x=1 #1", "x=1 #2", "x=1 #2", "x=1 #2 #2"]
    names = names_of(words)
    assert names == ["x=1 #1 #1", "x=1 #2 #2 #2", "x=1 #1", "x=1 #2 #4", "x=1 #2 #5", "x=1 #2 #2"]
    compare(folder, "-t", "0.1", "--json", "r.json", *words)
    assert [each["name"] for each in json.loads((folder / "r.json").read_text())["results"]] == names


def test_each_statement_has_its_own_names(folder):
    """What one binds is nothing to the other."""
    compare(folder, "-t", "0.05", "-s", "x = 0", "x += 1; assert x > 0", "x -= 1; assert x < 0")


def test_long_setup_is_noted(folder):
    out = compare(folder, "-t", "0.05", "-s", "import time; time.sleep(0.01)", "pass", "1")
    assert out.count("has a long setup, run once") == 2


def test_statement_that_fails(folder):
    ended = run(folder, "compare", "-t", "0.1", "--json", folder / "r.json", "pass", "1 / 0")
    assert ended.returncode == 1 and "Ended early after 0 rounds (ZeroDivisionError)\n" in ended.stdout
    assert 'File "<statement 2>", line 1, in statement\n    1 / 0\n' in ended.stderr
    assert "was not written, since a statement failed" in ended.stderr and not (folder / "r.json").exists()
    ended = run(folder, "compare", "pass", "1 /")
    assert (ended.returncode, ended.stdout) == (1, "") and "SyntaxError" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pass"], "two or more"),
        ([], "two or more"),
        (["pass", "x.json"], "cannot be mixed: x.json"),
        (["pass"] * 33, "at most 32 statements"),
        (["-t", "0.1", "a.json", "b.json"], "-t is for statements"),
        (["--memory", "a.json", "b.json"], "--memory is for statements"),
        (["pass", "1", "--memory"], "options come before the first statement: --memory"),
    ],
)
def test_wrong_usage(folder, arguments, said):
    ended = run(folder, "compare", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said in ended.stderr and ended.stderr.count("\n") == 1


# ---- files ----


def result(name, per_call_ns, net_ns=None, width=0.01):
    """As in a file: intervals of this half width."""
    low, high = per_call_ns * (1 - width), per_call_ns * (1 + width)
    net = (None, None) if net_ns is None else (net_ns * (1 - width), net_ns * (1 + width))
    return {
        "name": name, "per_call_ns": per_call_ns, "interval_low_ns": low, "interval_high_ns": high,
        "net_low_ns": net[0], "net_high_ns": net[1],
    }  # fmt: skip


def write(folder, name, *results, **document):
    whole = {"codetimer": 1, "version": "X", "host": "Python 3", "machine": None, "date": None}
    (folder / name).write_text(json.dumps(whole | {"results": results} | document))


def test_files_are_compared_net_of_their_own_empty_calls(folder):
    """100 ns of which 60 are the statement, beside 50 ns of which 30 are."""
    write(folder, "a.json", result("f", 100, 60), host="Python 3.12.1")
    write(folder, "b.json", result("f", 50, 30), host="Lua 5.4", machine="x86_64")
    out = compare(folder, "a.json", "b.json")
    assert out.startswith("a: Python 3.12.1\nb: Lua 5.4, x86_64\n\n")
    assert "f: b is 2.00× faster than a, 1.96–2.04 (not measured in turns)\n" in out
    assert re.search(r"^f +100 ns +59\.4 ns to 60\.6 ns +50\.0 ns +29\.7 ns to 30\.3 ns$", out, re.MULTILINE)


def test_files_without_empty_calls_are_compared_with_them(folder):
    write(folder, "a.json", result("f", 100, 60))
    write(folder, "b.json", result("f", 200))
    out = compare(folder, "-u", "usec", "a.json", "b.json")
    assert "f: b is 2.00× slower than a, " in out and "with their calls, since" in out and "0.1 µs" in out


def test_files_of_several_results_are_matched_by_name(folder):
    write(folder, "a.json", result("f", 100, 60), result("g", 100, 60), result("only here", 1))
    write(folder, "b.json", result("g", 200, 120), result("f", 100, 60), result("only there", 1))
    write(folder, "c.json", result("g", 300, 180))
    out = compare(folder, "a.json", "b.json", "c.json")
    assert "f: b and a: no difference resolved" in out and "f: not compared: it is not in c\n" in out
    assert "g: b is 2.00× slower than a" in out and "g: c is 3.00× slower than a" in out
    assert "only" not in out


def test_files_of_one_result_each_are_about_the_same(folder):
    write(folder, "a.json", result("f()", 100, 60))
    write(folder, "b.json", result("f(x)", 100, 60))
    assert "f() / f(x): b and a: no difference resolved" in compare(folder, "a.json", "b.json")


def test_several_runs_of_one_thing_are_taken_together(folder):
    """The interval holds all of them: what differs between runs is no difference."""
    write(folder, "a.json", *(result("f", ns, ns) for ns in (100, 110, 130)))
    write(folder, "b.json", *(result("f", ns, ns) for ns in (120, 125, 150)))
    out = compare(folder, "a.json", "b.json")
    assert "f: b and a: no difference resolved" in out and re.search(r"^f +110 ns .+ 125 ns ", out, re.MULTILINE)


def test_files_of_the_same_name_are_told_apart(folder):
    for name in ("x", "y"):
        (folder / name).mkdir()
        write(folder, f"{name}/r.json", result("f", 100, 60))
    assert "f: y/r.json and x/r.json: no difference" in compare(folder, "x/r.json", "y/r.json")


def test_files_with_nothing_to_compare(folder):
    write(folder, "a.json", result("f", 100), result("x", 1))
    write(folder, "b.json", result("g", 100), result("y", 1))
    ended = run(folder, "compare", "a.json", "b.json", cwd=folder)
    assert ended.returncode == 1 and "no result of the same name (a.json: f, x; b.json: g, y)" in ended.stderr
    short = result("f", 100) | {"interval_low_ns": None, "interval_high_ns": None}
    write(folder, "b.json", short)
    write(folder, "a.json", short)
    ended = run(folder, "compare", "a.json", "b.json", cwd=folder)
    assert ended.returncode == 1 and "f: not compared: of fewer than 6 batches" in ended.stdout


def test_files_that_are_not_compared_say_only_why(folder):
    write(folder, "a.json", result("f", 100) | {"interval_low_ns": 0})
    write(folder, "b.json", result("f", 100))
    ended = run(folder, "compare", "a.json", "b.json", cwd=folder)
    assert ended.returncode == 1
    assert ended.stdout.endswith(": not compared (the clock saw nothing of some batches of one of the two)\n")


def test_notes_on_results_in_files(folder):
    """What makes figures mean something else than they seem to is told with the comparison, each once."""
    noted = {"notes": ["still warming up", "two\nlines"], "interrupted": "ValueError"}
    twice = [result("f", 100) | noted] * 2
    write(folder, "a.json", *twice, result("g", 100), result("only here", 1) | noted)
    write(folder, "b.json", result("f", 200) | {"notes": [], "interrupted": None}, result("g", 100) | {"notes": ["n"]})
    notes = compare(folder, "a.json", "b.json").partition("\n\nNote: ")[2]
    told = ["a, f: ended early (ValueError)", "a, f: still warming up", r"a, f: two\nlines", "b, g: n"]
    assert notes == "\nNote: ".join(told) + "\n"
    write(folder, "a.json", result("f()", 100))
    write(folder, "b.json", result("f", 100) | {"notes": ["n"]})
    assert compare(folder, "a.json", "b.json").endswith("\n\nNote: b, f() / f: n\n")


def test_huge_numbers_have_no_invented_digits(folder):
    write(folder, "a.json", result("f", 1e307, 1e306))
    write(folder, "b.json", result("f", 1, 0.5))
    for files in (["a.json", "b.json"], ["b.json", "a.json"]):
        out = compare(folder, *files)
        assert "1.00e+298 s" in out and not re.search(r"[\d,]{25}", out)


GOOD = '{"codetimer": 1, "version": "X", "results": [{"name": "f", "per_call_ns": 1.5}]}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty: it was never written, or its disk was full"),
        (GOOD[:-20], "ends in the middle: it was cut off"),
        (GOOD[:-1], "ends in the middle: it was cut off"),
        (GOOD.replace(",", ";", 1), "is no JSON"),
        ("name,n\nf,1\n", "is no JSON"),
        ("[1]", "holds a JSON list, no object"),
        ("[" * 100_000, "is no JSON|was cut off"),
        ('{"version": "1.0", "benchmarks": []}', "is a file for pyperf"),
        ('{"a": 1}', "was not written by codetimer"),
        (GOOD.replace(": 1,", ": 2,", 1), "has schema 2, of codetimer X, which is newer: this one reads schema 1"),
        (GOOD.replace(": 1,", ": 0,", 1), "has schema 0, which is no longer read"),
        (GOOD.replace(": 1,", ": true,", 1), "has schema True"),
        ('{"codetimer": 1, "results": []}', "has no results"),
        ('{"codetimer": 1, "results": [{}]}', "result 1 has no name"),
        (GOOD.replace("1.5", "-1.5"), "per_call_ns of 'f' is -1.5, no number from 0 on"),
        (GOOD.replace("1.5", '"x"'), "per_call_ns of 'f' is 'x'"),
        (GOOD.replace("1.5", "NaN"), "is no JSON"),
        (GOOD.replace("1.5", "1e999"), "per_call_ns of 'f' is inf"),
        (GOOD.replace("1.5", '1.5, "notes": "x"'), "notes of 'f' is no list of texts"),
        (GOOD.replace("1.5", '1.5, "notes": [1]'), "notes of 'f' is no list of texts"),
        (GOOD.replace("1.5", '1.5, "interrupted": 1'), "interrupted of 'f' is 1, no text"),
        ("\udcff", "is no text file"),
    ],
)
def test_damaged_files(folder, text, said):
    """One line: which file, what it is, what to do."""
    write(folder, "a.json", result("f", 100))
    (folder / "b.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    ended = run(folder, "compare", "a.json", "b.json", cwd=folder)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert re.search(said, ended.stderr) and "b.json" in ended.stderr and ended.stderr.count("\n") == 1


def test_missing_file(folder):
    write(folder, "a.json", result("f", 100))
    ended = run(folder, "compare", "a.json", "b.json", cwd=folder)
    assert (ended.returncode, ended.stderr) == (1, "codetimer: b.json: No such file or directory\n")


# ---- two languages ----

WORDS = ["-n", "200", "-r", "2", "-p", "-v", "--name", "the same"]
MASKS = [
    (r"^    (Gen \d|GC Minor|GC Major|Note): .*\n", ""),
    (r"^    (CPU Cycles|System|Clock): .*", r"    \1"),
    (r"^    (Median|Batches|Outliers|Net): .*\n", ""),  # with 6 batches, which is chance
    (r" ± [\d.]+ %", ""),
    (r"\d[\d,.]*", "N"),
    (r"N (ns|µs|ms)\b", "N U"),
]


def masked(text):
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text, flags=re.MULTILINE)
    return text


def test_report_is_the_same_in_both_languages(folder):
    """All but figures, and what only one of the collectors has."""
    in_lua = lua(folder, "time", *WORDS, "-s", "local x = 1", "local y = x + 1")
    in_python = run(folder, "time", *WORDS, "-s", "x = 1", "y = x + 1").stdout
    assert masked(in_lua) == masked(in_python)
    assert "Empty Call" in in_lua and "CPU Time" in in_lua and "N runs: best N U" in masked(in_lua)


def test_files_of_both_languages(folder):
    lua(folder, "time", "-t", "0.5", "--json", "lua.json", "-s", "local x = 1", "local y = x + 1")
    assert run(folder, "time", "-t", "0.5", "--json", "python.json", "1", cwd=folder).returncode == 0
    out = compare(folder, "python.json", "lua.json")
    assert re.search(r"^python: Python 3\.\d+\.\d+\S*, .+\nlua: Lua 5\.4, ", out)
    assert "1 / local y = x + 1: lua " in out and "not measured in turns" in out
