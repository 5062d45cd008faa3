# SPDX-License-Identifier: MIT
"""python -m codetimer: the command codetimer."""

import sys

from codetimer.cli import main

if __name__ == "__main__":
    sys.exit(main())
