# SPDX-License-Identifier: BSD-3-Clause
"""``planebench outage``: restart a VNF or the switch under traffic; show the outage and the frames lost."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planebench.analysis.outages import outage_reports
from planebench.cli.options import print_table
from planebench.cli.progress import Bar
from planebench.measure.machine import terminable
from planebench.measure.outage import OutageRequest, OutageSettings, measure_outages, open_outages
from planebench.model.errors import INTERRUPTED, UsageError
from planebench.model.outage import Outage, OutageReport, OutageReports
from planebench.model.scenarios import parse_frame_size
from planebench.model.words import count
from planebench.plan.override import items
from planebench.store import read_run
from planebench.store.codec import to_json
from planebench.testbed.rates import parse_rate


def outage(
    *,
    hugepages: bool | None,
    runs: Path | None,
    json: bool,
    quiet: bool,
    repetitions: int,
    rate: str,
    frame_size: int,
    restart: str,
    kill: bool,
    switch: str,
    **more: Any,
) -> int:
    """Measure, store and show; ``more`` are fields of OutageSettings. Returns the exit code: 0, or 130.

    Raises UsageError and NotInstalledError before anything starts.
    """
    if repetitions < 1:
        raise UsageError(f"--repetitions: {repetitions} is not valid. Valid: 1 or more")
    request = OutageRequest(restart, parse_rate(rate), parse_frame_size(frame_size), kill=kill)
    switches = tuple(dict.fromkeys(items("--switch", switch)))
    settings = OutageSettings(request, switches, repetitions=repetitions, **more)
    with terminable():
        session = open_outages(settings, runs_dir=runs, hugepages=hugepages)
        steps = settings.repetitions * len(session.survey.measured)
        with Bar(steps, quiet=quiet) as bar:

            def done(label: str, found: Outage) -> None:
                bar.advance()
                words = f"outage {found.silence.duration_ns / 1e6:.1f} ms, {found.lost_packets} frames lost"
                bar.line(f"[{bar.done}/{bar.steps}] {label}: {words}")

            status = measure_outages(session, settings, bar.working_on, done)
    reports = outage_reports(read_run(session.folder))
    if json:
        sys.stdout.write(to_json(OutageReports(reports), indent=1).decode() + "\n")
    elif not quiet:
        _show(reports)
        print(f"run: {session.folder}")
    return 0 if status == "complete" else INTERRUPTED


def _show(reports: Sequence[OutageReport]) -> None:
    for report in reports:
        how = "killed" if report.killed else "ended"
        traffic = f"{count(round(report.rate_pps))} frames/s of {report.frame_size_bytes} B"
        print(f"{report.switch}, {report.version}, {report.chain}: {report.victim} {how} and started again")
        print(f"under {traffic}; times in ms, then frames")
        rows = []
        for number, outage in enumerate(report.outages, start=1):
            times_ns = (outage.silence.duration_ns, outage.calm.duration_ns, outage.restart_ns)
            packets = (
                outage.lost_packets,
                outage.unsent_ring_full_packets,
                outage.dropped_packets,
                outage.gone_packets,
                outage.intended_packets,
                outage.unsent_late_packets,
            )
            rows.append((number, *(f"{ns / 1e6:.1f}" for ns in times_ns), *map(count, packets)))
        names = ("", "outage", "calm", "restart", "lost", "not taken", "dropped", "gone", "of", "late")
        print_table(names, rows, justify="right")
        for reason in report.functional:
            print(f"packet counts are valid, times are not representative: {reason}")
        median = f"{report.silence_median_ns / 1e6:.1f} ms, {count(round(report.lost_median_packets))} frames"
        print(f"median of {len(report.outages)}: outage {median}\n")
