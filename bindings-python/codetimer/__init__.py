# SPDX-License-Identifier: MIT
"""How long code takes, how many CPU cycles it costs, and what the garbage collector did meanwhile.

import codetimer
codetimer.initialize()
codetimer.time("String Concat", 100_000, lambda: s + "a")
"""

from codetimer._codetimer import (
    ClockInfo,
    Comparison,
    Counter,
    CounterInfo,
    Environment,
    GCTime,
    Members,
    MembersPattern,
    Memory,
    Overhead,
    Priority,
    Process,
    Ratio,
    Result,
    Sample,
    SegmentInfo,
    Settings,
    ThreadCycles,
    Usage,
    View,
    __version__,
    attach,
    clock_info,
    compare,
    configure,
    counters,
    initialize,
    last_comparison,
    last_result,
    measured,
    now_ns,
    poll,
    processes,
    reap,
    report,
    segment_info,
    thread_cycles,
    time,
    timer,
    trace_increments,
)

__all__ = [
    "ClockInfo",
    "Comparison",
    "Counter",
    "CounterInfo",
    "Environment",
    "GCTime",
    "Instrumented",
    "Members",
    "MembersPattern",
    "Memory",
    "Overhead",
    "Priority",
    "Process",
    "Ratio",
    "Result",
    "Sample",
    "SegmentInfo",
    "Settings",
    "ThreadCycles",
    "Usage",
    "View",
    "__version__",
    "attach",
    "clock_info",
    "compare",
    "configure",
    "counters",
    "initialize",
    "instrument",
    "last_comparison",
    "last_result",
    "measured",
    "now_ns",
    "poll",
    "processes",
    "reap",
    "report",
    "segment_info",
    "thread_cycles",
    "time",
    "timer",
    "trace_increments",
    "uninstrument",
]

# Imported when they are first asked for.
_LATER = {
    "Instrumented": "codetimer.instrumenting",
    "instrument": "codetimer.instrumenting",
    "uninstrument": "codetimer.instrumenting",
}


def __getattr__(name):  # type: ignore[no-untyped-def]
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value
