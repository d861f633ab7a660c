# SPDX-License-Identifier: BSD-3-Clause
"""The columns of trials and runs: trials, their evidence and threads, comparisons, conditions, what was left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planebench.metrics.column import Column, Int32, Table, attributes
from planebench.model.header import Skipped
from planebench.model.outage import Restart
from planebench.model.records import DirectionCounts, ThreadEvidence, Trial
from planebench.model.results import Comparison
from planebench.model.run import Run
from planebench.model.switch_figures import SWITCH_FIGURES, SwitchFigure, median
from planebench.stats.derived import Derived
from planebench.stats.fairness import Cell, Condition

Number = float | None
Texts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OfRun:
    """A row for a run."""

    run: Run


@dataclass(frozen=True, slots=True)
class OfTrial(OfRun):
    """A row for one trial."""

    trial: Trial


@dataclass(frozen=True, slots=True)
class OfDirection(OfTrial):
    """A row for one direction of a trial."""

    direction: DirectionCounts


@dataclass(frozen=True, slots=True)
class OfOutage(OfTrial):
    """A row for one restart under traffic."""

    restart: Restart


@dataclass(frozen=True, slots=True)
class OfThread(OfTrial):
    """A row for one polling thread during a trial."""

    thread: ThreadEvidence


@dataclass(frozen=True, slots=True)
class OfComparison(OfRun):
    """A row for one comparison."""

    comparison: Comparison


@dataclass(frozen=True, slots=True)
class OfCondition(OfRun):
    """A row for one condition and switch."""

    condition: Condition
    switch: str
    cell: Cell


@dataclass(frozen=True, slots=True)
class OfSkipped(OfRun):
    """A row for something that did not run."""

    kind: str
    skipped: Skipped


_RUN_ID = Column("run_id", str, "run.header.run_id")
_POINT = "trial.point"
_INDEX = Column("trial_index", int, "trial.index")
_VERDICT = (
    Column("verdict", str, "trial.verdict.kind"),
    Column("verdict_reasons", Texts, "trial.verdict.texts"),
    Column("verdict_codes", Texts, "trial.verdict.codes"),
)


def _switch(figure: SwitchFigure) -> Column:
    return Column(f"switch_{figure.name}", Number, lambda it: figure.of(it.trial.switch))


TRIAL = (
    _RUN_ID,
    _INDEX,
    *attributes(_POINT, switch=str),
    Column("version", str, lambda it: it.run.version_of(it.trial.point.switch)),
    *attributes(_POINT, scenario=str, chain_length=Int32),
    Column("chain", str, "trial.point.chain_text"),
    *attributes(_POINT, direction=str, frame_size_bytes=Int32, traffic=str, wire=str, hosting=str),
    *attributes("trial", role=str),
    Column("load", str, "trial.load.label"),
    *attributes("trial", repetition=Int32, started_at=str),
    *_VERDICT,
    *attributes("trial", band=str | None),
    Column("duration_ns", int, "trial.offered_duration_ns"),
    Column("flow", str, "direction.name"),
    *attributes("direction", intended_packets=int, offered_packets=int, forwarded_packets=int, duplicate_packets=int),
    *attributes("direction", reordered_packets=int, corrupt_packets=int, offered_bytes=int, forwarded_bytes=int),
    *attributes("direction", loss_ratio=float),
    Column("flow_pps", float, lambda it: it.direction.forwarded_packets * 1e9 / max(it.trial.offered_duration_ns, 1)),
    Column("trial_pps", float, "trial.throughput_pps", "The rate of the whole trial, the same in each of its rows."),
    *(_switch(figure) for figure in SWITCH_FIGURES if figure.over is median),
    Column("fib_updates_per_s", Number, "trial.updates.per_s"),
    *attributes("trial", start=Int32, search=str),
)

_TRIAL = (_RUN_ID, _INDEX, *attributes(_POINT, switch=str), *attributes("trial", role=str), *_VERDICT)

EVIDENCE = (
    *_TRIAL,
    *attributes("trial.evidence", poll_gaps=int, poll_gap_sum_ns=int, poll_gap_max_ns=int, poll_gap_threshold_ns=int),
    *attributes("trial.evidence", steal_ns=int),
    Column("distance_before_ns", Number, "trial.evidence.distance_before.median_ns"),
    Column("distance_after_ns", Number, "trial.evidence.distance_after.median_ns"),
    Column("band_before", str | None, "trial.evidence.distance_before.band"),
    Column("band_after", str | None, "trial.evidence.distance_after.band"),
    *attributes("trial.evidence", tester_busy_share=Number),
    Column("switch_busy_share", Number, "trial.switch.busy_share"),
    *attributes("trial.evidence", foreign_packets=int, stale_packets=int, shared_cpu=bool),
)

THREAD = (
    *_TRIAL,
    *attributes("thread", owner=str, thread=str, cpu=Int32, run_ns=int, wait_ns=int, involuntary_switches=int),
)

COMPARISON = (
    _RUN_ID,
    *attributes("comparison", a=str, b=str, point=str, metric=str, load=str, distinguishable=bool),
    *attributes("comparison", ratio=float, low=Number, high=Number, trials_a=Int32, trials_b=Int32),
    *attributes("comparison", band=str | None, note=str),
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
    *attributes("trial.point", frame_size_bytes=Int32, chain=str),
    Column("outage_ns", int, "restart.outage.silence.duration_ns"),
    Column("calm_ns", int, "restart.outage.calm.duration_ns"),
    *attributes("restart.outage", restart_ns=int, intended_packets=int, forwarded_packets=int, lost_packets=int),
    *attributes("restart.outage", unsent_late_packets=int, unsent_ring_full_packets=int, corrupt_packets=int),
    *attributes("restart.outage", dropped_packets=int, gone_packets=int),
)


def _json(name: str) -> Column:
    """Return a column for a dictionary of the header, as JSON."""
    return Column(name, str, lambda it: json.dumps(dict(getattr(it.run.header, name)), ensure_ascii=False))


RUN = (
    _RUN_ID,
    *attributes("run.header", name=str, started_at=str),
    *attributes("run.finished", finished_at=str, status=str),
    *attributes("run.header", command=Texts, planebench_version=str, schema_version=Int32),
    Column("switches", Texts, "run.switch_labels"),
    *attributes("run.header", papers=Texts),
    *attributes("run", warnings=Texts),
    *(_json(name) for name in ("host", "settings", "environment")),
)


def _each_trial(derived: Derived) -> Iterator[OfTrial]:
    return (OfTrial(derived.run, trial) for trial in derived.run.trials)


def _directions(derived: Derived) -> Iterator[OfDirection]:
    return (OfDirection(derived.run, trial, way) for trial in derived.run.trials for way in trial.directions)


def _threads(derived: Derived) -> Iterator[OfThread]:
    return (OfThread(derived.run, trial, it) for trial in derived.run.trials for it in trial.evidence.threads)


def _outages(derived: Derived) -> Iterator[OfOutage]:
    return (OfOutage(derived.run, it, it.restart) for it in derived.run.trials if it.restart is not None)


def _comparisons(derived: Derived) -> Iterator[OfComparison]:
    return (OfComparison(derived.run, comparison) for comparison in derived.comparisons)


def _conditions(derived: Derived) -> Iterator[OfCondition]:
    labels = [switch.label for switch in derived.run.header.switches]
    for condition in derived.conditions:
        for label, cell in zip(labels, condition.cells, strict=True):
            yield OfCondition(derived.run, condition, label, cell)


def _skipped(derived: Derived) -> Iterator[OfSkipped]:
    yield from (OfSkipped(derived.run, "skipped", it) for it in derived.run.skipped)
    yield from (OfSkipped(derived.run, "left out", it) for it in derived.run.header.left_out)


def _run(derived: Derived) -> Iterator[OfRun]:
    yield OfRun(derived.run)


_Items = Callable[[Derived], Iterator[Any]]
_TABLES: tuple[tuple[str, str, tuple[Column, ...], _Items], ...] = (
    ("trials", "a trial and direction: counts, rate, verdict", TRIAL, _directions),
    ("evidence", "a trial: the evidence for its verdict", EVIDENCE, _each_trial),
    ("threads", "a trial and polling thread: the effects of the scheduler on it", THREAD, _threads),
    (
        "comparisons",
        "a pair of switches, test point and metric: b / a with its confidence interval",
        COMPARISON,
        _comparisons,
    ),
    ("conditions", "one of the test conditions and a switch", CONDITION, _conditions),
    ("outages", "a restart under traffic: the duration without frames, and the losses", OUTAGE, _outages),
    ("skipped", "test points that were not measured or that a suite omits, and the reason", SKIPPED, _skipped),
    ("runs", "a run: when, how, on what; `host`, `settings`, `environment` are JSON", RUN, _run),
)
RUN_TABLES: Mapping[str, Table] = {name: Table(what, columns, items) for name, what, columns, items in _TABLES}
