# SPDX-License-Identifier: BSD-3-Clause
"""Restarts under traffic, from the trials of a run: one report for each switch, victim and traffic."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.chain_name import OWN, vnf_name
from planebench.model.outage import Outage, OutageReport
from planebench.model.records import Trial, VerdictKind
from planebench.model.run import Run

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
        reason for t, _ in measured if t.verdict.kind is VerdictKind.FUNCTIONAL for reason in t.verdict.reasons
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
