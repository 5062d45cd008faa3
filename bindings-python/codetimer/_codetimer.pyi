# SPDX-License-Identifier: MIT
# The C extension. Its documentation is in the docstrings; import from codetimer, not from here.

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, Protocol, SupportsFloat, SupportsIndex, TypeAlias, TypeVar, final, overload

from _typeshed import structseq
from typing_extensions import Never

__version__: Final[str]

_T = TypeVar("_T")
_OnChange = TypeVar("_OnChange", bound=Callable[["Settings"], object])

_CyclesKind: TypeAlias = Literal["core", "reference", "none"]
_Seconds: TypeAlias = SupportsFloat | SupportsIndex
_Level: TypeAlias = Literal["high", "highest", "realtime"]

class _Writer(Protocol):
    def write(self, text: str, /) -> object: ...

# What ends a with statement.
class _Exit:
    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...

@final
class ClockInfo(structseq[Any], tuple[str, float, float, float | None, str]):
    __match_args__: Final = ("source", "resolution_ns", "read_cost_ns", "frequency_hz", "reason")
    source: Final[str]
    resolution_ns: Final[float]
    read_cost_ns: Final[float]
    frequency_hz: Final[float | None]
    reason: Final[str]

@final
class ThreadCycles(structseq[Any], tuple[int | None, str, str, str]):
    __match_args__: Final = ("value", "kind", "source", "reason")
    value: Final[int | None]
    kind: Final[_CyclesKind]
    source: Final[str]
    reason: Final[str]

@final
class Priority(structseq[Any], tuple[str | None, str, int | None, str, bool, str, str, str, str]):
    __match_args__: Final = (
        "requested", "status", "cpu", "cpu_status", "restored", "previous", "effective", "scope", "reason",
    )  # fmt: skip
    requested: Final[_Level | None]
    status: Final[str]
    cpu: Final[int | None]
    cpu_status: Final[str]
    restored: Final[bool]
    previous: Final[str]
    effective: Final[str]
    scope: Final[str]
    reason: Final[str]

@final
class Environment(_Exit):
    priority: Final[Priority]
    clock: Final[ClockInfo]
    cycles: Final[ThreadCycles]
    def restore(self) -> bool: ...
    def __enter__(self) -> Environment: ...

@final
class Usage(structseq[Any], tuple[int | None, int | None, int | None, int | None, int | None, int | None, str]):
    __match_args__: Final = (
        "cpu_ns", "switches", "preemptions", "minor_faults", "major_faults", "migrations", "reason",
    )  # fmt: skip
    cpu_ns: Final[int | None]
    switches: Final[int | None]
    preemptions: Final[int | None]
    minor_faults: Final[int | None]
    major_faults: Final[int | None]
    migrations: Final[int | None]
    reason: Final[str]

@final
class GCTime(structseq[Any], tuple[int, int, int]):
    __match_args__: Final = ("pauses", "total_ns", "longest_ns")
    pauses: Final[int]
    total_ns: Final[int]
    longest_ns: Final[int]

@final
class Memory(structseq[Any], tuple[int, int | None, int | None, int | None, int | None, int | None, str | None]):
    __match_args__: Final = (
        "calls", "allocations", "reallocations", "frees", "allocated_bytes", "peak_bytes", "reason",
    )  # fmt: skip
    calls: Final[int]
    allocations: Final[int | None]
    reallocations: Final[int | None]
    frees: Final[int | None]
    allocated_bytes: Final[int | None]
    peak_bytes: Final[int | None]
    reason: Final[str | None]

@final
class Overhead(structseq[Any], tuple[str, float, float]):
    __match_args__: Final = ("label", "low_ns", "high_ns")
    label: Final[str]
    low_ns: Final[float]
    high_ns: Final[float]

@final
class Ratio(
    structseq[Any], tuple[float | None, float | None, float | None, float | None, bool, float | None, str | None]
):
    __match_args__: Final = ("ratio", "low", "high", "confidence", "different", "resolved", "reason")
    ratio: Final[float | None]
    low: Final[float | None]
    high: Final[float | None]
    confidence: Final[float | None]
    different: Final[bool]
    resolved: Final[float | None]
    reason: Final[str | None]

