# SPDX-License-Identifier: BSD-3-Clause
"""The columns of trials and runs: trials, their evidence and threads, comparisons, conditions, what was left out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial

from planebench.analysis.compare import Derived
from planebench.analysis.disturbance import OWNERS
from planebench.analysis.metrics.column import (
    Column,
    Int32,
    Number,
    Table,
    TableRow,
    Texts,
    attributes,
    point_columns,
    verdict_columns,
)
from planebench.model.records import CoreDistance
from planebench.model.results import SWITCH_FIGURES, SwitchFigure, median
from planebench.model.time_had import stood_in

_RUN_ID = Column("run_id", str, "run.header.run_id")
_SWITCH, *_POINT = point_columns("trial.point").values()
_INDEX = Column("trial_index", int, "trial.index")
_VERDICT = verdict_columns("trial.verdict")


def _switch(figure: SwitchFigure) -> Column:
    return Column(f"switch_{figure.name}", Number, lambda it: figure.of(it.trial.switch))


def _additions(place: int, when: str, it: TableRow) -> float | None:
    distance: CoreDistance | None = getattr(it.trial.evidence, f"distance_{when}")
    return distance.additions_per_cycle[place] if distance and distance.additions_per_cycle else None


TRIAL = (
    _RUN_ID,
    _INDEX,
    _SWITCH,
    Column("version", str, lambda it: it.run.version_of(it.trial.point.switch)),
    *_POINT,
    *attributes("trial", role=str),
    Column("load", str, "trial.load.label"),
    *attributes("trial", repetition=Int32, started_at=str),
    *_VERDICT,
    *attributes("trial", band=str | None),
    Column("duration_ns", int, "trial.offered_duration_ns"),
    Column("flow", str, "direction.name"),
    *attributes("direction", intended_packets=int, offered_packets=int, forwarded_packets=int, duplicate_packets=int),
    *attributes("direction", reordered_packets=int, corrupt_packets=int, offered_bytes=int, forwarded_bytes=int),
    *attributes("direction", unchecked_packets=int, loss_ratio=float),
    Column("flow_pps", float, lambda it: it.direction.forwarded_packets * 1e9 / max(it.trial.offered_duration_ns, 1)),
    Column("trial_pps", float, "trial.throughput_pps"),
    Column("stood_share", float, lambda it: 1 - stood_in(it.trial).had),
    *(_switch(figure) for figure in SWITCH_FIGURES if figure.over is median),
    Column("fib_updates_per_s", Number, "trial.updates.per_s"),
    *attributes("trial", start=Int32, search=str),
)

_TRIAL = (_RUN_ID, _INDEX, _SWITCH, *attributes("trial", role=str), *_VERDICT)

EVIDENCE = (
    *_TRIAL,
    *attributes("trial.evidence", poll_gaps=int, poll_gap_sum_ns=int, poll_gap_max_ns=int, poll_gap_threshold_ns=int),
    *attributes("trial.evidence", steal_ns=int),
    Column("distance_before_ns", Number, "trial.evidence.distance_before.median_ns"),
    Column("distance_after_ns", Number, "trial.evidence.distance_after.median_ns"),
    Column("band_before", str | None, "trial.evidence.distance_before.band"),
    Column("band_after", str | None, "trial.evidence.distance_after.band"),
    *(
        Column(f"{owner}_additions_per_cycle_{when}", Number, partial(_additions, place, when))
        for place, owner in enumerate(OWNERS)
        for when in ("before", "after")
    ),
    *attributes("trial.evidence", tester_busy_share=Number),
    Column("switch_busy_share", Number, "trial.switch.busy_share"),
    *attributes("trial.evidence", foreign_packets=int, stale_packets=int, shared_cpu=bool),
    *attributes("trial.evidence", interrupt_count=int | None),
)

THREAD = (
    *_TRIAL,
    *attributes("thread", owner=str, thread=str, cpu=Int32, run_ns=int, wait_ns=int, involuntary_switches=int),
)

COMPARISON = (
    _RUN_ID,
    *attributes("comparison", a=str, b=str, point=str, metric=str, load=str, distinguishable=bool),
    *attributes("comparison", ratio=float, low=Number, high=Number, trials_a=Int32, trials_b=Int32),
    *attributes("comparison", note=str, answer=str, more_starts=int | None),
    *attributes("comparison", more_minutes=Number, detectable=Number, starts_a=Int32, starts_b=Int32),
)

CONDITION = (
    _RUN_ID,
    *attributes("condition", key=str, meaning=str, state=str),
    Column("switch", str, "switch"),
    Column("value", str, "cell.text"),
    *attributes("cell", measured=bool, claim=str),
)

SKIPPED = (_RUN_ID, Column("kind", str, "kind"), *attributes("skipped", what=str, reason=str))


OUTAGE = (
    *_TRIAL,
    *attributes("trial", repetition=Int32),
    *attributes("restart", victim=str, killed=bool),
    Column("rate_pps", float, "trial.load.pps_per_direction"),
    *_POINT,
    Column("outage_ns", int, "restart.outage.silence.duration_ns"),
    Column("calm_ns", int, "restart.outage.calm.duration_ns"),
    *attributes("restart.outage", restart_ns=int, intended_packets=int, forwarded_packets=int, lost_packets=int),
    *attributes("restart.outage", unsent_late_packets=int, unsent_ring_full_packets=int, corrupt_packets=int),
    *attributes("restart.outage", dropped_packets=int, gone_packets=int),
)


def _json(name: str) -> Column:
    """Return a column for a dictionary of the header, as JSON."""
    return Column(name, str, lambda it: json.dumps(dict(getattr(it.run.header, name)), ensure_ascii=False))


_SUBJECT: Mapping[str, type] = {"repository": str, "commit": str, "committed_at": str, "dirty": bool, "switch": str}
"""The facts of the source tree that was measured, each null if it is unknown."""

RUN = (
    _RUN_ID,
    *attributes("run.header", name=str, started_at=str),
    *attributes("run.finished", finished_at=str, status=str),
    *attributes("run.header", command=Texts, planebench_version=str, schema_version=Int32),
    Column("switches", Texts, "run.switch_labels"),
    *attributes("run.header", papers=Texts),
    *attributes("run", warnings=Texts),
    *(_json(name) for name in ("host", "settings", "environment", "tags")),
    *attributes("run.header", testbed=str),
    *(Column(f"subject_{name}", kind | None, f"run.header.subject.{name}") for name, kind in _SUBJECT.items()),
)


def _conditions(derived: Derived) -> Iterator[TableRow]:
    labels = [switch.label for switch in derived.run.header.switches]
    for condition in derived.conditions:
        for label, cell in zip(labels, condition.cells, strict=True):
            yield TableRow(run=derived.run, condition=condition, switch=label, cell=cell)


def _skipped(derived: Derived) -> Iterator[TableRow]:
    header = derived.run.header
    for kind, every in (("skipped", derived.run.skipped), ("left out", header.left_out)):
        yield from (TableRow(run=derived.run, kind=kind, skipped=it) for it in every)


RUN_TABLES: Mapping[str, Table] = {
    "trials": Table(
        "a trial and direction: counts, rate, verdict",
        TRIAL,
        lambda it: (TableRow(run=it.run, trial=t, direction=d) for t in it.run.trials for d in t.directions),
    ),
    "evidence": Table(
        "a trial: the evidence for its verdict",
        EVIDENCE,
        lambda it: (TableRow(run=it.run, trial=t) for t in it.run.trials),
    ),
    "threads": Table(
        "a trial and polling thread: the effects of the scheduler on it",
        THREAD,
        lambda it: (
            TableRow(run=it.run, trial=t, thread=thread) for t in it.run.trials for thread in t.evidence.threads
        ),
    ),
    "comparisons": Table(
        "a pair of switches, test point and metric: b / a with its confidence interval",
        COMPARISON,
        lambda it: (TableRow(run=it.run, comparison=comparison) for comparison in it.comparisons),
    ),
    "conditions": Table("one of the test conditions and a switch", CONDITION, _conditions),
    "outages": Table(
        "a restart under traffic: the duration without frames, and the losses",
        OUTAGE,
        lambda it: (TableRow(run=it.run, trial=t, restart=t.restart) for t in it.run.trials if t.restart is not None),
    ),
    "skipped": Table("test points that were not measured or that a suite omits, and the reason", SKIPPED, _skipped),
    "runs": Table(
        "a run: when, how, on what; `host`, `settings`, `environment`, `tags` are JSON",
        RUN,
        lambda it: [TableRow(run=it.run)],
    ),
}
