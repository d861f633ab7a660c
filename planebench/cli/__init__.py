# SPDX-License-Identifier: BSD-3-Clause
"""The command line: thin. Each command parses, calls one part, and prints."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the command. Exit codes: 0 good, 2 bad input, 130 interrupted, others in model.errors."""
    from planebench.cli.app import app
    from planebench.model.errors import PlanebenchError

    try:
        app()
    except PlanebenchError as error:
        print(f"planebench: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.exit(0)
