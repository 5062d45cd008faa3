# SPDX-License-Identifier: MIT
"""How often a comparison errs, beside other tools at equal time: a difference claimed between two copies of one
function (A/A), and one of 5 %, made by 5 % more turns of a loop, not found (A/B). A table; nothing is asserted.

pyperf: values of 10 ms measured in this process, and the verdict of its compare_to; its own way, with some 20 processes
for each, takes a hundred times as long. timeit and pytest-benchmark give no verdict: claimed is what differs by more
than 2.5 %, half of what there is to be found, in the least of five or in the median. Then: how long it takes to know a
body of 100 ns to 1 %.

    python tests/python/bench_compare.py [A/A comparisons of codetimer] [pairs for each tool] [seconds for each]
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path

import codetimer

Body = Callable[[], object]

TURNS, MORE, HALF = 100, 105, 0.025
SOURCE = "def body():\n    total = 0\n    for i in range({}):\n        total += i\n"


def make(turns: int) -> Body:
    """Each time a new function of new code."""
    names: dict[str, Body] = {}
    exec(compile(SOURCE.format(turns), "<body>", "exec"), names)
    return names["body"]


# ---- the tools: whether b is claimed to take another time than a ----


def by_codetimer(a: Body, b: Body, seconds: float) -> bool:
    return codetimer.compare({"a": a, "b": b}, budget=seconds, file=io.StringIO()).different("b")


def by_timeit(a: Body, b: Body, seconds: float) -> bool:
    def least(body: Body) -> float:
        timer = timeit.Timer(body)
        number = max(1, int(seconds / 11 / min(timer.repeat(5, 100)) * 100))
        return min(timer.repeat(5, number)) / number

    return abs(least(b) / least(a) - 1) > HALF


def values(body: Body, seconds: float) -> list[float]:
    """Values of 10 ms, one after the other."""
    timer, end = timeit.Timer(body), time.perf_counter() + seconds
    number = max(1, int(0.01 / timer.timeit(1000) * 1000))
    found = [timer.timeit(number) / number for _ in range(3)]
    while time.perf_counter() < end:
        found.append(timer.timeit(number) / number)
    return found[1:]  # the first is the warm-up


def by_pyperf(a: Body, b: Body, seconds: float) -> bool:
    import pyperf

    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("a.json", "b.json")]
        for body, file in zip((a, b), files, strict=True):
            run = pyperf.Run(values(body, seconds / 2), metadata={"name": "body"}, collect_metadata=False)
            pyperf.Benchmark([run]).dump(file)
        command = [sys.executable, "-m", "pyperf", "compare_to", *files]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return "not significant" not in text


TESTS = """
import pytest
SOURCE = {source!r}
def make(turns):
    names = {{}}
    exec(compile(SOURCE.format(turns), "<body>", "exec"), names)
    return names["body"]
@pytest.mark.parametrize("turns", [{a}, {b}])
def test_body(benchmark, turns):
    benchmark(make(turns))
