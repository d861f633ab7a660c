# SPDX-License-Identifier: BSD-3-Clause
"""The results of a run, one per point, from its trials. docs/design/results.md has the rules."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planebench.analysis.capacity import Capacity, capacity_of, near_ceiling, tester_ceiling_pps
from planebench.analysis.counting import VALID, latency_counts, saturating, search_counts
from planebench.analysis.disturbance import disturbed_switches
from planebench.analysis.latency import control_summary, finding, latency_groups, percentile_blocks, summarise_latency
from planebench.analysis.ledger import ledger, mean_forwarded_bytes, merge, sent_traffic
from planebench.analysis.noise import Estimate, figure_of
from planebench.analysis.search.methods import METHODS
from planebench.analysis.search.replay import repetitions, so_far
from planebench.analysis.search.task import search_settings
from planebench.analysis.starts import (
    Block,
    Blocks,
    SidesNoise,
    by_start,
    counted_blocks,
    cycles_blocks,
    geometric_mean,
    noise_of_sides,
    strata,
    throughput_blocks,
)
from planebench.model.chain_name import HOSTINGS
from planebench.model.grouped import grouped
from planebench.model.header import Run, RunHeader
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import POINT_KEY, Point, Trial, Verdict, VerdictKind, loss_ratio
from planebench.model.results import Result, SearchFigure, SearchResult, figures_of, median
from planebench.model.scenario import scenario_named
from planebench.model.time_had import rate_pps, stood_in

# The searches of a run, replayed from its trials and its plan.


def run_searches(header: RunHeader, point: Point, trials: Sequence[Trial]) -> tuple[SearchResult, ...]:
    """Return the results so far of each search on a point, its repetitions in their order.

    A bound near the ceiling of the tester's calibration is tester-limited.
    """
    methods = header.plan.search.methods
    how = search_settings(header.plan, 2 if point.direction == "bidirectional" else 1)
    asked = dict.fromkeys(trial.search for trial in trials if trial.search in METHODS)
    if header.plan.parts:  # those of a part are of its points only
        methods = tuple(method for method in methods if method in asked)
    others = [method for method in asked if method not in methods]  # loads of latency rest on them
    ceiling_pps = tester_ceiling_pps(header.calibration, point)
    starts = {trial.index: trial.start for trial in trials}
    found = []
    for method in (*methods, *others):
        for repetition in repetitions(trials) if method in methods else (0,):
            search = so_far(method, how, point, trials, repetition)
            search = replace(search, start=starts[search.trials[-1]] if search.trials else None)
            if search.complete and search.verdict.kind is VALID and search.lower_pps is not None:
                reason = near_ceiling(search.lower_pps, ceiling_pps)
                if reason is not None:
                    verdict = Verdict(VerdictKind.TESTER_LIMITED, (*search.verdict.reasons, reason))
                    search = replace(search, verdict=verdict)
            found.append(search)
    return tuple(found)


def with_a_rate(searches: Iterable[SearchResult], method: str) -> list[SearchResult]:
    """Return those of one method that came to a rate, in the order of their starts."""
    return [s for s in searches if s.method == method and search_counts(s) and s.lower_pps]


def mean_burst_packets(searches: Iterable[SearchResult], method: str) -> float | None:
    """Return the longest burst without loss: the mean over the starts that came to one; None if none did."""
    found = [s.burst.mean_packets for s in searches if s.method == method and s.burst and search_counts(s)]
    return statistics.fmean(found) if found else None


def lower_bounds(searches: Iterable[SearchResult]) -> Blocks:
    """Return the lower bounds as the figures of their starts; where the start is a whole run, it may have several."""
    logs = grouped(((s.repetition, s.of_start), math.log(s.lower_pps)) for s in searches if s.lower_pps)
    return tuple(Block(*numbers, statistics.fmean(mine)) for numbers, mine in logs.items())


def widths(searches: Iterable[SearchResult]) -> list[float]:
    """Return how far the bounds are apart, as logarithms, where both are known."""
    return [math.log(s.upper_pps / s.lower_pps) for s in searches if s.lower_pps and s.upper_pps]


# The intervals of single figures: throughput, cycles per packet and latency percentiles of each test point.

WithInterval = tuple[float | None, float | None, float | None]

SEARCH_STARTS_MIN = 3
"""Starts from which a search has an interval. Searches may vary more than R+, whose noise alone would tell of fewer."""


PERCENTILES: Mapping[str, tuple[float, bool]] = {
    "p50": (0.50, False),
    "p99": (0.99, False),
    "with_host_p50": (0.50, True),
    "with_host_p99": (0.99, True),
}
"""The percentiles of a latency that have an interval: which, and whether of the probes that met the host, too."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A result with the figures of its starts. ``percentiles``: of each latency by name, in the order of the result."""

    result: Result
    throughput: Blocks
    as_counted: Blocks
    cycles: Blocks
    capacity: Capacity | None
    percentiles: tuple[Mapping[str, Blocks], ...]


