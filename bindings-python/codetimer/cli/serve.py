# SPDX-License-Identifier: MIT
"""codetimer serve: the counters of all local processes for Prometheus, over HTTP."""

from __future__ import annotations

import argparse
import contextlib
import re
from typing import Any

from codetimer.cli import OK, Refused, UsageError, folder, tell
from codetimer.cli.ending import Ending
from codetimer.cli.sampling import Sampler

DESCRIPTION = """\
Serve the counters of all local processes to Prometheus at /metrics, until Ctrl-C or SIGTERM. The labels are category,
member, program and pid; with --by program the processes of one program are summed, so that a restart makes no new
series."""
PORT = re.compile(r"(?:(?P<host>[^:\[\]]+|\[[0-9A-Fa-f:.%\w]+\]):)?(?P<port>[0-9]{1,5})")


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "serve", help="serve counters to Prometheus", description=DESCRIPTION
    )
    parser.add_argument("address", metavar="[HOST:]PORT", help="where to listen; HOST: 127.0.0.1, PORT 0: any free")
    parser.add_argument("--by", choices=("process", "program"), default="process", help="what makes series (process)")
    parser.add_argument("--limit", metavar="N", type=_limit, default=1000, help="series exported at most (1000)")
    parser.add_argument("--dir", metavar="FOLDER", type=folder, help="where to look; else where your processes publish")
    return parser


def run(args: argparse.Namespace) -> int:
    host, port = parse_address(args.address)
    try:
        from prometheus_client import CollectorRegistry, start_http_server

        from codetimer.cli.metrics import ProcessCollector
    except ImportError:
        raise Refused('serve needs prometheus_client: pip install "codetimer-native[prometheus]"') from None
    with Ending() as ending, Sampler(directory=args.dir, dead=True) as sampler:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(ProcessCollector(sampler, args.by == "program", args.limit))
        try:
            server, thread = start_http_server(port, host, registry)
        except OSError as error:
            raise Refused(f"cannot listen on {args.address}: {error.strerror or error}") from None
        with contextlib.closing(_Server(server, thread)):
            shown = f"[{host}]" if ":" in host else host
            tell(f"serving http://{shown}:{server.server_port}/metrics; Ctrl-C ends")
            ending.sleep()
    return OK


def parse_address(text: str) -> tuple[str, int]:
    match = PORT.fullmatch(text)
    if match is None or int(match["port"]) > 65535:
        raise UsageError(f"{text!r} is no address: write PORT, HOST:PORT or [IPv6]:PORT")
    return (match["host"] or "127.0.0.1").strip("[]"), int(match["port"])


class _Server:
    """Ends the server and its thread."""

    def __init__(self, server: Any, thread: Any) -> None:
        self._server, self._thread = server, thread

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _limit(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 1000000")
    return int(text)
