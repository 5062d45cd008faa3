# SPDX-License-Identifier: MIT
"""codetimer time: how long a statement takes, with the options of timeit.

The statement runs in a loop of its own code, not as a function that is called: what is measured is the statement and a
turn of that loop, and "Calls" are the times that it was executed.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NamedTuple

import codetimer
from codetimer import Result
from codetimer.cli import INTERRUPTED, NOTHING, OK, UsageError, tell
from codetimer.cli.native import print_report
from codetimer.cli.options import add_options, lines_of, long_options, prepared, whole
from codetimer.cli.progress import Progress
from codetimer.cli.saving import check_target, export, print_export, save
from codetimer.cli.statements import Broken, Nowhere, Source, empty_turn, name_of, tell_traceback

LARGEST_N = 2**63 - 1

DESCRIPTION = """\
Measure how long a statement takes, what the CPU did meanwhile, and what the garbage collector did.

Several STATEMENTs are lines of one text; without any it is "pass". The options are those of python -m timeit, and
python -m codetimer "x+1" does what codetimer time "x+1" does. They come before the first STATEMENT; "--" ends them.
"""
EPILOG = """\
how it differs from timeit:
  The garbage collector stays on, and what it does is reported. Per Call is the median of all batches, with the half
  width of its 95 % interval; -v shows the least, the quartiles and the most of them.
  "Calls" are executions of the statement. They include a turn of the loop around it, as with timeit; -v shows what an
  empty turn takes, and the net cost.
  -n is the number of executions of one run, not of each batch; -r makes more runs, each with its own setup.
  -p does not replace the clock: the CPU time of the thread is shown beside the time elapsed.

examples:
  codetimer time -s "text = 'sample'" "'s' in text"
  codetimer time -v -t 1 --memory "[i for i in range(100)]"
  codetimer time --json before.json -s "from shop import price" "price(7)"

exit codes: 0 done; 1 the statement failed, or a file could not be saved; 2 wrong usage; 130 ended by Ctrl-C, with a
report of what was measured until then
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "time", help="measure a statement, as timeit does", description=DESCRIPTION, epilog=EPILOG,
        usage="codetimer time [OPTION]... [STATEMENT]...",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "-n", "--number", metavar="N", type=_number, default=0,
        help="how often to execute the statement; 0, the default: as often as fits into the time to measure",
    )  # fmt: skip
    parser.add_argument(
        "-r", "--repeat", metavar="R", type=_repeat, default=1,
        help="how many runs to make (1), each with a report; a last line tells best, median and worst",
    )  # fmt: skip
    parser.add_argument("-p", "--process", action="store_true", help="also print the CPU time of the thread, per call")
    add_options(parser)
    parser.add_argument("--name", help="what to call the result; else the statement")
    parser.add_argument("statement", metavar="STATEMENT", nargs=argparse.REMAINDER, help="what to measure")
    parser.set_defaults(long_options=long_options(parser))
    return parser


def _number(text: str) -> int:
    return whole(text, 0, LARGEST_N, "number of executions")


def _repeat(text: str) -> int:
    return whole(text, 1, 1_000_000, "number of runs")


def run(args: argparse.Namespace) -> int:
    if args.number and args.budget is not None:
        raise UsageError("-t says how long to measure, -n how often: give one of them")
    check_target(args.json)
    setup, statement = "\n".join(args.setup), "\n".join(lines_of(args.statement, args.long_options))
    try:
        source = Source(setup, statement)
        with prepared(args):
            runs = Runs(args, source, name_of(statement) if args.name is None else args.name)
            code = runs.make_all()
    except Broken:
        return NOTHING
    return runs.finish(code)


class Outcome(NamedTuple):
    """Of one run."""

    result: Result | None
    error: BaseException | None


class Runs:
    """All runs of a statement."""

    def __init__(self, args: argparse.Namespace, source: Source, name: str) -> None:
        self._args, self._source, self._name = args, source, name
        self._results: list[Result] = []

    def make_all(self) -> int:
        empty = empty_turn()
        with Progress(self._name, self._args.repeat, self._args.unit) as progress:
            for _ in range(self._args.repeat):
                outcome = self._make(empty, progress)
                progress.clear()
                if outcome.result is not None:
                    self._results.append(outcome.result)
                    self._print([outcome.result])
                if isinstance(outcome.error, KeyboardInterrupt):
                    return INTERRUPTED
                if outcome.error is not None:
                    sys.stdout.flush()
                    tell_traceback(outcome.error)
                    return NOTHING
                progress.next_run()
        return OK

    def finish(self, code: int) -> int:
        """What there is to say of all runs, and the file."""
        args = self._args
        if args.format != "text":
            print_export(self._results, args.format)
        elif len(self._results) > 1:
            self._print(self._results)
        sys.stdout.flush()
        if args.json is not None and code == NOTHING:
            tell(f"{args.json} was not written, since the statement failed")
        elif args.json is not None:
            save(args.json, export(self._results, "json"))
        return code

    def _make(self, empty: tuple[float, float] | None, progress: Progress) -> Outcome:
        args, before = self._args, codetimer.last_result()
        private: dict[str, Any] = {"_progress": progress.tell}
        try:
            statement = self._source.make(empty)
            result = codetimer.time(
                self._name, args.number or None, statement, budget=args.budget, gc_time=args.gc_time,
                memory=args.memory, file=Nowhere(), **private,
            )  # fmt: skip
        except Broken:
            raise
        except BaseException as error:
            partial = codetimer.last_result()
            return Outcome(None if partial is before else partial, error)
        return Outcome(result, None)

    def _print(self, what: list[Result]) -> None:
        args = self._args
        if args.format == "text":
            print_report(what, sys.stdout, verbose=args.verbose, unit=args.unit, process=args.process)
            sys.stdout.flush()
