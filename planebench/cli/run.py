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
from planebench.host.own_version import own_version
from planebench.model.errors import INTERRUPTED, UsageError
from planebench.model.plan import Plan
from planebench.model.run import RunStatus
from planebench.plans.budget import describe
from planebench.plans.load import load_plan
from planebench.plans.override import override
from planebench.report.terminal.table import print_table
from planebench.running.agent import Relayed, Wire, serve
from planebench.running.elsewhere import Connect, TesterHost, connecting, file_lines, switch_on
from planebench.running.labels import Labels, read_labels
from planebench.running.machine import terminable
from planebench.running.service import Session, open_session
from planebench.running.survey import survey
from planebench.stats.derived import Derived
from planebench.store import read_run
from planebench.store.codec import from_json, to_json


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
    tester_host: str | None = None,
    switch_host: str | None = None,
    labels: Labels | None = None,
) -> int:
    """Run a plan and show the results. Returns the exit code: 0, or 130 after Ctrl-C or SIGTERM.

    ``overrides`` are the keyword arguments of plans.override. ``page``: write the HTML report. ``tester_host`` and
    ``switch_host`` are hosts as for ssh; None for this one.
    Raises UsageError and NotInstalledError before anything is started.
    """
    how: dict[str, Any] = {
        "time_budget": time_budget,
        "hugepages": hugepages,
        "calibrated": calibrated,
        "resume": resume,
        "labels": labels,
    }
    try:
        if tester_host is not None:
            wanted = override(load_plan(plan), **overrides)
            folder, status = _on_tester_host(tester_host, switch_host, wanted, {**how, "quiet": quiet}, runs)
        else:
            with switch_on(switch_host) as connect:
                folder, status = measured(plan, overrides, connect, runs=runs, quiet=quiet, **how)
        _show(folder, json=json, quiet=quiet, page=page)
    except KeyboardInterrupt:  # while calibrating, or in the report of a run that was complete
        return INTERRUPTED
    return 0 if status == "complete" else INTERRUPTED


def measured(
    plan: Plan | str,
    overrides: Mapping[str, Any],
    connect: Connect | None,
    *,
    time_budget: str | None,
    hugepages: bool | None,
    calibrated: bool,
    resume: bool,
    runs: Path | None,
    quiet: bool,
    labels: Labels | None,
) -> tuple[Path, RunStatus]:
    """Run a plan with the tester on this host; return the folder of the run, and how it ended.

    ``connect`` is as in :func:`survey`; the rest as in :func:`run_plan`.
    """
    held = survey(plan, overrides, hugepages=hugepages, boots=True, connect=connect).required().within(time_budget)
    console = Console(stderr=True, quiet=quiet)
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
            return session.folder, session.measure(bar)


def _on_tester_host(
    tester: str, switch: str | None, plan: Plan, how: Mapping[str, Any], runs: Path | None
) -> tuple[Path, str]:
    """Run a plan on the host of the tester, as :meth:`TesterHost.run`."""
    labels = how["labels"] or read_labels()
    how = {**how, "labels": to_json(labels).decode()}
    host = TesterHost(tester, switch, lambda text: print(text, file=sys.stderr))
    try:
        names = {"switch_host": switch or "of the command line", "command": sys.argv[1:]}
        return host.run({"plan": to_json(plan).decode(), "version": own_version(), **names, **how}, runs)
    finally:
        host.close()


def serve_agent() -> int:
    """Answer the harness or the command line on another host until stdin closes. Returns the exit code."""
    return serve(_run_for_another)


def _run_for_another(wire: Wire, params: dict[str, Any]) -> dict[str, str]:
    """Run the plan of a command line on another host; send the files of the run, and return how it ended."""
    version, plan, switch_host = params.pop("version"), params.pop("plan"), params.pop("switch_host")
    sys.argv[1:] = params.pop("command")  # for the header
    params["labels"] = from_json(Labels, params["labels"].encode(), "labels")
    if version != own_version():
        raise UsageError(f"here is planebench {own_version()}, not {version}: install the same version")
    with connecting(switch_host, lambda: Relayed(wire)) as connect:
        folder, status = measured(from_json(Plan, plan.encode(), "plan"), {}, connect, runs=None, **params)
    for line in file_lines(folder):
        wire.send(line)
    return {"run_id": folder.name, "status": status}


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
