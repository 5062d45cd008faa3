# SPDX-License-Identifier: MIT
"""What the hooks of the memory pass cost per allocator call: the same calls in the run, without them, and in the pass
that follows it. The least of each counts. Prints a table; asserts nothing.

    python tests/python/bench_memory.py [rounds]
"""

from __future__ import annotations

import collections
import itertools
import platform
import sys
import time

import codetimer

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
MADE = 5000


def measure(function, arguments):
    """Nanoseconds per allocator call without and with the hooks: each call of function makes a block and drops it."""
    least = [float("inf"), float("inf")]
    calls = 0

    def body():
        nonlocal calls
        work = itertools.starmap(function, itertools.repeat(arguments, MADE))
        start = time.perf_counter_ns()
        collections.deque(work, maxlen=0)
        elapsed = time.perf_counter_ns() - start
        place = 0 if calls == 0 else 1
        least[place] = min(least[place], elapsed)
        calls += 1

    memory = None
    for _ in range(ROUNDS):
        for _ in range(30):
            calls = 0
            codetimer.time("", 1, body)
        calls = 0
        memory = codetimer.time("", 1, body, memory=True).memory
    requests = (memory.allocations + memory.reallocations + memory.frees) / memory.calls
    return [nanoseconds / requests for nanoseconds in least]


print(
    f"{'Python ' + platform.python_version() + ', ns per allocator call':40} {'without':>10} {'with':>10} {'hook':>10}"
)
for name, function, arguments in [
    ("object()", object, ()),
    ("bytes(100)", bytes, (100,)),
    ("bytes(2000)", bytes, (2000,)),
]:
    without, hooked = measure(function, arguments)
    print(f"{name:40} {without:10.2f} {hooked:10.2f} {hooked - without:10.2f}")