def with_intervals(found: Sequence[Sampled]) -> Iterator[Result]:
    """Yield the results with the figures of their starts and 95 % intervals.

    The noise of a figure is estimated over all results of the run. That of a switch which is disturbed more often than
    the others spans its throughput with and without what the host took.
    """
    throughput = noise_of_sides((it.result.point, it.throughput) for it in found)
    as_counted = noise_of_sides((it.result.point, it.as_counted) for it in found)
    cycles = noise_of_sides((it.result.point, it.cycles) for it in found)
    noise = {
        name: noise_of_sides((it.result.point, of[name]) for it in found for of in it.percentiles)
        for name in PERCENTILES
    }
    searched = {}
    for method in dict.fromkeys(search.method for it in found for search in it.result.searches):
        # With the noise of R+: searches are few, and starts differ alike.
        searched[method] = noise_of_sides(
            (it.result.point, blocks)
            for it in found
            for blocks in (it.throughput, lower_bounds(with_a_rate(it.result.searches, method)))
        )
    for it in found:
        pps, low, high = _figure(throughput, it.throughput)
        counted_pps, counted_low, counted_high = _figure(as_counted, it.as_counted)
        if it.result.disturbed and low is not None and high is not None:
            low, high = min(low, counted_low or low), max(high, counted_high or high)
        cycles_per_packet, cycles_low, cycles_high = _figure(cycles, it.cycles)
        # What is left of the noise when batches are full is that of the cycles.
        capacity = _figure(cycles, it.capacity.blocks, it.capacity.fit) if it.capacity else (None, None, None)
        latency = []
        for summary, of in zip(it.result.latency, it.percentiles, strict=True):
            ends: dict[str, Any] = {}
            for name in PERCENTILES if latency_counts(summary) else ():
                _, low_ns, high_ns = _figure(noise[name], of[name])
                if (figure := getattr(summary, name)) is not None and low_ns is not None and high_ns is not None:
                    # The figure is of all probes together, the interval of the mean of the starts.
                    ends |= {f"{name}_low": min(low_ns / 1e3, figure), f"{name}_high": max(high_ns / 1e3, figure)}
            latency.append(replace(summary, **ends))
        yield replace(
            it.result,
            throughput_pps=it.result.throughput_pps if pps is None else pps,
            counted_pps=counted_pps,
            capacity_estimate_pps=capacity[0],
            switch={**it.result.switch, "cycles_per_packet": cycles_per_packet},
            throughput_low_pps=low,
            throughput_high_pps=None if it.result.verdict.kind.is_bound else high,
            cycles_low=cycles_low,
            cycles_high=cycles_high,
            capacity_low_pps=capacity[1],
            capacity_high_pps=capacity[2],
            latency=tuple(latency),
            search_figures=tuple(_search_figures(it.result, searched)),
        )


def _search_figures(result: Result, noise: Mapping[str, SidesNoise]) -> Iterator[SearchFigure]:
    """Yield the figure of each search for a rate. Its interval reaches over the bounds: the rate is between them."""
    for method, of_search in noise.items():
        ended = with_a_rate(result.searches, method)
        blocks = lower_bounds(ended)
        pps, low, high = _figure(of_search, blocks)
        if pps is None:
            continue
        is_bound = any(search.is_bound for search in ended)
        if len(blocks) < SEARCH_STARTS_MIN:
            low = high = None
        if high is not None:
            high = None if is_bound else high * math.exp(statistics.fmean(widths(ended)))
        yield SearchFigure(method, pps, len(blocks), is_bound, low, high)


def _figure(noise: SidesNoise, blocks: Blocks, fit: Estimate | None = None) -> WithInterval:
    """Return a figure and both ends of its interval, which are None where nothing is known of the noise.

    ``fit``: an error that adds to it.
    """
    estimate = noise.estimate(blocks) if blocks else None
    if estimate is None:
        return geometric_mean(blocks), None, None
    return figure_of(estimate.mean), *(estimate.minus(fit) if fit else estimate).interval()


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
    verdict = counted.verdict
    if not counted.trials and verdict.has(ReasonCode.NO_TRIAL):
        text = f"no saturating trial was run, only {'latency' if latency else 'warm-up'} trials"
        verdict = Verdict(VerdictKind.INVALID, (Reason(ReasonCode.NO_SATURATING_TRIAL, text),))
    throughput, cycles = throughput_blocks(counted.trials), cycles_blocks(counted.trials)
    as_counted = counted_blocks(counted.trials)
    carries = capacity_of(run, point, trials) if verdict.kind.is_bound else None
    exact = counted.trials or tuple(
        t
        for t in trials
        if t.role == "r_plus"
        and (t.verdict.kind is not VerdictKind.INVALID or t.verdict.has(ReasonCode.NOTHING_FORWARDED))
    )
    result = Result(
        point=point,
        version=run.version_of(point.switch),
        verdict=verdict,
        throughput_pps=statistics.fmean(rates) if rates else None,  # that of nothing forwarded: it has no logarithm
        throughput_stddev_pps=statistics.stdev(rates) if len(rates) > 1 else None,
        throughput_trials_pps=rates,
        loss_ratio=loss_ratio(d for t in counted.trials for d in t.directions) if counted.trials else None,
        latency=latency,
        trials=tuple(sorted(counting)),
        invalid=sum(t.verdict.kind is VerdictKind.INVALID for t in trials if t.role not in ("warmup", "outage")),
        throughput_median_pps=statistics.median(rates) if rates else None,
        strata=strata(counted.trials),
        stood_share=statistics.fmean(1 - stood_in(t).had for t in counted.trials) if counted.trials else 0.0,
        disturbed=point.switch in disturbed,
        searches=searches,
        load_finding=finding(groups, latency),
        ledger=merge(ledger(trial) for trial in exact) if exact else None,
        mean_frame_bytes=mean_forwarded_bytes(counted.trials),
        sent=sent_traffic(counted.trials),
        fib_updates_per_s=median([t.updates.per_s for t in counted.trials if t.updates is not None]),
        control=control_summary(counted.trials),
        switch=figures_of(t.switch for t in counted.trials),
        starts=len(by_start(throughput)),
    )
    percentiles = tuple(
        {name: percentile_blocks(group.trials, share, with_host=host) for name, (share, host) in PERCENTILES.items()}
        for group in groups.values()
    )
    return Sampled(result, throughput, as_counted, cycles, carries, percentiles)
