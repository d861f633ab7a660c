# SPDX-License-Identifier: BSD-3-Clause
"""Restarts under traffic, from the trials of a run: one report for each switch, victim and traffic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from planebench.model.chain_name import OWN, vnf_name
from planebench.model.outage import Outage, OutageReport
from planebench.model.records import Trial, VerdictKind
from planebench.model.results import Comparison
from planebench.model.run import Run
from planebench.stats.effect import ratio_effect

_Key = tuple[object, ...]


def outage_reports(run: Run) -> tuple[OutageReport, ...]:
    """Return a report for each switch, victim and traffic of a run, in the order in which they were measured first."""
    groups: dict[_Key, list[tuple[Trial, Outage]]] = {}
    for trial in run.trials:
        if trial.restart is not None:
            key = (trial.point, trial.restart.victim, trial.restart.killed, trial.load)
            groups.setdefault(key, []).append((trial, trial.restart.outage))
    return tuple(_report(run, measured) for measured in groups.values())


def _report(run: Run, measured: Sequence[tuple[Trial, Outage]]) -> OutageReport:
    trial = measured[0][0]
    point, restart = trial.point, trial.restart
    assert restart is not None
    functional = dict.fromkeys(
        reason for t, _ in measured if t.verdict.kind is VerdictKind.FUNCTIONAL for reason in t.verdict.texts
    )
    return OutageReport(
        switch=point.switch,
        version=run.version_of(point.switch),
        chain=",".join(
            hosting if hosting in OWN else f"{hosting}:{vnf_name(point.chain, number)}"
            for number, hosting in enumerate(point.hostings)
        ),
        victim=restart.victim,
        killed=restart.killed,
        rate_pps=trial.load.pps_per_direction or 0.0,
        frame_size_bytes=point.frame_size_bytes,
        functional=tuple(functional),
        outages=tuple(outage for _, outage in measured),
        hosted=next((it.hosting for it in run.conditions if it.switch == point.switch), ()),
    )


def compare_outages(a: Sequence[Run], b: Sequence[Run] = ()) -> tuple[Comparison, ...]:
    """Compare the outages of like restarts: of every pair of switches of ``a``, or of each switch in ``a`` and
    ``b``."""
    reports_a, reports_b = ([report for run in runs for report in outage_reports(run)] for runs in (a, b))
    if not b:
        pairs = list(combinations(reports_a, 2))
        suffixes = ("", "")
    else:
        pairs = [(x, y) for x in reports_a for y in reports_b if x.switch == y.switch]
        ids = (",".join(run.header.run_id for run in runs) for runs in (a, b))
        suffixes = tuple(f"@{it}" for it in ids)  # type: ignore[assignment]
    return tuple(found for x, y in pairs for found in _compared(x, y, suffixes))


def _compared(a: OutageReport, b: OutageReport, suffixes: tuple[str, str]) -> Iterator[Comparison]:
    """Yield the ratio of two outages, b over a; nothing where the restarts or their traffic differ."""
    if _restart(a) != _restart(b) or a.functional or b.functional:
        return
    of_a, of_b = ([max(float(it.silence.duration_ns), 1.0) for it in report.outages] for report in (a, b))
    effect = ratio_effect(of_a, of_b)
    yield Comparison(
        a=a.switch + suffixes[0],
        b=b.switch + suffixes[1],
        point=f"{a.chain}, {a.victim} {'killed' if a.killed else 'ended'}, {a.frame_size_bytes} B",
        metric="outage",
        ratio=effect.ratio,
        low=effect.low,
        high=effect.high,
        answer=effect.answer,
        trials_a=len(of_a),
        trials_b=len(of_b),
        load=f"{a.rate_pps:.12g}pps",
        starts_a=len(of_a),
        starts_b=len(of_b),
    )


def _restart(report: OutageReport) -> tuple[object, ...]:
    return report.chain, report.victim, report.killed, report.rate_pps, report.frame_size_bytes
