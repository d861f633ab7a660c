# SPDX-License-Identifier: BSD-3-Clause
"""From the trials of a run to one Result a point. The rules are docs/design/results.md."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from planebench.model.records import Point, Trial, Verdict, VerdictKind
from planebench.model.results import LatencySummary, Result
from planebench.model.run import Run
from planebench.stats.choose import LIMITED, VALID, Choice, choose, run_band
from planebench.stats.histogram import merge, summarise
from planebench.stats.intervals import relative_spread

__all__ = ["derive_results", "latency_groups", "run_band"]

MAX_SPREAD = 0.10
"""(max - min) / median of the trials that count; above it the result is unstable."""

SCENARIO_ORDER = ("p2p", "p2v", "v2v", "loopback")
DIRECTION_ORDER = ("unidirectional", "bidirectional", "reversed")

_ANY_KIND = (VALID, LIMITED, VerdictKind.UNSTABLE, VerdictKind.DISTURBED, VerdictKind.INVALID)


def derive_results(run: Run) -> tuple[Result, ...]:
    """One result a point, ordered by scenario, chain length, direction, frame size, then switch as in the header.

    A point of which only warm-up trials were run is there too, with a verdict that says so.
    """
    band = run_band(run.trials)
    by_point: dict[Point, list[Trial]] = {}
    for trial in run.trials:
        by_point.setdefault(trial.point, []).append(trial)
    labels = run.switch_labels
    points = sorted(by_point, key=lambda p: (*point_order(p), labels.index(p.switch)))
    return tuple(_derive(run, point, by_point[point], band) for point in points)


def point_order(point: Point) -> tuple[int, int, int, int, str, str]:
    """Sort key of a point without its switch."""
    scenario, direction = SCENARIO_ORDER.index(point.scenario), DIRECTION_ORDER.index(point.direction)
    return (scenario, point.chain_length, direction, point.frame_size_bytes, point.wire, point.hosting)


def latency_groups(trials: Sequence[Trial], band: str | None) -> dict[str, Choice]:
    """Load label -> the latency trials that count for it: valid ones, else the best there are (their verdict tells).

    In order of rising load.
    """
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.role == "latency":
            groups.setdefault(trial.load.label, []).append(trial)
    ordered = sorted(groups.items(), key=lambda item: (_mean_intended_pps(item[1]), item[0]))
    return {label: _choose_latency(group, band) for label, group in ordered}


def _choose_latency(trials: Sequence[Trial], band: str | None) -> Choice:
    choice = choose(trials, band, (VALID,))
    return choice if choice.trials else choose(trials, band, _ANY_KIND)


def _derive(run: Run, point: Point, trials: list[Trial], band: str | None) -> Result:
    saturating = [t for t in trials if t.role == "r_plus"]
    choice = choose(saturating, band)
    groups = latency_groups(trials, choice.band or band)
    latency = tuple(_summarise_latency(label, group) for label, group in groups.items())
    counting = {t.index for t in choice.trials}
    counting |= {t.index for group in groups.values() if group.verdict.kind is VALID for t in group.trials}
    rates = tuple(t.throughput_pps for t in choice.trials)
    return Result(
        point=point,
        version=run.version_of(point.switch),
        verdict=_throughput_verdict(choice, rates, latency),
        throughput_pps=statistics.fmean(rates) if rates else None,
        throughput_stddev_pps=statistics.stdev(rates) if len(rates) > 1 else None,
        throughput_trials_pps=rates,
        loss_ratio=_loss_ratio(choice.trials),
        band=choice.band,
        latency=latency,
        switch_cycles_per_packet=_median([t.switch.cycles_per_packet for t in choice.trials]),
        switch_busy_share=_median([t.switch.busy_share for t in choice.trials]),
        trials=tuple(sorted(counting)),
        rejected=sum(t.role != "warmup" and t.index not in counting for t in trials),
    )


def _throughput_verdict(choice: Choice, rates: tuple[float, ...], latency: tuple[LatencySummary, ...]) -> Verdict:
    if not rates and choice.verdict.reasons == ("no trial was run",):
        only = "latency" if latency else "warm-up"
        return Verdict(VerdictKind.INVALID, (f"no saturating trial was run, only {only} trials",))
    spread = relative_spread(rates)
    if spread <= MAX_SPREAD:
        return choice.verdict
    reason = (
        f"the {len(rates)} trials spread over {spread * 100:.0f} % of their median (limit {MAX_SPREAD * 100:.0f} %)"
    )
    kind = LIMITED if choice.verdict.kind is LIMITED else VerdictKind.UNSTABLE
    return Verdict(kind, (*choice.verdict.reasons, reason))


def _summarise_latency(label: str, choice: Choice) -> LatencySummary:
    """Figures are NaN where no probe came back; the verdict then says so."""
    records = [t.latency for t in choice.trials if t.latency is not None]
    summary = summarise(merge(r.histogram for r in records))
    verdict, nan = choice.verdict, math.nan
    if summary is None and verdict.kind is VALID:
        verdict = Verdict(VerdictKind.INVALID, (*verdict.reasons, "no latency probe came back"))
    intended = sum(d.intended_packets for t in choice.trials for d in t.directions)
    forwarded = sum(t.forwarded_packets for t in choice.trials)
    return LatencySummary(
        load=label,
        intended_pps=_mean_intended_pps(choice.trials),
        achieved_fraction=forwarded / intended if intended else 0.0,
        mean=summary.mean if summary else nan,
        stddev=summary.stddev if summary else nan,
        p50=summary.p50 if summary else nan,
        p90=summary.p90 if summary else nan,
        p99=summary.p99 if summary else nan,
        p99_9=summary.p99_9 if summary else nan,
        max=summary.max if summary else nan,
        samples=summary.samples if summary else 0,
        probes_sent=sum(r.probes_sent for r in records),
        verdict=verdict,
    )


def _mean_intended_pps(trials: Sequence[Trial]) -> float:
    """Aggregate of all sending directions; what was offered where the load is flat out."""
    rates = [
        t.offered_pps if t.load.pps_per_direction is None else t.load.pps_per_direction * len(t.directions)
        for t in trials
    ]
    return statistics.fmean(rates) if rates else 0.0


def _loss_ratio(trials: Sequence[Trial]) -> float | None:
    """Of all counting trials together: packets that did not arrive / packets sent."""
    directions = [d for t in trials for d in t.directions]
    base = sum(max(d.offered_packets, d.intended_packets) for d in directions)
    return sum(d.lost_packets + d.unsent_packets for d in directions) / base if base else None


def _median(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else None
