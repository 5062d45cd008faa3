# SPDX-License-Identifier: MIT
"""codetimer completion bash: a completion script for bash, made from the parsers of the commands."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from typing import Any

import codetimer
from codetimer.cli import COMMANDS, OK

SCRIPT = """\
# Completion of codetimer for bash. In ~/.bashrc: eval "$(codetimer completion bash)"
_codetimer() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}"
    local options="" kind=""
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        COMPREPLY=($(compgen -W "{commands} --help --version" -- "$word"))
        return
    fi
    case "$command" in
{options}
    esac
    case "$command $before" in
{values}
        *) case "$word" in
            -*) kind="words $options" ;;
            *) case "$command" in
{positionals}
            esac ;;
        esac ;;
    esac
    case "$kind" in
        words\\ *) COMPREPLY=($(compgen -W "${{kind#words }}" -- "$word")) ;;
        pids) COMPREPLY=($(compgen -W "$(codetimer completion pids 2>/dev/null)" -- "$word")) ;;
        files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    esac
}}
complete -F _codetimer codetimer
"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "completion", help="print a completion script", description='In ~/.bashrc: eval "$(codetimer completion bash)"'
    )
    parser.add_argument("what", choices=("bash", "pids"), help="the script, or the PIDs that it offers")
    return parser


def run(args: argparse.Namespace) -> int:
    if args.what == "bash":
        print(script(), end="")
        return OK
    pids = {each.pid for each in codetimer.processes() if each.state == "live" and each.pid is not None}
    for pid in sorted(pids):
        print(pid)
    return OK


def script() -> str:
    parsers = _parsers()
    options, values, positionals = [], [], []
    for name in COMMANDS:
        actions = parsers[name]._actions  # argparse has no public way to them
        names = [option for action in actions for option in action.option_strings if option.startswith("--")]
        options.append(f'        {name}) options="{" ".join(names)}" ;;')
        values += [f'        "{name} {option}") kind="{kind}" ;;' for option, kind in _valued(actions)]
        kinds = [_kind(action) for action in actions if not action.option_strings]
        positionals += [f'                {name}) kind="{kind}" ;;' for kind in kinds[:1] if kind]
    return SCRIPT.format(
        commands=" ".join(COMMANDS),
        options="\n".join(options),
        values="\n".join(values),
        positionals="\n".join(positionals),
    )


def _parsers() -> dict[str, argparse.ArgumentParser]:
    subparsers = argparse.ArgumentParser(prog="codetimer").add_subparsers()
    for module in dict.fromkeys(COMMANDS.values()):
        importlib.import_module(f"codetimer.cli.{module}").add_parser(subparsers)
    return dict(subparsers.choices)


def _valued(actions: list[argparse.Action]) -> Iterator[tuple[str, str]]:
    """Options that want a value, and what can complete it."""
    for action in actions:
        if action.nargs != 0:
            yield from ((option, _kind(action)) for option in action.option_strings)


def _kind(action: argparse.Action) -> str:
    if action.choices is not None:
        return "words " + " ".join(map(str, action.choices))
    name = str(action.metavar or action.dest).lower()
    return {"pid": "pids", "file": "files", "folder": "files"}.get(name, "")