"""


def by_pytest_benchmark(turns: int, seconds: float) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        test, found = Path(folder, "test_body.py"), Path(folder, "found.json")
        test.write_text(TESTS.format(source=SOURCE, a=TURNS, b=turns), "utf-8")
        options = ["-p", "no:cacheprovider", f"--benchmark-max-time={seconds / 2}", f"--benchmark-json={found}"]
        subprocess.run([sys.executable, "-m", "pytest", *options, str(test)], capture_output=True, check=True)
        a, b = (one["stats"]["median"] for one in json.loads(found.read_text("utf-8"))["benchmarks"])
    return abs(b / a - 1) > HALF


def tools() -> Iterator[tuple[str, Callable[[int, float], bool]]]:
    def of_bodies(claims: Callable[[Body, Body, float], bool]) -> Callable[[int, float], bool]:
        return lambda turns, seconds: claims(make(TURNS), make(turns), seconds)

    yield "codetimer compare", of_bodies(by_codetimer)
    if importlib.util.find_spec("pyperf"):
        yield "pyperf compare_to", of_bodies(by_pyperf)
    yield "timeit, min of 5", of_bodies(by_timeit)
    if importlib.util.find_spec("pytest_benchmark"):
        yield "pytest-benchmark", by_pytest_benchmark


def errors(claims: Callable[[int, float], bool], pairs: int, seconds: float) -> tuple[int, int]:
    """Of so many pairs alike, how many were told to differ; of so many that differ, how many were not."""
    claimed = missed = 0
    for _ in range(pairs):
        claimed += claims(TURNS, seconds)
        missed += not claims(MORE, seconds)
    return claimed, missed


# ---- a body of 100 ns ----


def report_precision(tries: int = 20) -> None:
    """Runs of 0.3 s: how far their medians are from the middle of all."""
    body = make(3)
    with contextlib.redirect_stdout(io.StringIO()):
        runs = [codetimer.time("", fn=body, budget=0.3) for _ in range(tries)]
    middle = statistics.median(run.per_call_ns for run in runs)
    near = sum(abs(run.per_call_ns / middle - 1) <= 0.01 for run in runs)
    within = sum(run.interval_high_ns - run.interval_low_ns <= 0.02 * run.per_call_ns for run in runs)
    print(f"  codetimer time    0.3 s: {near} of {tries} within 1 % of {middle:.1f} ns, {within} say so themselves")
    if not importlib.util.find_spec("pyperf"):
        return
    for label, option in (("--fast", ["--fast"]), ("default", [])):
        began = time.perf_counter()
        command = [sys.executable, "-m", "pyperf", "timeit", "-q", *option, "-s", SOURCE.format(3), "body()"]
        done = subprocess.run(command, capture_output=True, text=True)
        text = done.stdout.strip().splitlines()[-1:] or ["failed"]
        print(f"  pyperf {label:10} {time.perf_counter() - began:4.1f} s: {text[0]}")


# ---- equal functions with data of their own ----

WITH_DATA = {
    "a list": "data = [*range(50)]\ndef body():\n    total = 0\n    for i in range(len(data)): total += data[i]\n",
    "an object": (
        "class C: pass\nit = C()\nit.x, it.y, it.z = 1, 2, 3\n"
        "def body():\n    it.x = it.y + it.z\n    it.y = it.x - it.z\n"
    ),
    "a dict": (
        "data = {str(i): i for i in range(40)}\n"
        "def body():\n    total = 0\n    for key in data: total += data[key]\n"
    ),
}


def report_data(pairs: int, seconds: float) -> None:
    """What compare says of them is true of these data where they lie, and of no others."""
    kept = []  # each of another size, so that each pair lies elsewhere
    for label, source in WITH_DATA.items():
        claimed, ratios = 0, []
        for _ in range(pairs):
            bodies = []
            for name in "ab":
                names: dict[str, Body] = {}
                kept.append(bytearray(53 * len(kept) + 1))
                exec(source, names)
                bodies.append((name, names["body"]))
            found = codetimer.compare(dict(bodies), budget=seconds, file=io.StringIO())
            claimed += found.different("b")
            ratios.append(found.ratio("b") or 1.0)
        span = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(f"  each with {label} of its own: {claimed} of {pairs} told to differ, ratios {span}")


def main(alike: int = 200, pairs: int = 40, seconds: float = 0.5) -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    claimed = sum(by_codetimer(make(TURNS), make(TURNS), seconds) for _ in range(alike))
    print(f"Python {version}, {seconds} s for each comparison, load {os.getloadavg()[0]:.1f}")
    print(f"  codetimer compare   {claimed} of {alike} pairs alike told to differ")
    report_data(pairs, seconds)
    print(f"  {'':20}{pairs} alike: claimed   {pairs} by 5 %: missed")
    for label, claims in tools():
        claimed, missed = errors(claims, pairs, seconds)
        print(f"  {label:20}{claimed:17}{missed:20}", flush=True)
    report_precision()


if __name__ == "__main__":
    main(*(float(text) if "." in text else int(text) for text in sys.argv[1:]))
