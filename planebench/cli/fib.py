# SPDX-License-Identifier: BSD-3-Clause
"""``planebench fib`` is ``planebench-fib``, with the errors of planebench."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.errors import PlanebenchError, UsageError
from planebench_fib import command, exceptions


def fib(arguments: Sequence[str]) -> None:
    """Run a command of planebench-fib."""
    try:
        command.run(arguments, "planebench fib")
    except exceptions.UsageError as error:
        raise UsageError(str(error)) from error
    except exceptions.Error as error:
        raise PlanebenchError(str(error)) from error