@final
class Result:
    name: Final[str]
    n: Final[int]
    calls: Final[int]
    elapsed_ns: Final[int]
    automatic: Final[bool]
    budget_ns: Final[int | None]
    warmup_calls: Final[int]
    warmup_ns: Final[int]
    per_call_ns: Final[float | None]
    interval_low_ns: Final[float | None]
    interval_high_ns: Final[float | None]
    min_ns: Final[float | None]
    q1_ns: Final[float | None]
    q3_ns: Final[float | None]
    max_ns: Final[float | None]
    mad_ns: Final[float | None]
    outliers_mild: Final[int | None]
    outliers_severe: Final[int | None]
    net_low_ns: Final[float | None]
    net_high_ns: Final[float | None]
    overheads: Final[tuple[Overhead, ...]]
    batches_ns: Final[tuple[int, ...]]
    batches_calls: Final[tuple[int, ...]]
    cycles: Final[int | None]
    cycles_kind: Final[_CyclesKind]
    cycles_source: Final[str]
    cycles_reason: Final[str]
    usage: Final[Usage]
    gc_collections: Final[tuple[int, ...]]
    gc_labels: Final[tuple[str, ...]]
    gc_time: Final[GCTime | None]
    memory: Final[Memory | None]
    interrupted: Final[str | None]
    notes: Final[tuple[str, ...]]
    priority: Final[str]
    clock: Final[str]
    resolution_ns: Final[float | None]
    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...

@final
class Comparison:
    baseline: Final[str]
    results: Final[dict[str, Result]]
    ratios: Final[dict[str, Ratio]]
    twin: Final[Ratio]
    resolution: Final[float | None]
    verdict: Final[str]
    rounds: Final[int]
    rounds_tied: Final[int]
    rounds_disturbed: Final[int]
    budget_ns: Final[int]
    elapsed_ns: Final[int]
    interrupted: Final[str | None]
    notes: Final[tuple[str, ...]]
    def ratio(self, a: str, b: str | None = None) -> float | None: ...
    def interval(self, a: str, b: str | None = None) -> tuple[float, float] | None: ...
    def different(self, a: str, b: str | None = None) -> bool: ...
    def verdict_of(self, a: str, b: str | None = None) -> str: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_json(self) -> str: ...

class _Values:
    """What Sample and Counter have in common."""

    key: Final[str]
    category: Final[str]
    member: Final[str]
    listed: Final[bool]
    enabled: Final[bool]
    generation: Final[int]
    calls: Final[int]
    errors: Final[int]
    cancelled: Final[int]
    total_ns: Final[int]
    active_ns: Final[int | None]
    active_unknown: Final[int]
    active_reason: Final[str | None]
    average_ns: Final[float | None]
    active_average_ns: Final[float | None]
    min_ns: Final[int | None]
    max_ns: Final[int | None]
    in_flight: Final[int]
    anomalies: Final[int]
    unclean: Final[bool]
    def percentile(self, q: SupportsFloat | SupportsIndex, /) -> float | None: ...

@final
class Sample(_Values):
    time_ns: Final[int]
    buckets: Final[tuple[int, ...]]
    def difference(self, earlier: Sample, /) -> Sample: ...
    def __sub__(self, earlier: Sample, /) -> Sample: ...

