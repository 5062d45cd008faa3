# SPDX-License-Identifier: MIT
"""codetimer enable, disable, members and reap: what changes other processes, or removes what is left of them.

Each says what it did: which counters match, which of them were switched, and whether the process itself has noticed.
Counters that are there are switched by this command; the process notices for those that it makes later.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

import codetimer
from codetimer import Members, View
from codetimer.cli import NOTHING, OK, UsageError, folder, process_id, tell
from codetimer.cli.patterns import on_one_line, parse
from codetimer.cli.text import printable, symbols

PATTERNS = """\
Patterns are separated by ';'; * stands for any characters, ? for one. They match members (module.function), not
categories."""
NAMED = 10  # counters that are named in a message
PATIENCE_S = 1.5


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    for command in ("enable", "disable"):
        _add(
            subparsers,
            command,
            help=f"switch counters of a process {'on' if command == 'enable' else 'off'}",
            description=f"Switch counters of a running process {'on' if command == 'enable' else 'off'}. {PATTERNS}",
        ).add_argument("pattern", metavar="PATTERN", help="which members")
    members = _add(
        subparsers,
        "members",
        help="show or set the members list of a process",
        description=f"Show the members list of a running process, or set it. {PATTERNS} !PATTERN excludes; the last "
        "pattern that matches decides; a list that begins with ! starts from all.",
    )
    members.add_argument("pattern", metavar="LIST", nargs="?", help="the new list")
    members.add_argument("--none", action="store_true", help="no list: all is measured")
    members.add_argument("--json", action="store_true", help="show as JSON")
    reap: argparse.ArgumentParser = subparsers.add_parser(
        "reap",
        help="delete what ended processes left behind",
        description="Delete the segments of processes that have ended.",
    )
    reap.add_argument("pid", metavar="PID", nargs="?", type=process_id, help="only of this process")
    reap.add_argument("--dir", metavar="FOLDER", type=folder, help="where to look; else where your processes publish")
    return reap


def _add(subparsers: Any, command: str, **words: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(command, **words)
    parser.add_argument("pid", metavar="PID", type=process_id, help="the process")
    parser.add_argument("--dir", metavar="FOLDER", type=folder, help="where to look; else where your processes publish")
    return parser


def run(args: argparse.Namespace) -> int:
    if args.command == "reap":
        return reap(args)
    if args.command == "members":
        return set_members(args) if args.none or args.pattern is not None else show_members(args)
    return switch(args)


# ---- enable, disable ----


def switch(args: argparse.Namespace) -> int:
    enable = args.command == "enable"
    members = parse(args.pattern)
    if any(pattern.text.startswith("!") for pattern in members.patterns):
        raise UsageError(f"{args.command} takes patterns without '!'; codetimer members sets a whole list")
    if not members.patterns:
        raise UsageError(f"{args.command} needs a pattern; * stands for all members")
    with codetimer.attach(args.pid, directory=args.dir) as view:
        before = view.counters
        (view.enable if enable else view.disable)(args.pattern)
        infos = view.counters
        matching = [key for key in infos if members.selects(key.partition("/")[2])]
        switched = [key for key in matching if key not in before or before[key].enabled != infos[key].enabled]
        _tell_switched(args, matching, switched)
        _tell_acknowledged(view)
    return OK if matching else NOTHING


def _tell_switched(args: argparse.Namespace, matching: list[str], switched: list[str]) -> None:
    pattern = printable(args.pattern, symbols(sys.stdout).encoding)
    done, on = f"{args.command}d", "on" if args.command == "enable" else "off"
    if not matching:
        tell(f"no counter of process {args.pid} matches {pattern}; those that it makes later and match will be {done}")
        return
    rest = len(matching) - len(switched)
    also = f"; {_counters(rest)} {'was' if rest == 1 else 'were'} {on} already" if rest else ""
    print(f"{_counters(len(switched))} {done}{_names(switched)}{also}")


def _names(keys: list[str]) -> str:
    if not keys:
        return ""
    shown = [printable(key, symbols(sys.stdout).encoding) for key in sorted(keys)[:NAMED]]
    return ": " + ", ".join(shown) + (f" and {len(keys) - NAMED} more" if len(keys) > NAMED else "")


def _counters(number: int) -> str:
    return "1 counter" if number == 1 else f"{number} counters"


def _tell_acknowledged(view: View) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not view.acknowledged and time.monotonic() < deadline:
        time.sleep(0.02)
    if view.acknowledged:
        print("the process has acknowledged")
    else:
        print("the process has not acknowledged yet: it does when it next measures; what is listed above is switched")


# ---- members ----


def set_members(args: argparse.Namespace) -> int:
    if args.none and args.pattern is not None:
        raise UsageError("give a list or --none, not both")
    if args.pattern is not None:
        parse(args.pattern)
    with codetimer.attach(args.pid, directory=args.dir) as view:
        view.set_members(args.pattern)
        infos = view.counters
        enabled = [key for key, info in infos.items() if info.enabled]
        print(f"{len(enabled)} of {_counters(len(infos))} enabled{_names(enabled)}")
        _tell_acknowledged(view)
    return OK


def show_members(args: argparse.Namespace) -> int:
    with codetimer.attach(args.pid, directory=args.dir) as view:
        text, acknowledged = view.members, view.acknowledged
        names = [key.partition("/")[2] for key in view.counters]
    matches = [(pattern.text, _hits(pattern.text, names), pattern.problem) for pattern in Members(text).patterns]
    if args.json:
        patterns = [{"pattern": pattern, "matches": hits, "problem": problem} for pattern, hits, problem in matches]
        print(json.dumps({"members": text, "acknowledged": acknowledged, "patterns": patterns}))
        return OK
    encoding = symbols(sys.stdout).encoding
    print("no members list: all is measured" if text is None else on_one_line(text, encoding))
    for pattern, hits, problem in matches:
        print(f"  {printable(pattern, encoding)}: {problem or _counters(hits)}")
    return OK


def _hits(pattern: str, names: list[str]) -> int:
    members = Members(pattern.removeprefix("!"))
    return sum(members.selects(name) for name in names)


# ---- reap ----


def reap(args: argparse.Namespace) -> int:
    dead = [
        process
        for process in codetimer.processes(args.dir)
        if process.state == "dead" and args.pid in (None, process.pid)
    ]
    refused = 0
    for process in dead:
        try:
            codetimer.reap(process.path)
        except FileNotFoundError:
            continue  # someone else was faster
        except OSError as error:
            refused += 1
            tell(f"{process.path}: {error.strerror}")
    if not dead:
        tell("nothing to reap: no ended process has left a segment here")
    else:
        print(f"{len(dead) - refused} deleted")
    return OK if dead and not refused else NOTHING
