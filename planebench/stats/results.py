# SPDX-License-Identifier: BSD-3-Clause
"""The results of a run, one per point, from its trials. docs/design/results.md has the rules."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

from planebench.model.chain_name import HOSTINGS
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import POINT_KEY, Point, Trial, Verdict, VerdictKind
from planebench.model.results import BandFigure, LatencySummary, Ledger, Result
from planebench.model.run import Run
from planebench.model.scenario import scenario_named
from planebench.model.switch_figures import figures_of, median
from planebench.stats.capacity import capacity, full_batch, one_look
from planebench.stats.choose import (
    VALID,
    Choice,
    choose_saturating,
    is_of_other_group,
    is_usable,
    run_band,
    with_disturbed,
)
from planebench.stats.figure_intervals import Sampled, with_intervals
from planebench.stats.latency import control_summary, finding, latency_groups, percentile_blocks, summarise_latency
from planebench.stats.ledger import ledger, merge
from planebench.stats.searches import run_searches
from planebench.stats.starts import by_start, cycles_blocks, geometric_mean, throughput_blocks
from planebench.stats.traffic import mean_forwarded_bytes, sent_traffic
from planebench.stats.two_bands import two_bands

__all__ = ["derive_results", "latency_groups", "run_band"]

MAX_DEVIATION = 0.05
"""Maximum standard deviation of the logarithms of the accepted trials; above it the result is unstable."""

DIRECTION_ORDER = ("unidirectional", "bidirectional", "reversed")


def derive_results(run: Run) -> tuple[Result, ...]:
    """Return one result per point, ordered by scenario, chain, direction, frame size, then switch as in the header.

    A point of which only warm-up trials were run is there too, with a verdict that says so.
    """
    band = run_band(run.trials, run.header.settings.get("band"))
    by_point = {p: ts for p, ts in run.by_point().items() if any(t.role != "outage" for t in ts)}
    labels = run.switch_labels
    points = sorted(by_point, key=lambda p: (*point_order(p), labels.index(p.switch)))
    derived = [_derive(run, point, by_point[point], band) for point in points]
    return tuple(with_intervals(derived))


def point_order(point: Point) -> tuple[Any, ...]:
    """Return the sort key of a point without its switch."""
    orders: dict[str, Callable[[Any], int]] = {
        "scenario": lambda name: scenario_named(name).order,
        "direction": DIRECTION_ORDER.index,
        "hosting": HOSTINGS.index,
    }
    values = ((name, getattr(point, name)) for name in POINT_KEY if name != "switch")
    return tuple(orders[name](value) if name in orders else value for name, value in values)


def _derive(run: Run, point: Point, trials: list[Trial], band: str | None) -> Sampled:
    """Return the result of a point without intervals, and the samples that they are estimated from."""
    saturating = [t for t in trials if t.role == "r_plus"]
    choice = choose_saturating(saturating, band)
    groups = latency_groups(trials, choice.band or band)
    latency = tuple(summarise_latency(label, group) for label, group in groups.items())
    searches = run_searches(run.header, point, trials, band)
    counting = {t.index for t in choice.trials}.union(*(search.trials for search in searches))
    counting |= {
        t.index
        for group in groups.values()
        if group.verdict.kind in (VALID, VerdictKind.OVERLOAD)
        for t in group.trials
    }
    in_band = [t for t in trials if t.band == choice.band]
    meant = [t for t in trials if t.role not in ("warmup", "outage")]
    wish = run.header.settings.get("band")
    rates = tuple(t.throughput_pps for t in choice.trials)
    verdict = _throughput_verdict(choice, rates, latency)
    throughput, cycles = throughput_blocks(choice.trials), cycles_blocks(choice.trials)
    throughput_pps = geometric_mean(throughput) if throughput else statistics.fmean(rates) if rates else None
    manifest = run.manifest_of(point.switch)
    full, look = full_batch(manifest), one_look(manifest)
    carries = capacity(choice.trials, in_band, full, look) if verdict.kind.is_bound else None
    switch = {**figures_of(t.switch for t in choice.trials), "cycles_per_packet": geometric_mean(cycles)}
    result = Result(
        point=point,
        version=run.version_of(point.switch),
        verdict=verdict,
        throughput_pps=throughput_pps,
        throughput_stddev_pps=statistics.stdev(rates) if len(rates) > 1 else None,
        throughput_trials_pps=rates,
        loss_ratio=_loss_ratio(choice.trials),
        band=choice.band,
        latency=latency,
        trials=tuple(sorted(counting)),
        rejected=sum(t.index not in counting and not is_of_other_group(t, band, wish) for t in meant),
        throughput_median_pps=statistics.median(rates) if rates else None,
        other_bands=_other_bands(saturating, choice.band),
        capacity_estimate_pps=geometric_mean(carries.blocks) if carries else None,
        searches=searches,
        load_finding=finding(groups, latency),
        ledger=_ledger(choice.trials or tuple(t for t in saturating if _is_counted(t))),
        mean_frame_bytes=mean_forwarded_bytes(choice.trials),
        sent=sent_traffic(choice.trials),
        fib_updates_per_s=median([t.updates.per_s for t in choice.trials if t.updates is not None]),
        control=control_summary(choice.trials),
        switch=switch,
        with_disturbed_pps=geometric_mean(throughput_blocks(with_disturbed(saturating, choice))),
        starts=len(by_start(throughput)),
    )
    return Sampled(
        result,
        throughput,
        cycles,
        carries,
        *(tuple(percentile_blocks(group.trials, share) for group in groups.values()) for share in (0.50, 0.99)),
    )


def _throughput_verdict(choice: Choice, rates: tuple[float, ...], latency: tuple[LatencySummary, ...]) -> Verdict:
    if not rates and choice.verdict.has(ReasonCode.NO_TRIAL):
        only = "latency" if latency else "warm-up"
        text = f"no saturating trial was run, only {only} trials"
        return Verdict(VerdictKind.INVALID, (Reason(ReasonCode.NO_SATURATING_TRIAL, text),))
    reason = _unsteady(choice, rates)
    if reason is None:
        return choice.verdict
    kind = choice.verdict.kind if choice.verdict.kind.is_bound else VerdictKind.UNSTABLE
    return Verdict(kind, (*choice.verdict.reasons, reason))


def _unsteady(choice: Choice, rates: tuple[float, ...]) -> Reason | None:
    """Return why the trials do not make one figure: two bands, else a wide spread; None if they do."""
    bands = two_bands(rates)
    if bands is not None:
        return Reason(ReasonCode.TWO_BANDS, bands.words(choice.band, choice.trials))
    deviation = statistics.stdev(map(math.log, rates)) if len(rates) > 1 and min(rates) > 0 else 0.0
    if deviation <= MAX_DEVIATION:
        return None
    limit = f"limit {MAX_DEVIATION * 100:.0f} %"
    text = f"the standard deviation of the {len(rates)} trials is {deviation * 100:.0f} % ({limit})"
    return Reason(ReasonCode.SPREAD, text, {"deviation": deviation})


def _other_bands(saturating: Sequence[Trial], band: str | None) -> tuple[BandFigure, ...]:
    """Return the figure of every other known band with usable trials."""
    figures = []
    for other in sorted({t.band for t in saturating if is_usable(t) and t.band is not None} - {band}):
        choice = choose_saturating(saturating, other)
        rate = geometric_mean(throughput_blocks(choice.trials))
        if rate is not None:
            figures.append(BandFigure(other, rate, len(choice.trials), choice.verdict.kind.is_bound))
    return tuple(figures)


def _ledger(trials: Sequence[Trial]) -> Ledger | None:
    return merge(ledger(trial) for trial in trials) if trials else None


def _is_counted(trial: Trial) -> bool:
    """Return whether the counts of a rejected trial are exact: a disturbance changes rates, but no count."""
    return trial.verdict.kind is not VerdictKind.INVALID or trial.verdict.has(ReasonCode.NOTHING_FORWARDED)


def _loss_ratio(trials: Sequence[Trial]) -> float | None:
    """Return the loss ratio of all accepted trials together."""
    directions = [d for t in trials for d in t.directions]
    base = sum(max(d.offered_packets, d.intended_packets) for d in directions)
    return sum(d.lost_packets + d.unsent_packets for d in directions) / base if base else None
