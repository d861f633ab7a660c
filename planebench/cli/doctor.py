# SPDX-License-Identifier: BSD-3-Clause
"""``doctor``: examine this machine, fix what can be fixed safely, and revert it."""

from __future__ import annotations

import dataclasses
import os
import pwd
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from planebench.cli.options import complain, plain_table, print_json
from planebench.host import journal
from planebench.host.pci_binding import keep_bound
from planebench.host.process import sweep_stale
from planebench.measure import tuning
from planebench.measure.doctor import diagnose
from planebench.model.errors import UsageError
from planebench.model.words import several

_STYLES = {"ok": "green", "warning": "yellow", "problem": "red"}


def doctor(
    json: bool,
    fix: bool = False,
    undo: bool = False,
    quiet: bool = False,
    bind: Sequence[str] | None = None,
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
    if user is not None and not bind:
        raise UsageError("--user applies only to --bind. Give both")
    if fix:
        if bind:
            try:
                keep_bound(bind, None if user is None else pwd.getpwnam(user).pw_uid)
            except KeyError:
                raise UsageError(f'--user: "{user}" is no user of this machine') from None
        return _fix(json, quiet)
    if undo:
        sweep_stale()
        state = journal.state_path()
        if not state.exists() or os.geteuid() == 0:
            return _told(tuning.undo(state), json, quiet, "nothing to undo")
        if json:
            print_json({"changes": []})
        complain(f"only root can restore the settings in {state}: `sudo planebench doctor --undo`")
        return 1
    findings = diagnose()
    problems = [finding for finding in findings if finding.level == "problem"]
    if json:
        print_json({"findings": [dataclasses.asdict(finding) for finding in findings]})
    elif quiet:
        for finding in problems:
            complain(f"problem: {finding.text} -> {finding.remedy}")
    else:
        table = plain_table(show_header=False)
        for finding in findings:
            remedy = f"\n-> {finding.remedy}" if finding.remedy else ""
            level = Text(finding.level, _STYLES[finding.level])
            table.add_row(level, Text.assemble(finding.text, (remedy, "dim")))
        Console(markup=False).print(table)
        if changes := tuning.plan():
            number = several(len(changes), "setting")
            print(f"\n`sudo planebench doctor --fix` changes {number}; `--undo` restores all.")
    return int(bool(problems))


def _fix(json: bool, quiet: bool) -> int:
    changes = tuning.plan()
    if changes and os.geteuid() != 0:
        commands = tuning.commands(changes)
        if json:
            print_json({"commands": commands})
        number = several(len(changes), "setting")
        head = f"planebench: {number} to change, which only root can do: `sudo planebench doctor --fix`, or"
        print("\n  ".join([head, *commands]), file=sys.stderr)
        return 1
    state = journal.state_path()
    outcomes = tuning.apply(state)
    code = _told(outcomes, json, quiet, "nothing to change")
    if outcomes and not (json or quiet):
        print(f"old values are in {state}; `sudo planebench doctor --undo` restores them")
    return code


def _told(outcomes: Sequence[journal.ValueOutcome], json: bool, quiet: bool, nothing: str) -> int:
    """Print what became of each change, and return the exit code: 1 if one has failed."""
    failed = [outcome for outcome in outcomes if outcome.kind == "failed"]
    if json:
        print_json({"changes": [dataclasses.asdict(outcome) for outcome in outcomes]})
    elif quiet:
        for outcome in failed:
            print(outcome.text, file=sys.stderr)
    else:
        print("\n".join(outcome.text for outcome in outcomes) or nothing)
    return int(bool(failed))