@final
class Counter(_Values):
    def sample(self) -> Sample: ...
    def record(self, duration_ns: SupportsIndex, *, error: bool = False) -> None: ...
    def reset(self) -> bool: ...
    def remove(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Counters(Mapping[str, Counter]):
    capacity: Final[int]
    refused: Final[int]
    last_refused: Final[str | None]
    def __getitem__(self, key: str, /) -> Counter: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    @overload
    def get(self, key: str, /, default: None = None) -> Counter | None: ...
    @overload
    def get(self, key: str, /, default: Counter | _T) -> Counter | _T: ...

@final
class timer(_Exit):
    def __new__(cls, name: str, *, category: str | None = None, help: str | None = None) -> timer: ...
    name: Final[str]
    counter: Final[Counter | None]
    __aenter__: Final[Never]
    def __enter__(self) -> timer: ...

@final
class Process(
    structseq[Any],
    tuple[
        str, str, int | None, int | None, int | None, str | None, str | None, str | None, int | None, int | None,
        str | None, int | None, str,
    ],
):  # fmt: skip
    __match_args__: Final = (
        "path", "state", "pid", "start_time", "uid", "program", "host", "clock", "counters", "refused",
        "last_refused", "heartbeat_age_ns", "reason",
    )  # fmt: skip
    path: Final[str]
    state: Final[Literal["live", "dead", "unusable"]]
    pid: Final[int | None]
    start_time: Final[int | None]
    uid: Final[int | None]
    program: Final[str | None]
    host: Final[str | None]
    clock: Final[str | None]
    counters: Final[int | None]
    refused: Final[int | None]
    last_refused: Final[str | None]
    heartbeat_age_ns: Final[int | None]
    reason: Final[str]

@final
class CounterInfo(structseq[Any], tuple[str, bool, str]):
    __match_args__: Final = ("key", "enabled", "help")
    key: Final[str]
    enabled: Final[bool]
    help: Final[str]

@final
class SegmentInfo(structseq[Any], tuple[bool, str | None, str]):
    __match_args__: Final = ("published", "path", "reason")
    published: Final[bool]
    path: Final[str | None]
    reason: Final[str]

@final
class View(_Exit):
    process: Final[Process]
    segments: Final[tuple[Process, ...]]
    counters: Final[dict[str, CounterInfo]]
    members: Final[str | None]
    acknowledged: Final[bool]
    busy: Final[frozenset[str]]
    closed: Final[bool]
    def sample(self, buckets: bool = True) -> dict[str, Sample]: ...
    def enable(self, members: str, /) -> None: ...
    def disable(self, members: str, /) -> None: ...
    def set_members(self, members: str | None, /) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> View: ...

@final
class MembersPattern(structseq[Any], tuple[str, int, str | None]):
    __match_args__: Final = ("text", "position", "problem")
    text: Final[str]
    position: Final[int]
    problem: Final[str | None]

@final
class Members:
    def __new__(cls, text: str | None) -> Members: ...
    text: Final[str | None]
    patterns: Final[tuple[MembersPattern, ...]]
    def selects(self, member: str, /) -> bool: ...

# What configure(provider=) takes. One that also has a method subscribe(changed), which it is given a function to call
# when its list may be another one, is asked only then.
class _Provider(Protocol):
    def members(self) -> str | None: ...

@final
class Settings:
    members: Final[str | None]
    source: Final[str | None]
    matches: Final[list[tuple[str, int, str | None]]]
    @property
    def file(self) -> str | None: ...
    @file.setter
    def file(self, path: str | PathLike[str] | None) -> None: ...
    @property
    def provider(self) -> _Provider | None: ...
    @provider.setter
    def provider(self, provider: _Provider | None) -> None: ...
    problem: Final[str | None]
    def on_change(self, callback: _OnChange, /) -> _OnChange: ...
    def remove_on_change(self, callback: Callable[[Settings], object], /) -> bool: ...
    def reload(self) -> None: ...

counters: Final[Counters]

@overload
def measured(
    fn: _T, /, *, name: str | None = None, category: str | None = None, help: str | None = None
) -> _T: ...
@overload
def measured(
    *, name: str | None = None, category: str | None = None, help: str | None = None
) -> Callable[[_T], _T]: ...
def time(
    name: str,
    n: SupportsIndex | None = None,
    fn: Callable[[], object] = ...,
    *,
    file: _Writer | None = None,
    budget: _Seconds | None = None,
    gc_time: bool = False,
    memory: bool = False,
    verbose: bool = False,
) -> Result: ...
def compare(
    candidates: Mapping[str, Callable[[], object]],
    *,
    baseline: str | None = None,
    budget: _Seconds | None = None,
    file: _Writer | None = None,
    gc_time: bool = False,
    memory: bool = False,
    verbose: bool = False,
) -> Comparison: ...
def initialize(priority: _Level | None = "high", cpu: SupportsIndex | None = None) -> Environment: ...
def last_result() -> Result | None: ...
def last_comparison() -> Comparison | None: ...
def clock_info() -> ClockInfo: ...
def thread_cycles() -> ThreadCycles: ...
def now_ns() -> int: ...
def poll() -> int: ...
def report(file: _Writer | None = None) -> None: ...
def trace_increments(on: bool, /) -> bool: ...
def processes(directory: str | PathLike[str] | None = None) -> list[Process]: ...
def attach(pid: SupportsIndex | Process, *, directory: str | PathLike[str] | None = None) -> View: ...
def reap(path: str | PathLike[str], /) -> None: ...
def segment_info() -> SegmentInfo: ...
def configure(
    members: str | None = None, file: str | PathLike[str] | None = None, provider: _Provider | None = None
) -> Settings: ...
def _follow() -> int: ...
def _is_main() -> bool: ...
def _provide(members: str | None, /) -> bool: ...
def _tell_unmatched() -> None: ...
def _monitoring_start(members: str | tuple[str | None, ...] | None, tool_name: str = ...) -> None: ...
def _monitoring_update() -> None: ...
def _monitoring_stop() -> None: ...
def _monitoring_info() -> dict[str, Any]: ...
