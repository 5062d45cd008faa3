# SPDX-License-Identifier: MIT
"""Three workers that sleep a random time. Two are measured; the third is switched on from another terminal.

    python examples/workers.py [SECONDS]
    codetimer top                              # in another terminal: first and second
    codetimer enable PID "*.third"             # now the third too

Each worker adds up for itself how long its calls take, so that what codetimer shows can be compared with the truth.
"""

import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import codetimer


@codetimer.measured(help="sleeps 2 to 6 ms")
def first() -> None:
    time.sleep(random.uniform(0.002, 0.006))


@codetimer.measured(help="sleeps 5 to 15 ms")
def second() -> None:
    time.sleep(random.uniform(0.005, 0.015))


@codetimer.measured(help="sleeps 10 to 30 ms; measured when it is switched on")
def third() -> None:
    time.sleep(random.uniform(0.010, 0.030))


def work(job, until, truth) -> None:
    calls, total = 0, 0
    while time.monotonic() < until:
        start = time.perf_counter_ns()
        job()
        total += time.perf_counter_ns() - start
        calls += 1
    truth[job.__name__] = (calls, total)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    codetimer.configure(members="*.first; *.second")
    print(f'process {os.getpid()}: try  codetimer top  and  codetimer enable {os.getpid()} "*.third"', flush=True)
    truth: dict[str, tuple[int, int]] = {}
    until = time.monotonic() + seconds
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda job: work(job, until, truth), (first, second, third)))
    for name, (calls, total) in sorted(truth.items()):
        print(f"{name}: {calls} calls, {total / calls / 1e6:.3f} ms each by its own count", flush=True)
    codetimer.report()


if __name__ == "__main__":
    main()
