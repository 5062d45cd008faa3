# SPDX-License-Identifier: MIT
"""What is reported of a coroutine, an async generator and a generator that take 50 ms and hardly run, by codetimer, by
hand and by other tools; and what measuring them costs.

The first table is of one call each. The costs are those of the least of many slices, all in this process in turn, so
that the load of the machine hits all alike, less those of the bare one. "async closure" is what one writes by hand to
time an await: it knows no active time, no generator and no cancellation. Nothing is asserted; tools that are not
installed (requirements-bench.txt) are left out.

    python tests/python/bench_async.py [slices] [calls per slice]
"""

import asyncio
import functools
import gc
import importlib
import sys
import time
import types

import codetimer

WAIT_S = 0.05


# ---- what is reported ----


async def coroutine():
    await asyncio.sleep(WAIT_S)


async def async_generator():
    for i in range(5):
        await asyncio.sleep(WAIT_S / 5)
        yield i


def generator():
    yield from range(5)


async def use(function):
    made = function()
    if hasattr(made, "__aiter__"):
        async for _ in made:
            pass
    elif hasattr(made, "__next__"):
        for _ in made:
            time.sleep(WAIT_S / 5)  # somebody else's time
    else:
        await made


def by_closure(function):
    reported = []

    @functools.wraps(function)
    def wrapper(*args):
        start = time.perf_counter_ns()
        try:
            return function(*args)
        finally:
            reported.append(time.perf_counter_ns() - start)

    return wrapper, lambda: reported[0] / 1e6


def by_codetimer(value):
    def decorate(function):
        made = codetimer.measured(function, name=f"bench.{value}.{function.__name__}")
        return made, lambda: getattr(codetimer.counters[f"bench.{value}.{function.__name__}"], value) / 1e6

    return decorate


def by_prometheus(function):
    module = importlib.import_module("prometheus_client")
    registry = module.CollectorRegistry()
    summary = module.Summary(f"bench_{function.__name__}_seconds", "bench", registry=registry)
    name = f"bench_{function.__name__}_seconds_sum"
    return summary.time()(function), lambda: registry.get_sample_value(name) * 1e3


def by_codetiming(function):
    timer = importlib.import_module("codetiming").Timer(name=f"bench.{function.__name__}", logger=None)
    return timer(function), lambda: timer.last * 1e3


TOOLS = {
    "codetimer, elapsed": by_codetimer("average_ns"),
    "codetimer, active": by_codetimer("active_average_ns"),
    "closure, by hand": by_closure,
    "prometheus Summary.time()": by_prometheus,
    "codetiming.Timer": by_codetiming,
}
FUNCTIONS = coroutine, async_generator, generator


def report():
    print("ms reported, of 50 ms".ljust(28) + "".join(f"{fn.__name__:>17}" for fn in FUNCTIONS))
    rows = {}
    for tool, decorate in TOOLS.items():
        try:
            rows[tool] = [reported(decorate, fn) for fn in FUNCTIONS]
        except ImportError as error:
            print(f"{tool:28} {error.name} is not installed here")
            continue
        print(f"{tool:28}" + "".join(f"{value:17.3f}" for value in rows[tool]))
    for i, fn in enumerate(FUNCTIONS):
        elapsed, active = rows["codetimer, elapsed"][i], rows["codetimer, active"][i]
        met = abs(elapsed - 50) < 10 and active < 5
        print(f"  {fn.__name__}: elapsed about 50 ms, active under 5 ms: {'met' if met else 'MISSED'}")


def reported(decorate, function):
    made, read = decorate(function)
    asyncio.run(use(made))
    return read()


# ---- what it costs ----

AWAIT = """
async def f():
    pass
f = wrap(f)
async def run(calls, f=f, now=now):
    start = now()
    for _ in calls:
        await f()
    return now() - start
"""

SUSPENDED = """
async def f():
    await pause()
f = wrap(f)
async def run(calls, f=f, now=now):
    start = now()
    for _ in calls:
        await f()
    return now() - start
"""

GENERATOR = """
def f():
    yield 1
    yield 2
    yield 3
f = wrap(f)
async def run(calls, f=f, now=now):
    start = now()
    for _ in calls:
        for _ in f():
            pass
    return now() - start
"""

STREAM = """
async def f():
    yield 1
    yield 2
    yield 3
f = wrap(f)
async def run(calls, f=f, now=now):
    start = now()
    for _ in calls:
        async for _ in f():
            pass
    return now() - start
"""

EMPTY = """
async def run(calls, f=None, now=now):
    start = now()
    for _ in calls:
        pass
    return now() - start
"""

KINDS = {
    "await": AWAIT,
    "await, one suspension": SUSPENDED,
    "generator of 3": GENERATOR,
    "async generator of 3": STREAM,
}


@types.coroutine
def pause():
    yield


def bare(function):
    return function


def measured(function):
    return codetimer.measured(function, name=f"bench.cost.{id(function)}")


def switched_off(function):
    name = f"bench.off.{id(function)}"
    made = codetimer.measured(function, name=name)
    codetimer.counters[name].remove()
    return made


def closure(function):
    count = total = 0
    now = time.perf_counter_ns

    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        nonlocal count, total
        start = now()
        try:
            return await function(*args, **kwargs)
        finally:
            total += now() - start
            count += 1

    return wrapper


def make(source, wrap):
    names = {"wrap": wrap, "now": time.perf_counter_ns, "pause": pause, "__name__": "bench"}
    exec(compile(source, "<bench>", "exec"), names)
    return names["run"]


def drive(running):
    """A loop that resumes at once."""
    try:
        while True:
            running.send(None)
    except StopIteration as stop:
        return stop.value


def costs(slices, calls):
    wraps = {"bare": bare, "measured": measured, "switched off": switched_off, "async closure": closure}
    print(f"{'ns added to a call':28}{'bare':>10}" + "".join(f"{name:>15}" for name in list(wraps)[1:]))
    for kind, source in KINDS.items():
        runs = {name: make(source, wrap) for name, wrap in wraps.items() if name != "async closure" or "await" in kind}
        runs["empty"] = make(EMPTY, bare)
        least = dict.fromkeys(runs, float("inf"))
        for _ in range(slices):
            for name, run in runs.items():
                least[name] = min(least[name], drive(run(range(calls))) / calls)
        cells = [f"{least[name] - least['bare']:15.1f}" if name in least else f"{'—':>15}" for name in list(wraps)[1:]]
        print(f"{kind:28}{least['bare'] - least['empty']:10.1f}" + "".join(cells))


def main(slices: int = 200, calls: int = 1_000) -> None:
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"Python {version}, clock {codetimer.clock_info().source}")
    report()
    gc.collect()
    gc.disable()
    costs(slices, calls)
    gc.enable()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
