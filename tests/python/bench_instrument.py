# SPDX-License-Identifier: MIT
"""What codetimer.instrument costs by sys.monitoring (Python 3.12 and later): a call that is measured, beside the floor
(two callbacks in C that do nothing but read the clock, bench_monitoring_floor.c); a call that is switched off; code
that does not match, also where it raises.

Each variant has its own function and loop, so that the interpreter specialises each for itself. All run in this
process, slice by slice in turn, and what is to be off is off during its slices only; the least slice of each counts,
less that of an empty loop. A table and verdicts; nothing is asserted.

    python tests/python/bench_instrument.py [slices] [calls per slice]
"""

import gc
import sys
import time

import codetimer
from bench_measured import EMPTY, FUNCTION, METHOD, build_extension, plain, print_verdict
from codetimer import _codetimer

RAISE = """
def f():
    raise error
f = wrap(f)
def loop(calls, f=f, now=now):
    start = now()
    for _ in calls:
        try:
            f()
        except KeyError:
            pass
    return now() - start
"""

KEYWORDS = """
def f(a, b, c, d=0, e=0):
    pass
f = wrap(f)
def loop(calls, f=f, now=now):
    start = now()
    for _ in calls:
        f(1, 2, 3, d=4, e=5)
    return now() - start
"""

GENERATOR = """
def f():
    yield 1
    yield 2
    yield 3
f = wrap(f)
def loop(calls, f=f, now=now):
    start = now()
    for _ in calls:
        for _ in f():
            pass
    return now() - start
"""

FLOOR_TOOL = 4
KEEP = eval("lambda: None", {"__name__": "bench.on"})


class Floor:
    """Switches on two empty callbacks, for one function."""

    def __init__(self):
        module = build_extension("bench_monitoring_floor")
        events = sys.monitoring.events
        self.events = events.PY_START | events.PY_RETURN
        sys.monitoring.use_tool_id(FLOOR_TOOL, "floor")
        for event in (events.PY_START, events.PY_RETURN):
            sys.monitoring.register_callback(FLOOR_TOOL, event, module.Callback())

    def __call__(self, fn):
        sys.monitoring.set_local_events(FLOOR_TOOL, fn.__code__, self.events)
        return fn


def with_instrument():
    """Something is measured, so that the events of exceptions are on."""
    _codetimer._monitoring_start("bench.on.*;bench.off.*")
    KEEP()


def without_instrument():
    _codetimer._monitoring_stop()


def make_loop(source, wrap, module):
    names = {"wrap": wrap, "now": time.perf_counter_ns, "__name__": module, "error": KeyError("bench")}
    exec(compile(source, "<bench>", "exec"), names)
    return names["loop"]


BARE, UNMATCHED, OFF, ON, FLOOR = "bare call", "not matching", "switched off", "instrumented", "floor"
BARE_OFF = "bare call, the other"


def measure(source, floor, slices, calls):
    """ns per call of the least slice of each variant, less the empty loop. What is to cost nothing is compared with the
    same function while nothing is instrumented. The order switches as seldom as can be."""
    unmatched = make_loop(source, plain, "bench.none")
    off = make_loop(source, plain, "bench.off")
    variants = {
        BARE: (unmatched, False),
        BARE_OFF: (off, False),
        UNMATCHED: (unmatched, True),
        OFF: (off, True),
        FLOOR: (make_loop(source, floor, "bench.none"), True),
        ON: (make_loop(source, plain, "bench.on"), True),
        "empty": (make_loop(EMPTY, plain, "bench.none"), True),
    }
    least = dict.fromkeys(variants, float("inf"))
    was_on = None
    for _ in range(slices):
        for label, (loop, on) in variants.items():
            if on is not was_on:
                (with_instrument if on else without_instrument)()
                was_on = on
            loop(range(50))  # what was switched is noticed by the next call
            least[label] = min(least[label], loop(range(calls)) / calls)
    without_instrument()
    empty = least.pop("empty")
    return {label: ns - empty for label, ns in least.items()}


def print_table(columns):
    print("{:16}".format("ns per call") + "".join(f"{name:>12}" for name in columns))  # BARE_OFF is like BARE
    for label in (BARE, UNMATCHED, OFF, FLOOR, ON):
        print(f"{label:16}" + "".join(f"{values.get(label, float('nan')):12.1f}" for values in columns.values()))


def main(slices: int = 150, calls: int = 2_000) -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < (3, 12):
        print(f"Python {version} has no sys.monitoring: see bench_measured.py for what its functions cost")
        return
    print(f"Python {version}, clock {codetimer.clock_info().source}: least of {slices} slices of {calls:,} calls")
    codetimer.configure("!bench.off.*")
    floor = Floor()
    kinds = {"function": FUNCTION, "keywords": KEYWORDS, "method": METHOD, "raising": RAISE, "generator": GENERATOR}
    gc.collect()
    gc.disable()
    columns = {name: measure(source, floor, slices, calls) for name, source in kinds.items()}
    gc.enable()
    sys.monitoring.free_tool_id(FLOOR_TOOL)
    print_table(columns)
    for name in ("function", "keywords", "method"):
        values = columns[name]
        print(f"targets, {name}:")
        print_verdict("whole call, instrumented / floor", values[ON] / values[FLOOR], 1.5)
        print_verdict("ns, switched off - bare call", values[OFF] - values[BARE_OFF], 1)
        print_verdict("ns, not matching - bare call", values[UNMATCHED] - values[BARE], 1)
    raising = columns["raising"]
    print("targets, raising:")
    # The least that a callback in C does to it is 12 to 20 ns on the machine that this was written on.
    print_verdict("ns, an unwound frame, not matching - bare call", raising[UNMATCHED] - raising[BARE], 20)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
