# SPDX-License-Identifier: BSD-3-Clause
"""``planebench run``: run a plan with a progress bar, and show the results."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from planebench.cli.bar import RunBar
from planebench.cli.output import REPORT_FILE, write_report
from planebench.model.errors import INTERRUPTED
from planebench.plans.budget import describe
from planebench.report.terminal.table import print_table
from planebench.running.labels import Labels
from planebench.running.machine import terminable
from planebench.running.service import Session, open_session
from planebench.running.survey import survey
from planebench.stats.derived import Derived
from planebench.store import read_run


def run_plan(
    plan: str,
    overrides: Mapping[str, Any],
    *,
    time_budget: str | None = None,
    hugepages: bool | None = None,
    calibrated: bool = True,
    resume: bool = False,
    runs: Path | None = None,
    json: bool = False,
    quiet: bool = False,
    page: bool = True,
    labels: Labels | None = None,
) -> int:
    """Run a plan and show the results. Returns the exit code: 0, or 130 after Ctrl-C or SIGTERM.

    ``overrides`` are the keyword arguments of plans.override. ``page``: write the HTML report.
    Raises UsageError and NotInstalledError before anything is started.
    """
    held = survey(plan, overrides, hugepages=hugepages, boots=True).required().within(time_budget)
    console = Console(stderr=True, quiet=quiet)
    try:
        with terminable():
            session = open_session(
                held,
                runs_dir=runs,
                resume=resume,
                calibrated=calibrated,
                labels=labels,
                tell=lambda text: console.print(text, style="dim", highlight=False),
            )
            _announce(session, console)
            with RunBar(session.pace, held.plan.throughput.duration_s, quiet) as bar:
                status = session.measure(bar)
            _show(session.folder, json=json, quiet=quiet, page=page)
    except KeyboardInterrupt:  # while calibrating, or in the report of a run that was complete
        return INTERRUPTED
    return 0 if status == "complete" else INTERRUPTED


def _announce(session: Session, console: Console) -> None:
    """Print what is left out, what to note, and how long the run takes."""

    def say(text: str, style: str = "") -> None:
        console.print(text, markup=False, highlight=False, style=style, soft_wrap=True)

    held, known = session.survey, len(session.trials)
    for entry in held.skipped:
        say(f"left out: {entry.what}: {entry.reason}")
    for warning in session.writer.header.warnings:
        say(f"note: {warning}", "dim")
    say(describe(held.plan), "dim")
    resumed = f", {known} trials already measured" if known else ""
    say(f"{len(held.measured)} points, {held.takes_words}{resumed}; trials are stored in {session.folder}")


def _show(folder: Path, *, json: bool, quiet: bool, page: bool) -> None:
    """Print the results, write the HTML report if it is wanted, and print where they are."""
    derived = Derived(read_run(folder))
    where = f"report: {write_report(derived, folder / REPORT_FILE)}" if page else f"run: {folder}"
    if json:
        from planebench.report.export import to_json

        sys.stdout.buffer.write(to_json(derived))
    elif not quiet:
        print_table(derived)
        print(f"\n{where}")
