# SPDX-License-Identifier: MIT
"""Guards that every display of the command line tells active time from elapsed where calls wait, and leaves it out
where none does. Fails if a reader sees one of the two only, or a number where nobody knows it."""

import csv
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import codetimer
import pytest
from cli_processes import Worker, environment, run
from codetimer.cli.sampling import Row
from codetimer.cli.table import BY_DIGIT, Layout, Order
from codetimer.cli.text import Symbols

SIGNS = Symbols("—", "µ", "…", "utf-8")

# A generator that waits for 3 ms, and a function that does not.
WAITS = """
import time
import codetimer

@codetimer.measured(name="shop.waits")
def waits():
    yield

@codetimer.measured(name="shop.plain")
def plain():
    time.sleep(0.001)

def call():
    for _ in waits():
        time.sleep(0.003)
    plain()

call()
print("ready", flush=True)
while True:
    call()
"""

PLAIN = WAITS.replace("    for _ in waits():\n        time.sleep(0.003)\n", "")


@pytest.fixture
def folder(tmp_path):
    tmp_path.chmod(0o700)
    return tmp_path


def columns(text):
    """{member: {title: value}} of a table of values without blanks."""
    titles, *lines = [re.split(r" {2,}", line.strip()) for line in text.splitlines() if "  " in line.strip()]
    return {
        next(cell for cell in line if cell.startswith("shop")): dict(zip(titles, line, strict=False)) for line in lines
    }


def by_member(rows):
    return {row["key"].partition("/")[2]: row for row in rows}


def check(row, plain, average, active):
    assert row[average] - row[active] >= 2_900_000  # it sleeps for longer than it should
    assert plain[average] == plain[active]


def test_top_and_list(folder):
    with Worker(folder, WAITS) as worker:
        top = columns(run(folder, "top", "--interval", "1").stdout)
        rows = by_member(json.loads(run(folder, "top", "--interval", "1", "--json").stdout)["rows"])
        listed = columns(run(folder, "list", worker.pid).stdout)
        counters = by_member(json.loads(run(folder, "list", worker.pid, "--json").stdout)["counters"])
    assert list(top["shop.waits"])[3:6] == ["CALLS/s", "AVG", "ACTIVE"]
    waits, plain = listed["shop/shop.waits"], listed["shop/shop.plain"]
    for row, average in ((top["shop.waits"], "AVG"), (waits, "AVERAGE")):
        assert row[average] != row["ACTIVE"]
    for row, average in ((top["shop.plain"], "AVG"), (plain, "AVERAGE")):
        assert row[average] == row["ACTIVE"]
    check(rows["shop.waits"], rows["shop.plain"], "average_ns", "active_average_ns")
    check(rows["shop.waits"], rows["shop.plain"], "lifetime_average_ns", "lifetime_active_average_ns")
    check(counters["shop.waits"], counters["shop.plain"], "average_ns", "active_average_ns")
    assert counters["shop.waits"]["total_ns"] > counters["shop.waits"]["active_ns"]
    assert counters["shop.waits"]["active_unknown"] == 0


def test_watch_and_record(folder):
    paths = ["shop/*/average", "shop/*/active"]
    file = folder / "r.sqlite"
    with Worker(folder, WAITS):
        watched = list(csv.reader(run(folder, "watch", *paths, "--interval", "1", "--count", "1").stdout.splitlines()))
        run(folder, "record", *paths, "--to", file, "--rate", "0.5", "--duration", "1.5")
    names = [title.split(" ")[1].partition("/")[2] for title in watched[0][1:]]
    values = dict(zip(names, map(float, watched[1][1:]), strict=True))
    shown = json.loads(run(folder, "show", file, "--json").stdout)
    means = {f"{each['key'].partition('/')[2]}/{each['kind']}": each["mean"] for each in shown}
    for found in (values, means):
        assert found["shop.waits/average"] - found["shop.waits/active"] >= 2_900_000
        assert found["shop.plain/average"] == found["shop.plain/active"]
    assert {each["unit"] for each in shown} == {"ns"}


def test_left_out_where_nobody_waits(folder):
    with Worker(folder, PLAIN) as worker:
        assert "ACTIVE" not in run(folder, "top", "--interval", "0.2").stdout
        assert "ACTIVE" not in run(folder, "list", worker.pid).stdout


LUA = """
local codetimer = require "codetimer"
local fetch = codetimer.measured("shop.fetch", function() coroutine.yield() end)
local run = coroutine.wrap(fetch)
run() run()
io.write("ready\\n"):flush()
io.read()
"""


def test_not_known(folder):
    """Lua does not tell how long a coroutine waited: readers get the reason, and no number."""
    cpath, lua = os.environ.get("CODETIMER_LUA_CPATH", ""), shutil.which("lua5.4")
    if lua is None or not Path(cpath.replace("?", "codetimer")).is_file():
        pytest.skip("no lua5.4, or CODETIMER_LUA_CPATH does not name a built Lua module")
    (folder / "fetch.lua").write_text(LUA)
    process = subprocess.Popen(
        [lua, folder / "fetch.lua"],
        env=environment(folder, LUA_CPATH=cpath),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        with codetimer.attach(process.pid, directory=str(folder)) as view:
            sample = view.sample()["shop/shop.fetch"]
        listed = columns(run(folder, "list", process.pid).stdout)["shop/shop.fetch"]
    finally:
        process.communicate("\n")
    assert sample.calls == sample.active_unknown == 1 and sample.total_ns > 0
    assert sample.active_ns is None and sample.active_average_ns is None
    assert sample.active_reason == "1 of the calls could wait, and their language does not tell for how long they did"
    assert listed["ACTIVE"] == "—"


def make(key, **values):
    known = {"pid": 1, "start_time": 1, "program": "a.py", "calls": 1, "errors": 0, "in_flight": 0, "live": True}
    return Row(**(dict.fromkeys(Row._fields) | known | {"key": key, "waits": False} | values))


def test_column_of_top():
    layout = Layout(SIGNS)
    plain = make("shop/shop.plain", average_ns=2e6, active_average_ns=2e6)
    waits = make("shop/shop.waits", average_ns=5e6, active_average_ns=1e6, waits=True)
    unknown = make("shop/shop.unknown", average_ns=7e6, active_average_ns=None, waits=True)
    assert "ACTIVE" not in layout.lines([plain], [""], None)[0]
    shown = columns("\n".join(layout.lines([plain, waits, unknown], [""] * 3, None)))
    assert [shown[name]["ACTIVE"] for name in ("shop.plain", "shop.waits", "shop.unknown")] == [
        "2.00 ms",
        "1.00 ms",
        "—",
    ]
    assert "ACTIVE" in layout.lines([plain], [""], None)[0]  # columns stand still
    narrow = layout.lines([plain, waits], ["", ""], 60)[0]
    assert "AVG" in narrow and "ACTIVE" in narrow
    order = Order(BY_DIGIT["a"])
    assert [row.member for row in order.sort([plain, waits, unknown])] == ["shop.plain", "shop.waits", "shop.unknown"]


def test_metrics():
    pytest.importorskip("prometheus_client", reason="prometheus_client is not installed (the extra [prometheus])")
    from codetimer.cli.metrics import Tally

    known, other = (Tally((1,), 5, active, 0, 0, 0, 5) for active in (3, 4))
    unknown = Tally((1,), 5, None, 0, 0, 0, 5)
    assert (known + other).active_ns == 7 and (known + unknown).active_ns is (unknown + known).active_ns is None
