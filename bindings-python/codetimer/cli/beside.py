# SPDX-License-Identifier: MIT
"""codetimer compare with files: the results of several processes, days or languages beside each other.

Results are matched by name. Each is compared with that of the first file: where both files tell what an empty call took
there, by what is left of each beyond its own. They were not measured in turns, and each sentence says so.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from codetimer.cli import NOTHING, OK, Refused, UsageError
from codetimer.cli.look import print_table
from codetimer.cli.native import Numbers, result_ratio
from codetimer.cli.text import duration, printable, symbols

SCHEMA = 1
NUMBERS = "per_call_ns", "interval_low_ns", "interval_high_ns", "net_low_ns", "net_high_ns"
WRITTEN_BY = "the files to compare are those of `codetimer time --json FILE`"


class File(NamedTuple):
    path: str
    about: str  # where it was made
    results: dict[str, Numbers]  # by name, see NUMBERS
    notes: dict[str, list[str]]  # by name: what makes its figures mean something else than they seem to


def run(args: argparse.Namespace, paths: Sequence[str]) -> int:
    for option, given in _measuring(args):
        if given:
            raise UsageError(f"{option} is for statements: files are compared as they are")
    files, names = [read(path) for path in paths], labels(paths)
    rows = match(files)
    if not rows:
        found = "; ".join(f"{file.path}: {', '.join(file.results)}" for file in files)
        raise Refused(f"the files have no result of the same name ({found}); --name gives results one")
    for file, name in zip(files, names, strict=True):
        print(f"{printable(name, symbols(sys.stdout).encoding)}: {file.about}")
    print()
    _print_table(args, rows, names)
    sentences = [_sentence(row, at, name, names) for row in rows for at, name in enumerate(names) if at > 0]
    print("\n" + "\n".join(sentences))
    _print_notes(rows, files, names)
    return OK if any(": not compared" not in sentence for sentence in sentences) else NOTHING


def _measuring(args: argparse.Namespace) -> list[tuple[str, Any]]:
    return [
        ("-s", args.setup), ("-t", args.budget is not None), ("--gc-time", args.gc_time), ("--memory", args.memory),
        ("--priority", args.priority), ("--cpu", args.cpu is not None), ("--json", args.json is not None),
        ("--format", args.format != "text"),
    ]  # fmt: skip


# ---- reading ----


def read(path: str) -> File:
    """Raises Refused for what is no file of ours, with what it is."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except UnicodeDecodeError:
        raise Refused(f"{path} is no text file; {WRITTEN_BY}") from None
    return File(path, *_take(path, _parse(path, text)))


def _parse(path: str, text: str) -> dict[str, Any]:
    if not text.strip():
        raise Refused(f"{path} is empty: it was never written, or its disk was full; measure again")
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        cut_off = isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip()) - 1
        what = "ends in the middle: it was cut off" if cut_off else f"is no JSON ({error})"
        raise Refused(f"{path} {what}; {WRITTEN_BY}, whole") from None
    if not isinstance(document, dict):
        raise Refused(f"{path} holds a JSON {type(document).__name__}, no object; {WRITTEN_BY}")
    return document


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _take(path: str, document: dict[str, Any]) -> tuple[str, dict[str, Numbers], dict[str, list[str]]]:
    _check_schema(path, document)
    results = document.get("results")
    if not isinstance(results, list) or not results:
        raise Refused(f"{path} has no results")
    runs: dict[str, list[Numbers]] = {}
    notes: dict[str, list[str]] = {}
    for at, result in enumerate(results):
        if not isinstance(result, dict) or not isinstance(result.get("name"), str):
            raise Refused(f"{path}: result {at + 1} has no name")
        runs.setdefault(result["name"], []).append(_numbers(path, result))
        notes.setdefault(result["name"], []).extend(_notes(path, result))
    about = [document.get(field) for field in ("host", "machine", "date")]
    taken = {name: merge(same) for name, same in runs.items()}
    return ", ".join(printable(word) for word in about if isinstance(word, str)), taken, notes


def _numbers(path: str, result: dict[str, Any]) -> Numbers:
    try:
        numbers = tuple(_number(path, result, field) for field in NUMBERS)
    except OverflowError:
        raise Refused(f"{path}: a number of {result['name']!r} is too large for one; was it edited?") from None
    for at in (1, 3):
        low, high = numbers[at : at + 2]
        if low is not None and high is not None and low > high:
            raise Refused(f"{path}: {NUMBERS[at]} of {result['name']!r} is above {NUMBERS[at + 1]}; was it edited?")
    per_call, low, high = numbers[:3]
    if per_call is not None and not (low or 0) <= per_call <= (math.inf if high is None else high):
        interval = f"{'0' if low is None else low} to {'any' if high is None else high}"
        raise Refused(
            f"{path}: per_call_ns of {result['name']!r} is {per_call}, outside of its interval, {interval}; "
            "was it edited?"
        )
    return numbers


def _notes(path: str, result: dict[str, Any]) -> list[str]:
    interrupted, notes = result.get("interrupted"), result.get("notes")
    notes = [] if notes is None else notes
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise Refused(f"{path}: notes of {result['name']!r} is no list of texts; was it edited?")
    if interrupted is None:
        return notes
    if not isinstance(interrupted, str):
        raise Refused(f"{path}: interrupted of {result['name']!r} is {interrupted!r}, no text; was it edited?")
    return [f"ended early ({interrupted})", *notes]


