# SPDX-License-Identifier: MIT
"""Three workers that sleep random times, for ever. A file says which of them are measured, and is edited meanwhile.
Each adds up for itself how long its calls take, so that what codetimer shows can be compared with the truth.

    python examples/workers.py [FILE]                     # FILE: examples/workers.members; Ctrl-C ends it
    codetimer top                                         # in another terminal: first and second
    sed -i s/second/third/ examples/workers.members       # within a second: first and third
    codetimer enable PID "*.second"                       # ... or without the file: now all of them
"""

import os
import random
import sys
import threading
import time

import codetimer


@codetimer.measured(help="sleeps 2 to 6 ms")
def first() -> None:
    time.sleep(random.uniform(0.002, 0.006))


@codetimer.measured(help="sleeps 5 to 15 ms")
def second() -> None:
    time.sleep(random.uniform(0.005, 0.015))


@codetimer.measured(help="sleeps 10 to 30 ms; measured when the file says so")
def third() -> None:
    time.sleep(random.uniform(0.010, 0.030))


def work(job, stop, truth) -> None:
    while not stop.is_set():
        start = time.perf_counter_ns()
        job()
        truth.append(time.perf_counter_ns() - start)


def main(file) -> None:
    codetimer.configure(file=file)
    print(f"process {os.getpid()}: see it by  codetimer top  and edit {file}", flush=True)
    stop, truth = threading.Event(), {job: [] for job in (first, second, third)}
    workers = [threading.Thread(target=work, args=(job, stop, truth[job])) for job in truth]
    for worker in workers:
        worker.start()
    try:
        workers[0].join()
    finally:  # Ctrl-C; there is no other end
        stop.set()
        list(map(threading.Thread.join, workers))
        for job, ns in truth.items():
            print(f"{job.__name__}: {len(ns)} calls, {sum(ns) / len(ns) / 1e6:.3f} ms each by its own count")
        codetimer.report()


if __name__ == "__main__":
    main(*sys.argv[1:] or [__file__.replace(".py", ".members")])
