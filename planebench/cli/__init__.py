# SPDX-License-Identifier: BSD-3-Clause
"""The command line. Each command parses, calls one part, and prints (docs/command-line.md)."""

from __future__ import annotations

import contextlib
import os
import sys


def main() -> None:
    """Run the command. Exit codes are in model.errors.EXIT_CODES; an error of the user is reported in one line."""
    from planebench.cli.app import app
    from planebench.model.errors import CLOSED_PIPE

    if os.environ.get("_PLANEBENCH_COMPLETE"):  # a shell asks typer
        app(prog_name="planebench")
        return
    try:
        sys.exit(_run())
    except BrokenPipeError:
        _drop_output()
        sys.exit(CLOSED_PIPE)


def _run() -> int:
    """Run the command and return its exit code. Raises BrokenPipeError where nobody reads any more."""
    import typer

    from planebench.cli.app import app
    from planebench.model.errors import CLOSED_PIPE, INTERRUPTED, PlanebenchError, StoreError, UsageError

    # The base of BadParameter has no public name: typer has click inside, or beside it, by version.
    kinds = (kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    bad_command_line: type[Exception] = next(kinds)
    command = typer.main.get_command(app)
    try:
        with command.make_context("planebench", sys.argv[1:] or ["--help"]) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as end:
        sys.stdout.flush()
        return end.exit_code
    except PlanebenchError as error:
        return _complain(str(error), error.exit_code)
    except bad_command_line as error:
        return _complain(_words(error), UsageError.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except SystemExit as end:  # of completion, with 0; of rich where nobody reads, which it has made something of
        return CLOSED_PIPE if end.code else 0
    except OSError as error:
        return _complain(f"{error.filename or 'system'}: {error.strerror or error}", StoreError.exit_code)
    return 0


def _words(error: BaseException) -> str:
    """Return the fault of the command line, and the help command that shows the way out."""
    context = getattr(error, "ctx", None)
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    return f"{message.rstrip('.?')}. See {context.command_path if context else 'planebench'} --help"


def _complain(text: str, code: int) -> int:
    """Print one line on standard error, and return ``code``."""
    print("planebench:", " ".join(text.split()), file=sys.stderr)
    return code


def _drop_output() -> None:
    """Discard what is buffered for a closed pipe, so that Python reports nothing at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
