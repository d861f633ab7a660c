# SPDX-License-Identifier: BSD-3-Clause
"""``doctor``: examine this machine, fix what can be fixed safely, and revert it."""

from __future__ import annotations

import dataclasses
import os
import pwd
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from planebench.cli.options import print_json
from planebench.host import journal
from planebench.host.pci_binding import keep_bound
from planebench.host.process import sweep_stale
from planebench.measure import tuning
from planebench.measure.doctor import Finding, diagnose
from planebench.model.errors import UsageError

_STYLES = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(
    json: bool,
    fix: bool = False,
    undo: bool = False,
    quiet: bool = False,
    bind: Sequence[str] = (),
    user: str | None = None,
) -> int:
    """Print the findings; with ``fix`` or ``undo``, change the machine instead. Returns the exit code.

    ``bind`` are NICs that ``fix`` binds to vfio-pci too, for a ``user``.
    1: a problem was found, a change failed, or root is needed. Raises UsageError for ``fix`` and ``undo`` together,
    StoreError where old values cannot be kept or read.
    """
    if fix and undo:
        raise UsageError("--fix and --undo are mutually exclusive. Give one of them")
    if bind and not fix:
        raise UsageError("--bind applies only to --fix. Give both")
    if fix:
        if bind:
            keep_bound(bind, None if user is None else _user_id(user))
        return _fix(json, quiet)
    if undo:
        return _undo(json, quiet)
    return _findings(diagnose(), json, quiet)


def _findings(findings: Sequence[Finding], json: bool, quiet: bool) -> int:
    problems = [finding for finding in findings if finding.level == "problem"]
    if json:
        print_json({"findings": [dataclasses.asdict(finding) for finding in findings]})
    elif quiet:
        for finding in problems:
            print(f"planebench: problem: {finding.text} -> {finding.remedy}", file=sys.stderr)
    else:
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        for finding in findings:
            remedy = f"\n-> {finding.remedy}" if finding.remedy else ""
            level = Text(finding.level, _STYLES[finding.level])
            table.add_row(level, Text.assemble(finding.text, (remedy, "dim")))
        Console(markup=False).print(table)
        if changes := tuning.plan():
            print(f"\n`sudo planebench doctor --fix` changes {_settings(len(changes))}; `--undo` restores all.")
    return int(bool(problems))


def _fix(json: bool, quiet: bool) -> int:
    changes = tuning.plan()
    if changes and os.geteuid() != 0:
        _tell_commands(changes, json)
        return 1
    state = journal.state_path()
    outcomes = tuning.apply(state)
    _print_outcomes(outcomes, json, quiet, "nothing to change")
    if outcomes and not (json or quiet):
        print(f"old values are in {state}; `sudo planebench doctor --undo` restores them")
    return _exit_code(outcomes)


def _user_id(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise UsageError(f'--user: "{name}" is no user of this machine') from None


def _undo(json: bool, quiet: bool) -> int:
    sweep_stale()
    state = journal.state_path()
    if state.exists() and os.geteuid() != 0:
        print(
            f"planebench: only root can restore the settings in {state}: `sudo planebench doctor --undo`",
            file=sys.stderr,
        )
        return 1
    outcomes = tuning.undo(state)
    _print_outcomes(outcomes, json, quiet, "nothing to undo")
    return _exit_code(outcomes)


def _tell_commands(changes: Sequence[journal.ChangedValue], json: bool) -> None:
    commands = tuning.commands(changes)
    if json:
        print_json({"commands": commands})
    print(
        f"planebench: {_settings(len(changes))} to change, which only root can do: `sudo planebench doctor --fix`, or",
        file=sys.stderr,
    )
    for command in commands:
        print(f"  {command}", file=sys.stderr)


def _print_outcomes(outcomes: Sequence[journal.ValueOutcome], json: bool, quiet: bool, nothing: str) -> None:
    if json:
        print_json({"changes": [dataclasses.asdict(outcome) for outcome in outcomes]})
        return
    for outcome in outcomes:
        failed = outcome.kind == "failed"
        if failed or not quiet:
            print(outcome.text, file=sys.stderr if failed and quiet else sys.stdout)
    if not (outcomes or quiet):
        print(nothing)


def _exit_code(outcomes: Sequence[journal.ValueOutcome]) -> int:
    return int(any(outcome.kind == "failed" for outcome in outcomes))


def _settings(count: int) -> str:
    return f"{count} setting{'s' if count > 1 else ''}"
