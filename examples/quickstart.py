# SPDX-License-Identifier: MIT
"""The four classic cases, and a fifth that shows the garbage collector at work.

Sleeping takes time but no cycles; an empty function shows what a call costs. Concatenation shows no collections in
CPython, which frees a string with its last reference; lists that are kept are what its collector counts.

python examples/quickstart.py
"""

import time

import codetimer

text = ""
pieces: list[str] = []
kept: list[list[int]] = []


def empty() -> None:
    pass


def concatenate() -> None:
    global text
    text += "a"


with codetimer.initialize() as environment:
    print(environment)
    codetimer.time("Thread Sleep", 1, lambda: time.sleep(0.3))
    codetimer.time("Empty Function", 1_000_000, empty)
    codetimer.time("String Concat", 20_000, concatenate)
    codetimer.time("Buffer Append", 20_000, lambda: pieces.append("a"))
    codetimer.time("Kept Lists", 100_000, lambda: kept.append([]))

assert "".join(pieces) == text
