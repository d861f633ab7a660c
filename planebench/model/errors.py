# SPDX-License-Identifier: BSD-3-Clause
"""One exception tree; each class has an exit code. A message names the thing, the value and the way out."""

from __future__ import annotations


class PlanebenchError(Exception):
    """Base class: something the user can be told in one sentence. Exit code 1."""

    exit_code = 1


class UsageError(PlanebenchError):
    """Bad input: unknown switch, scenario, key, size. Exit code 2."""

    exit_code = 2


class NotInstalledError(PlanebenchError):
    """A switch asked for by name is not on this machine. Exit code 3."""

    exit_code = 3


class StartError(PlanebenchError):
    """A switch or the tester did not come up; the message carries its last log lines. Exit code 4."""

    exit_code = 4


class DiedError(PlanebenchError):
    """A process died or stopped answering during a trial; the message carries its last log lines."""

    exit_code = 4


class StoreError(PlanebenchError):
    """A run folder that cannot be written, or read back: the message names file, line and key. Exit code 5."""

    exit_code = 5
