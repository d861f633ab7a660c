# SPDX-License-Identifier: BSD-3-Clause
"""``planebench run``: run a plan with a progress bar, and show the results."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from planebench.analysis.compare import Derived
from planebench.cli.fault import fault_words
from planebench.cli.options import complain
from planebench.cli.output import REPORT_FILE, write_report
from planebench.cli.progress import RunProgress
from planebench.measure.header import Labels, read_labels
from planebench.measure.machine import terminable
from planebench.measure.session import Session, open_session
from planebench.measure.survey import survey
from planebench.model.errors import INCONCLUSIVE, INTERRUPTED, PlanebenchError, StoreError
from planebench.model.header import RunStatus
from planebench.model.plan import Plan
from planebench.model.records import VerdictKind
from planebench.model.words import several
from planebench.plan.estimate import describe
from planebench.report.export import to_json as document_of
from planebench.report.terminal.screen import print_where
from planebench.report.terminal.table import print_screen
from planebench.report.trust import nothing_decided, nothing_measured, points_without_figure
from planebench.store import read_run, runs_named
from planebench.store.folder import resume_command
from planebench.switches.remote import switch_on


def run_plan(
    plan: str,
    overrides: Mapping[str, Any],
    *,
    json: bool,
    quiet: bool,
    page: bool,
    switch_host: str | None,
    testbed: str | None,
    subject: str | None,
    tag: Sequence[str] | None,
    **how: Any,
) -> int:
    """Run a plan and show the results. Returns the exit code: 0; 130 after Ctrl-C or SIGTERM; 4 or 6 as :func:`_judge`.

    ``overrides`` are the keyword arguments of plans.override. ``page``: write the HTML report. ``switch_host`` is
    as for ssh; None for this one. ``how``: what else :func:`measured` takes.
    Raises UsageError and NotInstalledError before anything is started.
    """
    labels = read_labels(testbed, subject, tag or ())
    folder: Path | None = None
    try:
        folder, status = measured(plan, overrides, switch_host, quiet=quiet, labels=labels, **how)
        derived = Derived(read_run(folder))
        if json:
            sys.stdout.buffer.write(document_of(derived))
        if status != "complete":
            number, run_id = len(derived.run.trials), derived.run.header.run_id
            stored = f"{number} trial{'s are' if number != 1 else ' is'} stored: planebench report {run_id}"
            complain(f"interrupted; {stored}. Resume it with: {resume_command(['planebench', *sys.argv[1:]])}")
            return INTERRUPTED
        if not (json or quiet):
            print_screen(derived, printed=derived.run.header.warnings)
        code = _judge(derived, quiet=quiet)
        _write_page(derived, folder, silent=json or quiet, page=page)
        return code
    except KeyboardInterrupt:  # while calibrating, or in the report of a run that was complete
        complain("interrupted before the first trial" if folder is None else f"interrupted; {folder} has all trials")
        return INTERRUPTED
    except Exception as error:
        if folder is not None and not isinstance(error, PlanebenchError):
            complain(f"the run is stored: {folder}")
        raise


def measured(
    plan: Plan | str,
    overrides: Mapping[str, Any],
    switch_host: str | None,
    *,
    time_budget: str | None,
    hugepages: bool | None,
    calibrated: bool,
    resume: bool,
    runs: Path | None,
    quiet: bool,
    labels: Labels | None,
) -> tuple[Path, RunStatus]:
    """Run a plan; return the folder of the run, and how it ended. The parameters are options of the command."""
    with switch_on(switch_host) as connect:
        held = survey(plan, overrides, hugepages=hugepages, connect=connect).required().within(time_budget)
        console = Console(stderr=True, quiet=quiet, markup=False)
        with terminable():
            session = open_session(
                held,
                runs_dir=runs,
                resume=resume,
                calibrated=calibrated,
                labels=labels,
                tell=lambda text: console.print(text, style="dim", highlight=False),
            )
            _announce(session, console, named=overrides.get("name") is not None, fitted=time_budget is not None)
            with RunProgress(session, quiet=quiet) as progress:
                return session.folder, session.measure(progress)


def _announce(session: Session, console: Console, *, named: bool, fitted: bool) -> None:
    """Print what is left out, what to note, and how long the run takes.

    ``named``: the user gave the run a name. ``fitted``: its trials were made to fit a time.
    """

    def say(text: str, style: str = "") -> None:
        console.print(text, highlight=False, style=style, soft_wrap=not console.is_terminal)

    held, known = session.survey, len(session.trials)
    for entry in held.skipped:
        say(f"left out: {entry.what}: {entry.reason}")
    if named and (older := [run for run in runs_named(session.folder.parent, held.plan.name) if run != session.folder]):
        say(
            f'note: "{held.plan.name}" is the name of {older[-1].name}, too; from now on it means the new run, and the '
            "older one is found by its id",
            "dim",
        )
    if held.small_pages and not held.simulated:
        say(held.small_pages, "dim")
    if notes := sum(it != held.small_pages for it in session.writer.header.warnings):
        say(f"{several(notes, 'note')}: planebench report --all", "dim")
    if fitted:
        say(describe(held.plan), "dim")
    resumed = f", {known} already measured" if known else ""
    trials = f"{held.points_words} in {session.pace.steps} trials"
    say(f"{trials}{resumed}, {held.takes_words}; they are stored in {session.folder}")


def _write_page(derived: Derived, folder: Path, *, silent: bool, page: bool) -> None:
    """Write the HTML report if it is wanted, and print where the results are. Raises StoreError where it cannot be."""
    where = f"run: {folder}"
    try:
        if page:
            where = f"report: {write_report(derived, folder / REPORT_FILE)}"
    except StoreError as error:
        raise StoreError(f"{error}. The run is stored: `planebench report {folder.name} --html FILE`") from error
    except Exception as error:  # as MemoryError: the answer of the run stands without a page
        complain(f"the report is left out: {fault_words(error)}")
    if not silent:
        print_where(where)


def _judge(derived: Derived, *, quiet: bool) -> int:
    """Return the exit code of a run that came to its end, after a line where trials or answers are missing.

    0: a trial counts, or it was a functional check. PlanebenchError.exit_code: all trials are invalid, because a switch
    or the tester failed. INCONCLUSIVE: trials took place, but give no figure, as latencies of an overload. ``quiet``:
    points without a figure are printed here; otherwise the table has them.
    """
    if words := nothing_measured(derived):
        complain(words)
        kinds = {trial.verdict.kind for trial in derived.run.trials if trial.role != "warmup"}
        return INCONCLUSIVE if kinds - {VerdictKind.INVALID} else PlanebenchError.exit_code
    if quiet and (words := points_without_figure(derived)):
        complain(words)
    if words := nothing_decided(derived):
        complain(words)
    return 0
