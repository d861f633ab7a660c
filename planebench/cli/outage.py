# SPDX-License-Identifier: BSD-3-Clause
"""``planebench outage``: restart a VNF or the switch under traffic; show the outage and the frames lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planebench.analysis.metrics.column import plain
from planebench.analysis.outages import outage_reports
from planebench.cli.options import print_json
from planebench.cli.progress import Bar
from planebench.measure.machine import terminable
from planebench.measure.outage import OutageRequest, OutageSettings, measure_outages, open_outages
from planebench.model.errors import INTERRUPTED, UsageError
from planebench.model.outage import Outage
from planebench.model.scenarios import parse_frame_size
from planebench.plan.override import items
from planebench.report.sections import Sentences
from planebench.report.terminal.table import print_parts
from planebench.report.vnfs import outage_sentences, outage_table
from planebench.store import read_run
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
    run = read_run(session.folder)
    if json:
        print_json({"reports": [plain(it) for it in outage_reports(run)]})
    elif not quiet:
        print_parts([outage_table(run), Sentences(outage_sentences(run))])
        print(f"\nrun: {session.folder}")
    return 0 if status == "complete" else INTERRUPTED
