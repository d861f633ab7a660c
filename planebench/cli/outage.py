# SPDX-License-Identifier: BSD-3-Clause
"""``planebench outage``: restart a VNF, or the switch, under traffic; show how long nothing came, and what was lost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from planebench.cli.bar import Bar
from planebench.measure.outage import OutageRequest
from planebench.model.errors import INTERRUPTED, UsageError
from planebench.model.outage import Outage, OutageReport, OutageReports
from planebench.model.words import count
from planebench.plans.items import items
from planebench.running.machine import terminable
from planebench.running.outages import OutageSettings, measure_outages, open_outages
from planebench.scenarios.registry import parse_frame_size
from planebench.stats.outages import outage_reports
from planebench.store import read_run
from planebench.store.codec import to_json
from planebench.traffic.rates import parse_rate


@dataclass(frozen=True, slots=True)
class OutageOptions:
    """The command line of ``outage``."""

    switch: str
    chain: str
    restart: str
    hosting: str = "separate"
    kill: bool = False
    rate: str = "10k"
    frame_size: int = 64
    repetitions: int = 5
    wire: str = "virtio"
    ring_size: int = 256
    hugepages: bool | None = None
    runs: Path | None = None
    json: bool = False
    quiet: bool = False


def outage(options: OutageOptions) -> int:
    """Measure, store and show. Exit code: 0, or 130. Raises UsageError and NotInstalledError before anything starts."""
    settings = _settings(options)
    try:
        with terminable():
            session = open_outages(settings, runs_dir=options.runs, hugepages=options.hugepages)
            steps = settings.repetitions * len(session.survey.measured)
            with Bar(steps, quiet=options.quiet) as bar:

                def done(label: str, found: Outage) -> None:
                    bar.advance()
                    bar.line(f"[{bar.done}/{bar.steps}] {label}: {_line(found)}")

                status = measure_outages(session, settings, bar.working_on, done)
    except KeyboardInterrupt:
        return INTERRUPTED
    reports = outage_reports(read_run(session.folder))
    if options.json:
        sys.stdout.write(to_json(OutageReports(reports), indent=1).decode() + "\n")
    elif not options.quiet:
        _show(reports)
        print(f"run: {session.folder}")
    return 0 if status == "complete" else INTERRUPTED


def _settings(options: OutageOptions) -> OutageSettings:
    if options.repetitions < 1:
        raise UsageError(f"--repetitions: {options.repetitions} is not valid. Valid: 1 or more")
    request = OutageRequest(
        options.restart, parse_rate(options.rate), parse_frame_size(options.frame_size), kill=options.kill
    )
    return OutageSettings(
        request,
        tuple(dict.fromkeys(items("--switch", options.switch))),
        options.chain,
        options.hosting,
        options.wire,
        options.ring_size,
        options.repetitions,
    )


def _line(it: Outage) -> str:
    return f"outage {it.silence.duration_ns / 1e6:.1f} ms, {it.lost_packets} frames lost"


def _show(reports: Sequence[OutageReport]) -> None:
    console = Console()
    for report in reports:
        how = "killed" if report.killed else "ended"
        traffic = f"{count(round(report.rate_pps))} frames/s of {report.frame_size_bytes} B"
        console.print(
            f"[bold]{report.switch}[/], {report.version}, {report.chain}: {report.victim} {how} and started again\n"
            f"under {traffic}; times in ms, then frames",
            highlight=False,
            soft_wrap=True,
        )
        console.print(_table(report))
        for reason in report.functional:
            console.print(
                f"packet counts are valid, times are not representative: {reason}", markup=False, soft_wrap=True
            )
        median = f"{report.silence_median_ns / 1e6:.1f} ms, {count(round(report.lost_median_packets))} frames"
        console.print(f"median of {len(report.outages)}: outage {median}\n", highlight=False)


def _table(report: OutageReport) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("", "outage", "calm", "restart", "lost", "not taken", "dropped", "gone", "of", "late"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, it in enumerate(report.outages, start=1):
        table.add_row(
            str(number),
            *(f"{ns / 1e6:.1f}" for ns in (it.silence.duration_ns, it.calm.duration_ns, it.restart_ns)),
            count(it.lost_packets),
            count(it.unsent_ring_full_packets),
            count(it.dropped_packets),
            count(it.gone_packets),
            count(it.intended_packets),
            count(it.unsent_late_packets),
        )
    return table
