# SPDX-License-Identifier: MIT
"""Running averages of hot functions, always on: decorate them and ask at any time. Prints the table of all counters,
then what happened in one stretch of time.

    python examples/hot_functions.py
"""

import contextlib

import codetimer


@codetimer.measured
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@codetimer.measured(category="orders")
def parse(line: str) -> tuple[str, int]:
    article, amount = line.split(",")
    return article, int(amount)


@codetimer.measured
class Basket:
    def __init__(self) -> None:
        self.amounts: dict[str, int] = {}

    def add(self, article: str, amount: int) -> None:
        self.amounts[article] = self.amounts.get(article, 0) + amount

    @property
    def total(self) -> int:
        return sum(self.amounts.values())


def fill(basket: Basket, lines: int) -> None:
    for i in range(lines):
        line = f"article {i % 100},{i}" if i % 1000 else "broken"
        with contextlib.suppress(ValueError):  # it counts as an error of parse
            basket.add(*parse(line))


fibonacci(16)
basket = Basket()
with codetimer.timer("fill", help="all lines of one order"):
    fill(basket, 20_000)
print(f"The basket holds {basket.total:,} pieces.\n")
codetimer.report()

parsing = codetimer.counters["orders/hot_functions.parse"]
before = parsing.sample()
fill(basket, 5_000)
window = parsing.sample() - before
print(f"\nparse since then: {window.calls:,} calls, {window.errors} errors,", end=" ")
print(f"average {window.average_ns:.0f} ns, 99 % below {window.percentile(99):.0f} ns")
