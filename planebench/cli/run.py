# SPDX-License-Identifier: BSD-3-Clause
"""``planebench run``: from options to a finished run folder."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console

from planebench.cli.output import REPORT_FILE, write_report
from planebench.cli.progress import ProgressListener
from planebench.host import facts as host_facts
from planebench.host.facts import HostFacts
from planebench.host.process import Supervisor, sweep_stale
from planebench.measure.ahead import Pace, stages
from planebench.measure.campaign import Campaign
from planebench.measure.live import LiveSettings
from planebench.model.errors import INTERRUPTED, PlanebenchError, StoreError, UsageError
from planebench.model.header import Calibration, RunHeader
from planebench.model.records import Point, Trial
from planebench.plans import (
    describe,
    duration_words,
    estimate,
    fit,
    parse_budget,
    plain_frame_sizes,
)
from planebench.report.table import print_table
from planebench.running.header import make_header
from planebench.running.prepare import (
    Prepared,
    cpus_of,
    known_calibration,
    live_settings,
    make_calibration,
    measured_points,
    measuring,
    planned,
    prepare,
)
from planebench.running.status import Listeners, StatusListener
from planebench.stats.compare import differing_facts
from planebench.stats.derived import Derived
from planebench.store import RunWriter, default_runs_dir, find_unfinished, make_runs_dir, read_run, write_plan


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
    """Whether the HTML report is written."""
    time_budget: str | None = None


def run_plan(options: RunOptions) -> int:
    """Run a plan and show what came of it. Returns the exit code: 0, or 130 after Ctrl-C or SIGTERM.

    Raises UsageError and NotInstalledError before anything is started.
    """
    prepared = prepare(*planned(options.plan, options.overrides))
    facts = host_facts.collect()
    settings = live_settings(prepared, facts, options.hugepages)
    measured = measured_points(prepared, settings.hugepages)
    if options.time_budget is not None:
        prepared = replace(prepared, plan=fit(prepared.plan, measured, parse_budget(options.time_budget)))
    sweep_stale()
    try:
        with terminable():
            writer, trials, settings = _open(prepared, facts, settings, options)
            _announce(writer, prepared, measured, options, len(trials))
            code = _measure(prepared, facts, settings, writer, options, trials)
            _show(writer.path, options)
    except KeyboardInterrupt:  # while calibrating, or in the report of a run that was complete
        return INTERRUPTED
    return code


def _open(
    prepared: Prepared, facts: HostFacts, settings: LiveSettings, options: RunOptions
) -> tuple[RunWriter, list[Trial], LiveSettings]:
    """The run folder: a new one, or the one to go on with, and the trials that are in it."""
    if options.resume:
        return _reopen(prepared, facts, settings, options)
    runs_dir = options.runs or default_runs_dir()
    make_runs_dir(runs_dir)
    if options.calibrate:
        settings = replace(settings, calibration=_calibration(prepared, facts, settings, options))
    writer = RunWriter.create(runs_dir, make_header(prepared, facts, settings))
    write_plan(writer.path, prepared.plan)
    return writer, [], settings


def _reopen(
    prepared: Prepared, facts: HostFacts, settings: LiveSettings, options: RunOptions
) -> tuple[RunWriter, list[Trial], LiveSettings]:
    runs_dir = options.runs or default_runs_dir()
    info = find_unfinished(runs_dir, prepared.plan)
    if info is None:
        raise UsageError(
            f"no unfinished run of this plan in {runs_dir}: give the options it was started with, or leave out --resume"
        )
    settings = replace(settings, calibration=info.header.calibration)
    differing = _changed(info.header, make_header(prepared, facts, settings))
    if differing:
        raise UsageError(
            f"run {info.run_id} cannot be taken up here, its trials would not compare: {'; '.join(differing)}. "
            "Start a new one without --resume"
        )
    writer = RunWriter.reopen(info.path)
    return writer, list(read_run(info.path).trials), settings


def _changed(old: RunHeader, new: RunHeader) -> list[str]:
    """What is not as it was when the run began, one sentence each: its last trials would not be like its first."""
    versions = {switch.label: switch for switch in old.switches}
    switches = [
        f"{switch.label} was {versions[switch.label].version} {versions[switch.label].settings}, "
        f"now it is {switch.version} {switch.settings}"
        for switch in new.switches
        if switch.label in versions and switch != versions[switch.label]
    ]
    gone = [f"{label} is not here" for label in versions if label not in {switch.label for switch in new.switches}]
    settings = [
        f"{key}: {old.settings[key]} against {value}"
        for key, value in new.settings.items()
        if key in old.settings and old.settings[key] != value
    ]
    return [*differing_facts(old, new), *switches, *gone, *settings]


def _calibration(
    prepared: Prepared, facts: HostFacts, settings: LiveSettings, options: RunOptions
) -> Calibration | None:
    """What the tester can do: as measured within a day, or measured now (a few seconds)."""
    known = known_calibration(prepared, facts, settings)
    if known is not None or prepared.simulated or not plain_frame_sizes(prepared.plan):
        return known
    console = Console(stderr=True, quiet=options.quiet)
    console.print("calibrating the tester against itself", style="dim", highlight=False)
    return make_calibration(prepared, facts, settings)


def _announce(
    writer: RunWriter, prepared: Prepared, measured: Sequence[Point], options: RunOptions, known: int
) -> None:
    if options.quiet:
        return
    console = Console(stderr=True)
    for entry in prepared.skipped:
        console.print(f"left out: {entry.what}: {entry.reason}", markup=False, highlight=False, soft_wrap=True)
    for warning in writer.header.warnings:
        console.print(f"note: {warning}", markup=False, highlight=False, style="dim", soft_wrap=True)
    console.print(describe(prepared.plan), markup=False, highlight=False, style="dim", soft_wrap=True)
    time = duration_words(estimate(prepared.plan, measured))
    taken_up = f", {known} trials are there" if known else ""
    console.print(
        f"{len(measured)} points, about {time}{taken_up}; trials go to {writer.path}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _measure(
    prepared: Prepared,
    facts: HostFacts,
    settings: LiveSettings,
    writer: RunWriter,
    options: RunOptions,
    trials: list[Trial],
) -> int:
    """Run the campaign; whatever happens, the folder is closed in order and nothing is left running."""
    pace = Pace(stages(prepared.plan, prepared.points, measured_points(prepared, settings.hugepages)))
    try:
        with (
            measuring(facts, prepared.plan.switch_cores),
            Supervisor() as supervisor,
            ProgressListener(pace, prepared.plan.throughput.duration_s, options.quiet) as progress,
        ):
            Campaign(
                plan=prepared.plan,
                points=prepared.points,
                adapters=prepared.adapters,
                cpus=cpus_of(facts, prepared.plan.switch_cores),
                settings=settings,
                writer=writer,
                listener=Listeners(pace, progress, StatusListener(pace, writer.path, prepared.plan)),
                supervisor=supervisor,
                trials=trials,
            ).run()
    except KeyboardInterrupt:
        writer.finish("interrupted", "stopped by Ctrl-C or SIGTERM")
        return INTERRUPTED
    except PlanebenchError as error:
        with contextlib.suppress(StoreError):  # the folder may be what failed: full disk, removed
            writer.finish("interrupted", str(error))
        raise
    writer.finish()
    return 0


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does; after the first, all are ignored until the process ends in order."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, frame: FrameType | None) -> None:
        for caught in signals:
            signal.signal(caught, signal.SIG_IGN)
        raise KeyboardInterrupt

    old = {number: signal.signal(number, interrupt) for number in signals}
    try:
        yield
    finally:
        for number, handler in old.items():
            if signal.getsignal(number) is interrupt:
                signal.signal(number, handler)


def _show(folder: Path, options: RunOptions) -> None:
    """The table, the page if it is wanted, and where they are."""
    derived = Derived(read_run(folder))
    where = f"report: {write_report(derived, folder / REPORT_FILE)}" if options.page else f"run: {folder}"
    if options.json:
        from planebench.report.export import to_json

        sys.stdout.buffer.write(to_json(derived))
    elif not options.quiet:
        print_table(derived)
        print(f"\n{where}")
