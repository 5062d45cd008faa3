# SPDX-License-Identifier: MIT
"""What codetimer.measured adds to a call, beside a hand-written closure, other tools, and the floor: an object in C
that does nothing but read the clock twice around the same call (bench_floor.c, built here with the compiler of this
Python).

Each variant has its own function, class and loop, so that the interpreter specialises each for itself. All run in this
process, slice by slice in turn, so that the load of the machine hits all alike; the least slice of each counts, less
that of an empty loop. A table and verdicts; nothing is asserted. Tools that are not installed (requirements-bench.txt)
are left out.

    python tests/python/bench_measured.py [slices] [calls per slice]
"""

import contextlib
import functools
import gc
import importlib
import importlib.util
import shlex
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import codetimer

ROOT = Path(__file__).resolve().parent.parent.parent
NOTHING = contextlib.nullcontext()

FUNCTION = """
def f():
    pass
f = wrap(f)
def loop(calls, f=f, now=now):
    start = now()
    for _ in calls:
        f()
    return now() - start
"""

METHOD = """
class T:
    def m(self, x):
        pass
    m = wrap(m)
def loop(calls, o=T(), now=now):
    start = now()
    for _ in calls:
        o.m(1)
    return now() - start
"""

EMPTY = """
def loop(calls, f=None, now=now):
    start = now()
    for _ in calls:
        pass
    return now() - start
"""


# ---- variants: name -> (wrapper of the function, what is switched on during a slice) ----


def build_extension(name):
    """The extension of that name beside this file, built below build/."""
    source = Path(__file__).with_name(name + ".c")
    folder = ROOT / "build" / "bench"
    target = folder / (name + sysconfig.get_config_var("EXT_SUFFIX"))
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        folder.mkdir(parents=True, exist_ok=True)
        compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
        includes = [f"-I{ROOT / 'core'}", f"-I{sysconfig.get_path('include')}"]
        flags = ["-O2", "-fPIC", "-shared", "-std=c11"]
        subprocess.run([*compiler, *flags, *includes, str(source), "-o", str(target)], check=True)
    spec = importlib.util.spec_from_file_location(name, target)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def closure(fn):
    """What one writes by hand."""
    count = total = longest = 0
    shortest = float("inf")
    now = time.perf_counter_ns

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        nonlocal count, total, shortest, longest
        start = now()
        try:
            return fn(*args, **kwargs)
        finally:
            duration = now() - start
            count += 1
            total += duration
            if duration < shortest:
                shortest = duration
            if duration > longest:
                longest = duration

    return wrapper


def measured(fn):
    return codetimer.measured(fn, name=f"bench.{fn.__qualname__}")


def measured_off(fn):
    wrapped = codetimer.measured(fn, name=f"bench.off.{fn.__qualname__}")
    codetimer.counters[f"bench.off.{fn.__qualname__}"].remove()
    return wrapped


class Summary:
    def __init__(self, module):
        self.module, self.registry = module, module.CollectorRegistry()

    def __call__(self, fn):
        return self.module.Summary(f"bench_{fn.__name__}_seconds", "bench", registry=self.registry).time()(fn)


def codetiming_timer(module):
    return lambda fn: module.Timer(name=fn.__qualname__, logger=None)(fn)


def wrapt_decorator(module):
    @module.decorator
    def around(wrapped, instance, args, kwargs):
        return wrapped(*args, **kwargs)

    return around


class Yappi:
    def __init__(self, module):
        self.module = module
        module.set_clock_type("wall")

    def __enter__(self):
        self.module.start(builtins=False, profile_threads=False)

    def __exit__(self, *raised):
        self.module.stop()


def plain(fn):
    return fn


def make_variants():
    floor = build_extension("bench_floor").Floor
    variants = {
        "bare call": (plain, NOTHING),
        "floor": (floor, NOTHING),
        "floor without clock": (lambda fn: floor(fn, True), NOTHING),
        "measured": (measured, NOTHING),
        "measured, switched off": (measured_off, NOTHING),
        "closure, by hand": (closure, NOTHING),
    }
    others = {
        "prometheus Summary.time()": ("prometheus_client", lambda module: (Summary(module), NOTHING)),
        "codetiming.Timer": ("codetiming", lambda module: (codetiming_timer(module), NOTHING)),
        "wrapt, nothing inside": ("wrapt", lambda module: (wrapt_decorator(module), NOTHING)),
        "yappi, wall clock": ("yappi", lambda module: (plain, Yappi(module))),
        "cProfile": ("cProfile", lambda module: (plain, module.Profile())),
    }
    for label, (name, make) in others.items():
        try:
            variants[label] = make(importlib.import_module(name))
        except ImportError:
            print(f"{label}: {name} is not installed here")
    return variants


# ---- the bench ----


def make_loop(source, wrap):
    names = {"wrap": wrap, "now": time.perf_counter_ns, "__name__": "bench"}
    exec(compile(source, "<bench>", "exec"), names)
    return names["loop"]


def measure(source, variants, slices, calls):
    """ns per call of the least slice of each variant, less the empty loop."""
    loops = {label: (make_loop(source, wrap), around) for label, (wrap, around) in variants.items()}
    loops["empty"] = make_loop(EMPTY, plain), NOTHING
    least = dict.fromkeys(loops, float("inf"))
    for _ in range(slices):
        for label, (loop, around) in loops.items():
            with around:
                spent = loop(range(calls))
            least[label] = min(least[label], spent / calls)
    empty = least.pop("empty")
    return {label: ns - empty for label, ns in least.items()}


def print_table(function, method):
    head = "{:28}" + "{:>10}{:>9}{:>9}" * 2
    row = "{:28}" + "{:10.1f}{:9.1f}{:>9}" * 2
    print(head.format("ns per call", "function", "added", "x ours", "method", "added", "x ours"))
    for label in function:
        cells = []
        for values in (function, method):
            added = values[label] - values["bare call"]
            ratio = added / (values["measured"] - values["bare call"])
            cells += [values[label], added, "" if label == "bare call" else f"{ratio:.2f}"]
        print(row.format(label, *cells))


def print_verdict(what, value, most):
    print(f"  {what:52} {value:6.3f}, at most {most:5.3f}: {'met' if value <= most else 'MISSED'}")


def print_verdicts(kind, values):
    added = {label: ns - values["bare call"] for label, ns in values.items()}
    print(f"targets, {kind}:")
    print_verdict("added by measured / added by the closure", added["measured"] / added["closure, by hand"], 1 / 5)
    if "prometheus Summary.time()" in added:
        share = added["measured"] / added["prometheus Summary.time()"]
        print_verdict("added by measured / added by Summary.time()", share, 1 / 25)
    print_verdict("whole call, measured / floor", values["measured"] / values["floor"], 1.5)
    off = added["measured, switched off"] - added["floor without clock"]
    print_verdict("ns, measured switched off - floor without clock", off, 3)


def main(slices: int = 200, calls: int = 2_000) -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Python {version}, clock {codetimer.clock_info().source}: least of {slices} slices of {calls:,} calls")
    variants = make_variants()
    gc.collect()
    gc.disable()
    function = measure(FUNCTION, variants, slices, calls)
    method = measure(METHOD, variants, slices, calls)
    gc.enable()
    print_table(function, method)
    print_verdicts("function", function)
    print_verdicts("method", method)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
