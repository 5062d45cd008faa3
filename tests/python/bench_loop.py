# SPDX-License-Identifier: MIT
"""What the loop of codetimer.time costs, beside timeit's, over the same callables. A table; nothing is asserted.

Both run in this process, slice by slice in turn, so that the load of the machine hits both alike; the least slice of
each counts. Raw nanoseconds per call: the call itself is in both. timeit has the collector off, so both run without it.

    python tests/python/bench_loop.py [slices] [calls per slice]
"""

import gc
import sys
import timeit

import codetimer


def empty() -> None:
    pass


def least(fn, slices: int, calls: int) -> tuple[float, float]:
    """ns per call of the least slice: codetimer, timeit."""
    timer = timeit.Timer(fn)
    ours = theirs = float("inf")
    for _ in range(slices):
        ours = min(ours, codetimer.time("", calls, fn).elapsed_ns / calls)
        theirs = min(theirs, timer.timeit(calls) * 1e9 / calls)
    return ours, theirs


def main(slices: int = 200, calls: int = 20_000) -> None:
    gc.disable()
    version = ".".join(map(str, sys.version_info[:3]))
    for label, fn in (
        ("empty C function", [].copy),
        ("empty C function, no result", {}.clear),
        ("empty Python function", empty),
    ):
        ours, theirs = least(fn, slices, calls)
        print(
            f"Python {version:8} {label:28} time {ours:6.2f} ns   timeit {theirs:6.2f} ns   ratio {ours / theirs:.2f}"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
