# SPDX-License-Identifier: BSD-3-Clause
"""``planebench run``: run a plan with a progress bar, and show the results."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from planebench.cli.output import REPORT_FILE, write_report
from planebench.cli.progress import ProgressListener
from planebench.model.errors import INTERRUPTED
from planebench.plans import describe, duration_words
from planebench.report.terminal.table import print_table
from planebench.running.machine import terminable
from planebench.running.service import Session, open_session
from planebench.running.survey import survey
from planebench.stats.derived import Derived
from planebench.store import read_run


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The command line of ``run``; ``overrides`` are the keyword arguments of plans.override."""

    plan: str
    overrides: Mapping[str, Any]
    hugepages: bool | None = None
    runs: Path | None = None
    json: bool = False
    quiet: bool = False
    resume: bool = False
    calibrate: bool = True
    page: bool = True
    """True to write the HTML report."""
    time_budget: str | None = None


def run_plan(options: RunOptions) -> int:
    """Run a plan and show the results. Returns the exit code: 0, or 130 after Ctrl-C or SIGTERM.

    Raises UsageError and NotInstalledError before anything is started.
    """
    held = survey(options.plan, options.overrides, hugepages=options.hugepages).required().within(options.time_budget)
    console = Console(stderr=True, quiet=options.quiet)
    try:
        with terminable():
            session = open_session(
                held,
                runs_dir=options.runs,
                resume=options.resume,
                calibrated=options.calibrate,
                tell=lambda text: console.print(text, style="dim", highlight=False),
            )
            _announce(session, console)
            with ProgressListener(session.pace, held.plan.throughput.duration_s, options.quiet) as progress:
                status = session.measure(progress)
            _show(session.folder, options)
    except KeyboardInterrupt:  # while calibrating, or in the report of a run that was complete
        return INTERRUPTED
    return 0 if status == "complete" else INTERRUPTED


def _announce(session: Session, console: Console) -> None:
    """Print what is left out, what to note, and how long it takes."""
    held, known = session.survey, len(session.trials)
    for entry in held.skipped:
        console.print(f"left out: {entry.what}: {entry.reason}", markup=False, highlight=False, soft_wrap=True)
    for warning in session.writer.header.warnings:
        console.print(f"note: {warning}", markup=False, highlight=False, style="dim", soft_wrap=True)
    console.print(describe(held.plan), markup=False, highlight=False, style="dim", soft_wrap=True)
    time = duration_words(held.takes_s)
    resumed = f", {known} trials already measured" if known else ""
    console.print(
        f"{len(held.measured)} points, about {time}{resumed}; trials are stored in {session.folder}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _show(folder: Path, options: RunOptions) -> None:
    """Print the table, write the page if it is wanted, and print where they are."""
    derived = Derived(read_run(folder))
    where = f"report: {write_report(derived, folder / REPORT_FILE)}" if options.page else f"run: {folder}"
    if options.json:
        from planebench.report.export import to_json

        sys.stdout.buffer.write(to_json(derived))
    elif not options.quiet:
        print_table(derived)
        print(f"\n{where}")
