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
    sys.exit(main())
