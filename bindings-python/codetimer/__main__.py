# SPDX-License-Identifier: MIT
"""The command codetimer, also as python -m codetimer. Ctrl-C while its modules are being imported ends it quietly."""

import sys

INTERRUPTED = 130


def main() -> int:
    """Run the command; returns its exit code."""
    try:
        from codetimer.cli import main as run

        return run()
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    main.__module__ = "codetimer.__main__"  # it is no function of the program that codetimer run runs
    sys.exit(main())
