# SPDX-License-Identifier: MIT
"""The four classic cases, and a fifth that shows the garbage collector at work.

python examples/quickstart.py
"""

import time

import codetimer

PIECES = 100_000


def string_concat() -> None:
    text = ""
    for _ in range(PIECES):
        text += "a"


def string_join() -> None:
    pieces = []
    for _ in range(PIECES):
        pieces.append("a")
    "".join(pieces)


def empty() -> None:
    pass


kept: list[list[int]] = []

with codetimer.initialize() as environment:
    print(environment)
    codetimer.time("Thread Sleep", 1, lambda: time.sleep(1))
    codetimer.time("Empty Function", 10_000_000, empty)
    codetimer.time("String Concat", 100, string_concat)
    codetimer.time("String Join", 100, string_join)
    codetimer.time("Kept Lists", 100_000, lambda: kept.append([]))
