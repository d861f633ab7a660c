# SPDX-License-Identifier: BSD-3-Clause
"""Restarts under traffic, from the trials of a run: one report for each switch, victim and traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from planebench.analysis.answers import answers, one_of_many
from planebench.analysis.counting import cell_id
from planebench.model.chain_name import OWN, vnf_name
from planebench.model.grouped import grouped
from planebench.model.header import Run
from planebench.model.outage import OutageReport
from planebench.model.records import Point, VerdictKind
from planebench.model.results import Comparison
from planebench.model.text import without_folders


def outage_reports(run: Run) -> tuple[OutageReport, ...]:
    """Return a report for each switch, victim and traffic of a run, in the order in which they were measured first."""
    groups = grouped(
        ((trial.point, trial.restart.victim, trial.restart.killed, trial.load), (trial, trial.restart.outage))
        for trial in run.trials
        if trial.restart is not None
    )
    found = []
    for (point, victim, killed, load), measured in groups.items():
        functional = dict.fromkeys(
            reason for t, _ in measured if t.verdict.kind is VerdictKind.FUNCTIONAL for reason in t.verdict.texts
        )
        chain = (
            hosting if hosting in OWN else f"{hosting}:{vnf_name(point.chain, number)}"
            for number, hosting in enumerate(point.hostings)
        )
        report = OutageReport(
            switch=point.switch,
            version=run.version_of(point.switch),
            chain=",".join(chain),
            victim=victim,
            killed=killed,
            rate_pps=load.pps_per_direction or 0.0,
            frame_size_bytes=point.frame_size_bytes,
            functional=tuple(functional),
            outages=tuple(outage for _, outage in measured),
            hosted=next((it.hosting for it in run.conditions if it.switch == point.switch), ()),
            point=point.key,
        )
        found.append(report)
    return tuple(found)


def compare_outages(a: Sequence[Run], b: Sequence[Run] = ()) -> tuple[Comparison, ...]:
    """Compare the outages of like restarts, unless they are functional: of every pair of switches of ``a``, or of each
    switch in ``a`` and ``b``."""
    of_a, of_b = _restarts(a), _restarts(b)
    if not b:
        pairs = [(one, of_a[one], of_a[other]) for one, other in combinations(of_a, 2) if one[1:] == other[1:]]
        suffixes = ["", ""]
    else:
        pairs = [(key, of_a[key], of_b[key]) for key in of_a if key in of_b]
        suffixes = [f"@{','.join(run.header.run_id for run in runs)}" for runs in (a, b)]
    pairs = [(key, x, y) for key, x, y in pairs if not x.functional and not y.functional]
    told = answers([one_of_many(_silences(x), _silences(y), (x.switch, y.switch)) for _, x, y in pairs])
    return tuple(
        Comparison(
            a=x.switch + suffixes[0],
            b=y.switch + suffixes[1],
            point=restart,
            metric="outage",
            ratio=effect.ratio,
            low=effect.low,
            high=effect.high,
            answer=effect.answer,
            trials_a=len(x.outages),
            trials_b=len(y.outages),
            load=f"{x.rate_pps:.12g}pps",
            starts_a=len(x.outages),
            starts_b=len(y.outages),
        )
        for ((_, restart, _), x, y), effect in zip(pairs, told, strict=True)
    )


def _silences(report: OutageReport) -> list[float]:
    return [max(float(it.silence.duration_ns), 1.0) for it in report.outages]


def _restarts(runs: Sequence[Run]) -> dict[tuple[str, str, float], OutageReport]:
    """Return a report for each switch and restart in all runs; the key is the switch, the restart, and the rate."""
    found: dict[tuple[str, str, float], OutageReport] = {}
    for run, report in ((each, report) for each in runs for report in outage_reports(each)):
        point: dict[str, Any] = dict(report.point)
        cell = cell_id(Point(**{**point, "chain": without_folders(point["chain"], run.header.settings)}))
        key = report.switch, f"{cell}, {report.victim} {'killed' if report.killed else 'ended'}", report.rate_pps
        more = found.get(key, replace(report, outages=(), functional=()))
        found[key] = replace(
            more,
            outages=(*more.outages, *report.outages),
            functional=(*more.functional, *report.functional),
        )
    return found
