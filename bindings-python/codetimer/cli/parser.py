# SPDX-License-Identifier: MIT
"""The parser of the command line. A module of its own, because importing argparse changes what a program under
codetimer run would find imported."""

from __future__ import annotations

import argparse
from typing import NoReturn

from codetimer.cli import USAGE


class Parser(argparse.ArgumentParser):
    """One that says what is wrong on one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")
