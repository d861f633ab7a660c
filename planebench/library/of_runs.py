# SPDX-License-Identifier: BSD-3-Clause
"""Tables of trials and runs: trials, their evidence and threads, comparisons, conditions, what was left out, runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planebench.library.source import Source
from planebench.library.table import TEXTS, Column, Table
from planebench.model.header import Skipped
from planebench.model.records import CoreDistance, DirectionCounts, ThreadEvidence, Trial
from planebench.model.results import Comparison
from planebench.model.run import Run
from planebench.stats.fairness import Cell, Condition
from planebench.store.query import COLUMNS, Getter


@dataclass(frozen=True, slots=True)
class OfTrial:
    """A row of a trial."""

    run: Run
    trial: Trial


@dataclass(frozen=True, slots=True)
class OfDirection(OfTrial):
    """A row of a direction of a trial."""

    direction: DirectionCounts


@dataclass(frozen=True, slots=True)
class OfThread(OfTrial):
    """A row of a polling thread during a trial."""

    thread: ThreadEvidence


@dataclass(frozen=True, slots=True)
class OfComparison:
    """A row of a comparison."""

    run_id: str
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class OfCondition:
    """A row of a condition and switch."""

    run_id: str
    condition: Condition
    switch: str
    cell: Cell


@dataclass(frozen=True, slots=True)
class OfSkipped:
    """A row of something that is not there."""

    run_id: str
    kind: str
    skipped: Skipped


def _trial_column(kind: str, get: Getter) -> Column[OfDirection]:
    return kind, lambda it: get(it.run, it.trial, it.direction)


TRIALS: Mapping[str, Column[OfDirection]] = {name: _trial_column(*column) for name, column in COLUMNS.items()}

_TRIAL: Mapping[str, Column[OfTrial]] = {
    "run_id": ("VARCHAR", lambda it: it.run.header.run_id),
    "trial_index": ("BIGINT", lambda it: it.trial.index),
    "switch": ("VARCHAR", lambda it: it.trial.point.switch),
    "role": ("VARCHAR", lambda it: it.trial.role),
    "verdict": ("VARCHAR", lambda it: it.trial.verdict.kind.value),
    "verdict_reasons": (TEXTS, lambda it: list(it.trial.verdict.reasons)),
}


def _median_ns(distance: CoreDistance | None) -> float | None:
    return None if distance is None else distance.median_ns


def _band(distance: CoreDistance | None) -> str | None:
    return None if distance is None else distance.band


EVIDENCE: Mapping[str, Column[OfTrial]] = {
    **_TRIAL,
    "poll_gaps": ("BIGINT", lambda it: it.trial.evidence.poll_gaps),
    "poll_gap_sum_ns": ("BIGINT", lambda it: it.trial.evidence.poll_gap_sum_ns),
    "poll_gap_max_ns": ("BIGINT", lambda it: it.trial.evidence.poll_gap_max_ns),
    "poll_gap_threshold_ns": ("BIGINT", lambda it: it.trial.evidence.poll_gap_threshold_ns),
    "steal_ns": ("BIGINT", lambda it: it.trial.evidence.steal_ns),
    "distance_before_ns": ("DOUBLE", lambda it: _median_ns(it.trial.evidence.distance_before)),
    "distance_after_ns": ("DOUBLE", lambda it: _median_ns(it.trial.evidence.distance_after)),
    "band_before": ("VARCHAR", lambda it: _band(it.trial.evidence.distance_before)),
    "band_after": ("VARCHAR", lambda it: _band(it.trial.evidence.distance_after)),
    "tester_busy_share": ("DOUBLE", lambda it: it.trial.evidence.tester_busy_share),
    "switch_busy_share": ("DOUBLE", lambda it: it.trial.switch.busy_share),
    "foreign_packets": ("BIGINT", lambda it: it.trial.evidence.foreign_packets),
    "stale_packets": ("BIGINT", lambda it: it.trial.evidence.stale_packets),
    "shared_cpu": ("BOOLEAN", lambda it: it.trial.evidence.shared_cpu),
}

THREADS: Mapping[str, Column[OfThread]] = {
    **_TRIAL,
    "owner": ("VARCHAR", lambda it: it.thread.owner),
    "thread": ("VARCHAR", lambda it: it.thread.thread),
    "cpu": ("INTEGER", lambda it: it.thread.cpu),
    "run_ns": ("BIGINT", lambda it: it.thread.run_ns),
    "wait_ns": ("BIGINT", lambda it: it.thread.wait_ns),
    "involuntary_switches": ("BIGINT", lambda it: it.thread.involuntary_switches),
}

COMPARISONS: Mapping[str, Column[OfComparison]] = {
    "run_id": ("VARCHAR", lambda it: it.run_id),
    "a": ("VARCHAR", lambda it: it.comparison.a),
    "b": ("VARCHAR", lambda it: it.comparison.b),
    "point": ("VARCHAR", lambda it: it.comparison.point),
    "metric": ("VARCHAR", lambda it: it.comparison.metric),
    "load": ("VARCHAR", lambda it: it.comparison.load),
    "distinguishable": ("BOOLEAN", lambda it: it.comparison.distinguishable),
    "ratio": ("DOUBLE", lambda it: it.comparison.ratio),
    "low": ("DOUBLE", lambda it: it.comparison.low),
    "high": ("DOUBLE", lambda it: it.comparison.high),
    "trials_a": ("INTEGER", lambda it: it.comparison.trials_a),
    "trials_b": ("INTEGER", lambda it: it.comparison.trials_b),
    "band": ("VARCHAR", lambda it: it.comparison.band),
    "note": ("VARCHAR", lambda it: it.comparison.note),
}

CONDITIONS: Mapping[str, Column[OfCondition]] = {
    "run_id": ("VARCHAR", lambda it: it.run_id),
    "key": ("VARCHAR", lambda it: it.condition.key),
    "meaning": ("VARCHAR", lambda it: it.condition.meaning),
    "state": ("VARCHAR", lambda it: it.condition.state),
    "switch": ("VARCHAR", lambda it: it.switch),
    "value": ("VARCHAR", lambda it: it.cell.text),
    "measured": ("BOOLEAN", lambda it: it.cell.measured),
    "claim": ("VARCHAR", lambda it: it.cell.claim),
}

SKIPPED: Mapping[str, Column[OfSkipped]] = {
    "run_id": ("VARCHAR", lambda it: it.run_id),
    "kind": ("VARCHAR", lambda it: it.kind),
    "what": ("VARCHAR", lambda it: it.skipped.what),
    "reason": ("VARCHAR", lambda it: it.skipped.reason),
}


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(dict(value), ensure_ascii=False)


RUNS: Mapping[str, Column[Run]] = {
    "run_id": ("VARCHAR", lambda it: it.header.run_id),
    "name": ("VARCHAR", lambda it: it.header.name),
    "started_at": ("VARCHAR", lambda it: it.header.started_at),
    "finished_at": ("VARCHAR", lambda it: None if it.finished is None else it.finished.finished_at),
    "status": ("VARCHAR", lambda it: None if it.finished is None else it.finished.status),
    "command": (TEXTS, lambda it: list(it.header.command)),
    "planebench_version": ("VARCHAR", lambda it: it.header.planebench_version),
    "schema_version": ("INTEGER", lambda it: it.header.schema_version),
    "switches": (TEXTS, lambda it: list(it.switch_labels)),
    "papers": (TEXTS, lambda it: list(it.header.papers)),
    "warnings": (TEXTS, lambda it: list(it.warnings)),
    "host": ("VARCHAR", lambda it: _json(it.header.host)),
    "settings": ("VARCHAR", lambda it: _json(it.header.settings)),
    "environment": ("VARCHAR", lambda it: _json(it.header.environment)),
}


def _directions(source: Source) -> Iterator[OfDirection]:
    return (OfDirection(source.run, trial, way) for trial in source.run.trials for way in trial.directions)


def _trials(source: Source) -> Iterator[OfTrial]:
    return (OfTrial(source.run, trial) for trial in source.run.trials)


def _threads(source: Source) -> Iterator[OfThread]:
    return (OfThread(source.run, trial, it) for trial in source.run.trials for it in trial.evidence.threads)


def _comparisons(source: Source) -> Iterator[OfComparison]:
    return (OfComparison(source.run.header.run_id, comparison) for comparison in source.comparisons)


def _conditions(source: Source) -> Iterator[OfCondition]:
    labels = [switch.label for switch in source.run.header.switches]
    for condition in source.conditions:
        for label, cell in zip(labels, condition.cells, strict=True):
            yield OfCondition(source.run.header.run_id, condition, label, cell)


def _skipped(source: Source) -> Iterator[OfSkipped]:
    header = source.run.header
    yield from (OfSkipped(header.run_id, "skipped", it) for it in source.run.skipped)
    yield from (OfSkipped(header.run_id, "left out", it) for it in header.left_out)


RUN_TABLES: Mapping[str, Table[Any]] = {
    "trials": Table("a trial and direction: counts, rate, verdict", TRIALS, _directions),
    "evidence": Table("a trial: what its verdict rests on", EVIDENCE, _trials),
    "threads": Table("a trial and polling thread: what the scheduler did to it", THREADS, _threads),
    "comparisons": Table("a pair of switches, point and metric: b / a with its interval", COMPARISONS, _comparisons),
    "conditions": Table("a condition of the fairness manifest and switch", CONDITIONS, _conditions),
    "skipped": Table("what did not run, or what a suite leaves out, and why", SKIPPED, _skipped),
    "runs": Table("a run: when, how, on what; `host`, `settings`, `environment` are JSON", RUNS, lambda s: (s.run,)),
}
