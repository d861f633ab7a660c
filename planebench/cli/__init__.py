# SPDX-License-Identifier: BSD-3-Clause
"""The command line. Each command parses, calls one part, and prints (docs/command-line.md).

Nothing but the standard library is imported before an error can be told: an import may be what fails.
"""

from __future__ import annotations

import contextlib
import errno
import io
import mmap
import os
import signal
import sys
from typing import TYPE_CHECKING

import planebench
from planebench.cli.fault import fault_words, one_line

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

LEAST_BYTES = 320 << 20
"""Address space that every command is sure to get."""


def main() -> None:
    """Run the command. Exit codes are in docs/command-line.md; every error is told in one line."""
    from planebench.model.errors import CLOSED_PIPE, FAULT, INTERRUPTED, PlanebenchError, StoreError

    code = 0
    sys.unraisablehook = _raise_again
    try:
        _open_streams()
        _probe_memory()
        code = _run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = CLOSED_PIPE
    except SystemExit as end:  # of completion, with 0; of rich where nobody reads, which it has made something of
        code = CLOSED_PIPE if end.code else 0
    except PlanebenchError as error:
        code = _complain(str(error), error.exit_code)
    except Exception as error:
        if isinstance(error, OSError) and error.errno != errno.ENOMEM:
            code = _complain(f"{error.filename or 'system'}: {error.strerror or error}", StoreError.exit_code)
        else:
            code = _complain(fault_words(error), FAULT)
    _end_output()
    sys.exit(code)


def _raise_again(lost: UnraisableHookArgs) -> None:
    """Raise a Ctrl-C a moment later that fell into a destructor or a library's callback, which can raise nothing."""
    if issubclass(lost.exc_type, KeyboardInterrupt):
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
    else:
        sys.__unraisablehook__(lost)


def _run() -> int:
    """Run the command and return its exit code."""
    if sys.argv[1:] == ["--version"]:  # the commands take four times as long to import
        print(f"planebench {planebench.__version__}")
        return 0
    import typer

    from planebench.cli.app import app
    from planebench.model.errors import UsageError

    if os.environ.get("_PLANEBENCH_COMPLETE"):  # a shell asks typer
        app(prog_name="planebench")
    # The base of BadParameter has no public name: typer has click inside, or beside it, by version.
    kinds = (kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
    bad_command_line: type[Exception] = next(kinds)
    tree = typer.main.get_command(app)
    try:
        with tree.make_context("planebench", sys.argv[1:] or ["--help"]) as context:
            tree.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except bad_command_line as error:
        message = error.format_message() if hasattr(error, "format_message") else str(error)
        where = getattr(error, "ctx", None)  # its help shows the way out
        raise UsageError(
            f"{message.rstrip('.?')}. See {where.command_path if where else 'planebench'} --help"
        ) from None
    return 0


def _complain(text: str, code: int) -> int:
    """Print one line on standard error, if it takes one, and return ``code``."""
    with contextlib.suppress(OSError, ValueError):
        print(one_line(f"planebench: {text}"), file=sys.stderr)
    return code


def _open_streams() -> None:
    """Put /dev/null in place of standard streams that were closed when we were started, and make all take every text.

    Else the next file or socket gets the number of a closed one, and what is printed. What an encoding lacks is a "?".
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _probe_memory() -> None:
    """Raise MemoryError where ulimit -v leaves too little: OpenBLAS would spin, or end us with code 1."""
    try:
        mmap.mmap(-1, LEAST_BYTES).close()
    except OSError as error:
        raise MemoryError(f"cannot get {LEAST_BYTES >> 20} MiB") from error


def _end_output() -> None:
    """Discard what a stream did not take, so that Python neither reports it at its end nor changes the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