def _check_schema(path: str, document: dict[str, Any]) -> None:
    schema = document.get("codetimer")
    if schema == SCHEMA and not isinstance(schema, bool):
        return
    if schema is None and "benchmarks" in document:
        raise Refused(f"{path} is a file for pyperf, which compares it by `pyperf compare_to`; {WRITTEN_BY}")
    if schema is None:
        raise Refused(f'{path} was not written by codetimer: it has no "codetimer"; {WRITTEN_BY}')
    if isinstance(schema, int) and schema > SCHEMA:
        version = document.get("version")
        raise Refused(
            f"{path} has schema {schema}, of codetimer {version}, which is newer: this one reads schema {SCHEMA}; "
            "compare with that version, or measure again"
        )
    raise Refused(f"{path} has schema {schema!r}, which is no longer read: this one reads {SCHEMA}; measure again")


def _number(path: str, result: dict[str, Any], field: str) -> float | None:
    value = result.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise Refused(f"{path}: {field} of {result['name']!r} is {value!r}, no number from 0 on; was it edited?")
    return float(value)


# ---- several runs of one thing ----


def merge(runs: Sequence[Numbers]) -> Numbers:
    """The median of their times, within an interval that holds all of theirs."""
    merged: list[float | None] = []
    choices: list[Callable[[list[float]], float]] = [statistics.median, min, max, min, max]
    for at, choose in enumerate(choices):
        values = [value for value in (run[at] for run in runs) if value is not None]
        merged.append(choose(values) if len(values) == len(runs) else None)
    return tuple(merged)


# ---- matching ----


class Row(NamedTuple):
    name: str
    results: list[Numbers | None]  # one for each file; None: it has none of this name


def match(files: Sequence[File]) -> list[Row]:
    """By name; files with a single result each are about the same thing whatever it is called there."""
    if all(len(file.results) == 1 for file in files):
        names = dict.fromkeys(name for file in files for name in file.results)
        return [Row(" / ".join(names), [next(iter(file.results.values())) for file in files])]
    rows = [Row(name, [file.results.get(name) for file in files]) for name in files[0].results]
    return [row for row in rows if any(each is not None for each in row.results[1:])]


def labels(paths: Sequence[str]) -> list[str]:
    """What files are called: without their folders where that is enough."""
    short = [os.path.basename(path).removesuffix(".json") for path in paths]
    return short if len(set(short)) == len(paths) else list(paths)


# ---- printing ----


def _print_table(args: argparse.Namespace, rows: Sequence[Row], files: Sequence[str]) -> None:
    titles = ["Name", *(title for file in files for title in (file, "Net"))]
    print_table(titles, [[row.name, *_cells(args, row)] for row in rows], left={"Name"})


def _cells(args: argparse.Namespace, row: Row) -> list[str]:
    signs = symbols(sys.stdout)
    cells = []
    for result in row.results:
        per_call, _, _, net_low, net_high = result or (None,) * len(NUMBERS)
        cells.append(signs.dash if per_call is None else duration_in(args.unit, per_call, signs.micro))
        net = [duration_in(args.unit, each, signs.micro) for each in (net_low, net_high) if each is not None]
        cells.append(" to ".join(net) if len(net) == 2 else signs.dash)
    return cells


def duration_in(unit: str | None, ns: float, micro: str) -> str:
    if unit is None:
        return duration(ns, micro)
    name, size = {"nsec": ("ns", 1.0), "usec": (f"{micro}s", 1e3), "msec": ("ms", 1e6), "sec": ("s", 1e9)}[unit]
    return f"{ns / size:.4g} {name}"


def _sentence(row: Row, at: int, file: str, files: Sequence[str]) -> str:
    """On the result of one file beside that of the first. The core says it."""
    one, other = row.results[at], row.results[0]
    signs = symbols(sys.stdout)
    start = f"{printable(row.name, signs.encoding)}: "
    if one is None or other is None:
        return f"{start}not compared: it is not in {file if one is None else files[0]}"
    for net in (True, False):
        found = result_ratio(one, other, net, file, files[0], signs.dash == "-", False)
        if found is None or (net and found[0].ratio is None):
            continue
        with_calls = "; with their calls, since an empty one is not known of both, or all that there is"
        without = "" if net or found[0].ratio is None else with_calls
        return start + found[1] + without
    return f"{start}not compared: of fewer than 6 batches there is no interval; measure for longer"


def _print_notes(rows: Sequence[Row], files: Sequence[File], names: Sequence[str]) -> None:
    """Of the results that were compared, each once. A result may have another name in each file."""
    encoding = symbols(sys.stdout).encoding
    single = all(len(file.results) == 1 for file in files)
    notes: dict[str, None] = {}
    for row in rows:
        for file, name in zip(files, names, strict=True):
            for note in file.notes.get(next(iter(file.results)) if single else row.name, []):
                notes[f"Note: {name}, {row.name}: {note}"] = None
    if notes:
        print("\n" + "\n".join(printable(note, encoding) for note in notes))
