# SPDX-License-Identifier: BSD-3-Clause
"""One exception tree; each class has an exit code. A message names the thing, the value and the way out."""

from __future__ import annotations

import errno
from collections.abc import Collection
from difflib import get_close_matches


class PlanebenchError(Exception):
    """Base class: something the user can be told in one sentence. Exit code 4: what we work with failed."""

    exit_code = 4


class UsageError(PlanebenchError):
    """Bad input: unknown switch, scenario, key, size. Exit code 2."""

    exit_code = 2


class NotInstalledError(PlanebenchError):
    """A switch asked for by name is not on this machine. Exit code 3."""

    exit_code = 3


class StartError(PlanebenchError):
    """A switch or the tester did not come up; the message carries its last log lines. Exit code 4."""


class DiedError(PlanebenchError):
    """A process died or stopped answering during a trial; the message carries its last log lines."""


class ExternalTesterError(PlanebenchError):
    """An external tester that cannot be reached, refuses what it is asked, or contradicts itself. Exit code 4."""


class StoreError(PlanebenchError):
    """A run folder that cannot be written, or read back: the message names file, line and key. Exit code 5."""

    exit_code = 5


class BusyError(PlanebenchError):
    """Another planebench measures on the CPUs that are wanted: nothing is wrong but the time. Exit code 7."""

    exit_code = 7


def unreadable(what: str, error: OSError | UnicodeDecodeError, remedy: str) -> UsageError:
    """Return the error of a text file of the user's that cannot be read. ``remedy`` is the way out."""
    reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
    return UsageError(f"{what} cannot be read: {reason}; {remedy}")


def is_full(error: OSError) -> bool:
    """Return whether a file could not be written because its disk, or the share of its user, is full."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def unwritable(what: str, error: OSError) -> PlanebenchError:
    """Return the error of a file that cannot be written, with the way out: a UsageError if its folder is missing."""
    text = f"cannot write {what}: {error.strerror or error}"
    if isinstance(error, FileExistsError):
        return UsageError(f"{text}; give a new folder")
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError):
        return UsageError(f"{text}; give a file in a folder that exists")
    if is_full(error):
        return StoreError(f"{text}; free space, or give a file on another disk")
    return StoreError(f"{text}; give a folder that you may write")


INCONCLUSIVE = 6
"""Exit code where there is no answer: of a gate that neither passes nor fails, and of a run without a figure."""
FAULT = 8
"""Exit code of an error that is none of PlanebenchError: a fault of planebench, or memory that is not there."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, SIGTERM or SIGHUP, as shells have it for SIGINT."""
CLOSED_PIPE = 141
"""Exit code where the reader of our output is gone, as shells have it for SIGPIPE."""


# The one sentence for a value that is not among the valid ones: names the thing, the value, the way out.


def unknown(what: str, value: object, valid: Collection[str]) -> UsageError:
    """Return the error for an invalid ``value``: ``unknown scenario "p2q", did you mean p2p? Valid: p2p, ...``."""
    close = get_close_matches(str(value).lower(), list(valid), n=1, cutoff=0.5)
    hint = f", did you mean {close[0]}?" if close else "."
    return UsageError(f'unknown {what} "{value}"{hint} Valid: {", ".join(valid)}')
