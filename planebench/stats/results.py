# SPDX-License-Identifier: BSD-3-Clause
"""The results of a run, one per point, from its trials. docs/design/results.md has the rules."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Collection, Sequence
from typing import Any

from planebench.model.chain_name import HOSTINGS
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import POINT_KEY, Point, Trial, Verdict, VerdictKind, loss_ratio
from planebench.model.results import Ledger, Result
from planebench.model.run import Run
from planebench.model.scenario import scenario_named
from planebench.model.switch_figures import figures_of, median
from planebench.model.time_had import rate_pps, stood_in
from planebench.stats.capacity import capacity_of
from planebench.stats.counting import VALID, Counted, saturating
from planebench.stats.disturbed import disturbed_switches
from planebench.stats.figure_intervals import Percentiles, Sampled, with_intervals
from planebench.stats.latency import control_summary, finding, latency_groups, percentile_blocks, summarise_latency
from planebench.stats.ledger import ledger, merge
from planebench.stats.searches import run_searches
from planebench.stats.starts import by_start, counted_blocks, cycles_blocks, geometric_mean, throughput_blocks
from planebench.stats.strata import strata
from planebench.stats.traffic import mean_forwarded_bytes, sent_traffic

__all__ = ["derive_results", "latency_groups"]

DIRECTION_ORDER = ("unidirectional", "bidirectional", "reversed")


def derive_results(run: Run) -> tuple[Result, ...]:
    """Return one result per point, ordered by scenario, chain, direction, frame size, then switch as in the header.

    A point of which only warm-up trials were run is there too, with a verdict that says so.
    """
    by_point = {p: ts for p, ts in run.by_point().items() if any(t.role != "outage" for t in ts)}
    labels = run.switch_labels
    points = sorted(by_point, key=lambda p: (*point_order(p), labels.index(p.switch)))
    disturbed = {it.switch for it in disturbed_switches(run.trials)}
    return tuple(with_intervals([_derive(run, point, by_point[point], disturbed) for point in points]))


def point_order(point: Point) -> tuple[Any, ...]:
    """Return the sort key of a point without its switch."""
    orders: dict[str, Callable[[Any], int]] = {
        "scenario": lambda name: scenario_named(name).order,
        "direction": DIRECTION_ORDER.index,
        "hosting": HOSTINGS.index,
    }
    values = ((name, getattr(point, name)) for name in POINT_KEY if name != "switch")
    return tuple(orders[name](value) if name in orders else value for name, value in values)


def _derive(run: Run, point: Point, trials: list[Trial], disturbed: Collection[str]) -> Sampled:
    """Return the result of a point without intervals, and the samples that they are estimated from."""
    counted = saturating(trials)
    groups = latency_groups(trials)
    latency = tuple(summarise_latency(label, group) for label, group in groups.items())
    searches = run_searches(run.header, point, trials)
    counting = {t.index for t in counted.trials}.union(*(search.trials for search in searches))
    for group in groups.values():
        if group.verdict.kind in (VALID, VerdictKind.OVERLOAD):
            counting.update(t.index for t in group.trials)
    rates = tuple(map(rate_pps, counted.trials))
    verdict = _verdict(counted, bool(latency))
    throughput, cycles = throughput_blocks(counted.trials), cycles_blocks(counted.trials)
    as_counted = counted_blocks(counted.trials)
    carries = capacity_of(run, point, trials) if verdict.kind.is_bound else None
    switch = {**figures_of(t.switch for t in counted.trials), "cycles_per_packet": geometric_mean(cycles)}
    exact = counted.trials or tuple(t for t in trials if t.role == "r_plus" and _is_exact(t))
    result = Result(
        point=point,
        version=run.version_of(point.switch),
        verdict=verdict,
        throughput_pps=geometric_mean(throughput) if throughput else statistics.fmean(rates) if rates else None,
        throughput_stddev_pps=statistics.stdev(rates) if len(rates) > 1 else None,
        throughput_trials_pps=rates,
        loss_ratio=loss_ratio(d for t in counted.trials for d in t.directions) if counted.trials else None,
        latency=latency,
        trials=tuple(sorted(counting)),
        invalid=sum(t.verdict.kind is VerdictKind.INVALID for t in trials if t.role not in ("warmup", "outage")),
        throughput_median_pps=statistics.median(rates) if rates else None,
        strata=strata(counted.trials),
        counted_pps=geometric_mean(as_counted),
        stood_share=statistics.fmean(1 - stood_in(t).had for t in counted.trials) if counted.trials else 0.0,
        disturbed=point.switch in disturbed,
        capacity_estimate_pps=geometric_mean(carries.blocks) if carries else None,
        searches=searches,
        load_finding=finding(groups, latency),
        ledger=_ledger(exact),
        mean_frame_bytes=mean_forwarded_bytes(counted.trials),
        sent=sent_traffic(counted.trials),
        fib_updates_per_s=median([t.updates.per_s for t in counted.trials if t.updates is not None]),
        control=control_summary(counted.trials),
        switch=switch,
        starts=len(by_start(throughput)),
    )
    percentiles = tuple(_percentiles(group.trials) for group in groups.values())
    return Sampled(result, throughput, as_counted, cycles, carries, percentiles)


def _percentiles(trials: Sequence[Trial]) -> Percentiles:
    return Percentiles(
        *(percentile_blocks(trials, share, with_host=host) for host in (False, True) for share in (0.50, 0.99))
    )


def _verdict(counted: Counted, has_latency: bool) -> Verdict:
    if counted.trials or not counted.verdict.has(ReasonCode.NO_TRIAL):
        return counted.verdict
    text = f"no saturating trial was run, only {'latency' if has_latency else 'warm-up'} trials"
    return Verdict(VerdictKind.INVALID, (Reason(ReasonCode.NO_SATURATING_TRIAL, text),))


def _ledger(trials: Sequence[Trial]) -> Ledger | None:
    return merge(ledger(trial) for trial in trials) if trials else None


def _is_exact(trial: Trial) -> bool:
    """Return whether the counts of a trial that has no figure are exact."""
    return trial.verdict.kind is not VerdictKind.INVALID or trial.verdict.has(ReasonCode.NOTHING_FORWARDED)
