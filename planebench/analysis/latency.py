# SPDX-License-Identifier: BSD-3-Clause
"""Latency of a point by load: the trials that count and their merged figures, jitter, inversion and knee."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from planebench.analysis.counting import LIMITED, VALID, Counted, of_kinds
from planebench.analysis.histogram import (
    Counts,
    decode,
    merge,
    percentile_ns,
    place_of,
    summarise,
    used_ns,
)
from planebench.analysis.ledger import policy_packets
from planebench.analysis.starts import Blocks, blocks_of
from planebench.model.grouped import grouped
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import Anatomy, AnatomyPart, LatencyRecord, Trial, Verdict, VerdictKind
from planebench.model.results import (
    AnatomySummary,
    ControlSummary,
    HistogramSummary,
    JitterSummary,
    LatencySummary,
    LoadFinding,
    PartSummary,
)

# The latency breakdown of a load: the anatomies of its trials as one per direction, with the share of each part.


def summarise_anatomy(trials: Sequence[Trial]) -> tuple[AnatomySummary, ...]:
    """Return one summary per direction, of the trials whose parts add up; empty if no probe was stamped.

    Means are weighted by probes, percentiles are of the merged histograms. Without a trial that adds up there are no
    parts, and ``problem`` says why.
    """
    directions = grouped((anatomy.name, anatomy) for trial in trials for anatomy in trial.anatomy)
    return tuple(_direction(name, every) for name, every in directions.items())


def _direction(name: str, every: Sequence[Anatomy]) -> AnatomySummary:
    good = [a for a in every if not a.problem and _names(a) == _names(every[0])]
    missing: Counter[str] = Counter()
    for anatomy in good or every:
        missing.update(anatomy.not_joined)
    if not good:
        return AnatomySummary(name, 0, dict(missing), (), problem=every[-1].problem)
    whole = _weighted_ns([a.sum_ns for a in good], good)
    parts = tuple(_part([a.parts[i] for a in good], good, whole) for i in range(len(good[0].parts)))
    return AnatomySummary(name, sum(a.joined for a in good), dict(missing), parts, left_out=len(every) - len(good))


def _names(anatomy: Anatomy) -> list[str]:
    return [part.name for part in anatomy.parts]


def _weighted_ns(values: Sequence[float], of: Sequence[Anatomy]) -> float:
    """Return the mean over the probes of all trials."""
    probes = sum(anatomy.joined for anatomy in of)
    return sum(value * anatomy.joined for value, anatomy in zip(values, of, strict=True)) / probes


def _part(parts: Sequence[AnatomyPart], of: Sequence[Anatomy], whole_ns: float) -> PartSummary:
    histogram = merge(part.histogram for part in parts)
    mean_ns = _weighted_ns([part.mean_ns for part in parts], of)
    p50, p99 = (percentile_ns(histogram, share) / 1e3 for share in (0.50, 0.99))
    low_ns, high_ns = _weighted_ns([p.low_ns for p in parts], of), _weighted_ns([p.high_ns for p in parts], of)
    share = mean_ns / whole_ns if whole_ns else 0.0
    return PartSummary(parts[0].name, parts[0].kind, mean_ns / 1e3, p50, p99, share, low_ns / 1e3, high_ns / 1e3)


# Jitter by three definitions: IPDV (RFC 3393), PDV (RFC 5481), burst means (ic16). Microseconds.


def merged_jitter(histograms: Iterable[str]) -> JitterSummary | None:
    """Return the merged histograms of differences (IPDV; burst means, both signs). Empty texts are unknown; None if all
    are."""
    summary = summarise(merge(filter(None, histograms)))
    if summary is None:
        return None
    return JitterSummary(summary.mean, summary.p50, summary.p99, summary.max, summary.samples)


def signed_jitter(rises: Iterable[str], falls: Iterable[str]) -> JitterSummary | None:
    """Return the differences of burst means with their signs: a fall is below zero. None if nothing is known.

    The mean is near zero wherever latency does not drift; percentiles and maximum are of the signed values.
    """
    up, down = (used_ns(merge(filter(None, texts))) for texts in (rises, falls))
    values_us = np.concatenate([-down[0][::-1], up[0]]) / 1e3
    counts = np.concatenate([down[1][::-1], up[1]])
    return _summary(values_us, counts) if counts.size else None


def pdv(latency: Counts) -> JitterSummary | None:
    """Return the packet delay variation of a latency histogram: delay minus the least delay (RFC 5481 section 4.2).

    A delay is the middle of its bucket, so that the least one varies by exactly zero. None for an empty histogram.
    """
    delay_ns, counts = used_ns(latency)
    if counts.size == 0:
        return None
    return _summary((delay_ns - delay_ns[0]) / 1e3, counts)


def _summary(values_us: NDArray[np.float64], counts: Counts) -> JitterSummary:
    """Return the figures of values in rising order, each with its count."""
    samples = int(counts.sum())
    mean = float((counts * values_us).sum()) / samples
    p50, p99 = (float(values_us[place_of(counts, share)]) for share in (0.50, 0.99))
    return JitterSummary(mean, p50, p99, float(values_us[-1]), samples)


# Latency against load: inversion (higher at a low load) and knee (the load above which it rises sharply).

MIN_INVERSION = 0.10
"""A lower load must be slower by more than this share of the higher load's p50."""
KNEE_FACTOR = 2.0
"""The plateau ends where p50 exceeds this many times the least p50 of the curve."""
MIN_KNEE_LOADS = 5
"""Of fewer loads the middle one would be the knee: they show no plateau and its end."""


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """The p50 of the merged trials at one load.

    ``spread`` is (max - min) / median of their p50 if there are several.
    """

    load: str
    p50_us: float
    spread: float | None = None


def load_finding(curve: Sequence[LoadPoint]) -> LoadFinding | None:
    """Return inversion and knee of the accepted loads, in rising order; None for fewer than two loads."""
    if len(curve) < 2:
        return None
    # The lower and the higher load with the highest ratio of p50 beyond noise: frames waited for a batch.
    inverted = [
        (low, high)
        for low, high in combinations(curve, 2)
        if _ratio(low, high) - 1 > max(MIN_INVERSION, low.spread or 0.0, high.spread or 0.0)
    ]
    pair = max(inverted, key=lambda pair: _ratio(*pair), default=None)
    # The knee: the highest load on the plateau whose next load is above it; none if latency stays on the plateau.
    limit = KNEE_FACTOR * min(point.p50_us for point in curve)
    knees = [here.load for here, above in pairwise(curve) if here.p50_us <= limit < above.p50_us]
    return LoadFinding(
        inversion=(pair[0].load, pair[1].load) if pair else None,
        inversion_ratio=_ratio(*pair) if pair else None,
        knee=knees[-1] if knees and len(curve) >= MIN_KNEE_LOADS else None,
    )


def _ratio(low: LoadPoint, high: LoadPoint) -> float:
    return low.p50_us / high.p50_us if high.p50_us > 0 else 1.0


MAX_PROBES_MISSING = 0.01
"""Limit of missing probes as a share of those sent: more missing probes, the slow ones, move the percentiles."""
POLICY_DEVIATIONS = 3.0
"""Standard deviations by which more probes may be dropped by policy than their share of all frames says."""

_ANY_KIND = (VALID, VerdictKind.OVERLOAD, LIMITED, VerdictKind.FUNCTIONAL, VerdictKind.INVALID)


def latency_groups(trials: Sequence[Trial]) -> dict[str, Counted]:
    """Return the latency trials used for each load label: carried or overloaded ones, else the best kind.

    In order of rising load.
    """
    groups = grouped((trial.load.label, trial) for trial in trials if trial.role == "latency")
    ordered = sorted(groups.items(), key=lambda item: (mean_intended_pps(item[1]), item[0]))
    found = {}
    for label, group in ordered:  # carried and overloaded ones are not merged: the kind of more trials comes first
        kinds = [t.verdict.kind for t in group]
        carried = kinds.count(VALID) > kinds.count(VerdictKind.OVERLOAD)
        found[label] = of_kinds(group, _ANY_KIND if carried else (VerdictKind.OVERLOAD, *_ANY_KIND))
    return found


def control_summary(trials: Sequence[Trial]) -> ControlSummary | None:
    """Return the control packets of trials, added up; None if none of them had any."""
    every = [trial.control for trial in trials if trial.control is not None]
    if not every:
        return None
    times = summarise(merge(control.histogram for control in every))
    return ControlSummary(
        sent=sum(control.sent for control in every),
        received=sum(control.received for control in every),
        replies=sum(control.replies for control in every),
        p50_us=None if times is None else times.p50,
        p99_us=None if times is None else times.p99,
        max_us=None if times is None else times.max,
    )


def summarise_latency(label: str, counted: Counted) -> LatencySummary:
    """Return the summary of a load.

    Figures are NaN if no probe returned or if they are not meaningful; the verdict says so.
    """
    records = latency_records(counted)
    counts = merge(r.histogram for r in records if counted.verdict.kind is not VerdictKind.FUNCTIONAL)
    summary = summarise(counts)
    verdict, nan = counted.verdict, math.nan
    told = _without_distribution(records) if summary is None else None
    if told is not None:
        mean = "" if math.isnan(told[0]) else f"a mean of {told[0]:.1f} us and "
        text = f"the tester reports {mean}a maximum of {told[1]:.1f} us, and no percentiles"
        verdict = Verdict(
            verdict.kind, (*verdict.reasons, Reason(ReasonCode.NO_DISTRIBUTION, text, {"max_us": told[1]}))
        )
    elif summary is None and verdict.kind is VALID:
        verdict = Verdict(
            VerdictKind.INVALID, (*verdict.reasons, Reason(ReasonCode.NO_PROBE, "no latency probe returned"))
        )
    elif summary is not None:
        verdict = Verdict(verdict.kind, verdict.reasons + _missing_probes(counted.trials))
    disturbed = summary is not None and any(r.host for r in records)
    with_host = summarise(merge(text for r in records for text in _with_host(r))) if disturbed else None
    beside = summarise(merge(r.software for r in records if r.software)) if summary else None
    intended = sum(d.intended_packets for t in counted.trials for d in t.directions)
    forwarded = sum(t.forwarded_packets for t in counted.trials)
    clocks: set[str] = {r.clock for r in records}
    figures = summary
    if figures is None:
        average, most, samples = told or (nan, nan, 0)
        figures = HistogramSummary(samples, average, stddev=nan, p50=nan, p90=nan, p99=nan, p99_9=nan, max=most)
    return LatencySummary(
        load=label,
        intended_pps=mean_intended_pps(counted.trials),
        achieved_fraction=forwarded / intended if intended else 0.0,
        **asdict(figures),
        probes_sent=sum(r.probes_sent for r in records),
        verdict=verdict,
        probes_stamped=sum(r.probes_stamped for r in records),
        clock="mixed" if len(clocks) > 1 else next(iter(clocks), "software"),
        floor=min((r.floor_ns / 1e3 for r in records if r.floor_ns is not None), default=None),
        with_host_p50=None if with_host is None else with_host.p50,
        with_host_p99=None if with_host is None else with_host.p99,
        software_p50=None if beside is None else beside.p50,
        software_p99=None if beside is None else beside.p99,
        ipdv=merged_jitter(r.ipdv for r in records if summary),
        pdv=pdv(counts),
        burst_jitter=merged_jitter(size for r in records if summary for size in (r.burst_rises, r.burst_falls)),
        burst_signed=signed_jitter((r.burst_rises for r in records), (r.burst_falls for r in records))
        if summary
        else None,
        anatomy=summarise_anatomy(counted.trials),
    )


def _without_distribution(records: Sequence[LatencyRecord]) -> tuple[float, float, int] | None:
    """Return mean (NaN if unknown) and maximum in us, and the number of frames, of an external tester; None if it
    reported none."""
    known = [(r.mean_ns, r.most_ns, r.probes_received) for r in records if r.most_ns is not None]
    frames = sum(count for _, _, count in known)
    if not frames:
        return None
    mean_ns = sum((math.nan if mean is None else mean) * count for mean, _, count in known) / frames
    return mean_ns / 1e3, max(most for _, most, _ in known) / 1e3, frames


def finding(groups: Mapping[str, Counted], summaries: Sequence[LatencySummary]) -> LoadFinding | None:
    """Return how latency changes with the loads. ``summaries`` are those of ``groups``."""
    shown = [s for s in summaries if s.verdict.kind is VALID and s.samples and not math.isnan(s.p50)]
    curve = []
    for s in shown:
        histograms = [decode(record.histogram) for record in latency_records(groups[s.load])]
        medians = [percentile_ns(counts, 0.50) for counts in histograms if counts.any()]
        spread = None
        if len(medians) > 1:
            middle = statistics.median(medians)
            spread = (max(medians) - min(medians)) / middle if middle else 0.0
        curve.append(LoadPoint(s.load, s.p50, spread))
    return load_finding(curve)


def latency_records(counted: Counted) -> list[LatencyRecord]:
    """Return the latency records of some trials."""
    return [t.latency for t in counted.trials if t.latency is not None]


def percentile_blocks(trials: Iterable[Trial], share: float, *, with_host: bool = False) -> Blocks:
    """Return the blocks of one percentile of the latency, in ns, of the trials with a returned probe.

    ``with_host``: of all probes, also those that met what the host did.
    """

    def percentile(trial: Trial) -> float | None:
        if trial.latency is None:
            return None
        counts = merge(_with_host(trial.latency)) if with_host else decode(trial.latency.histogram)
        return percentile_ns(counts, share) if counts.any() else None

    return blocks_of(trials, percentile)


def _with_host(record: LatencyRecord) -> tuple[str, ...]:
    return (record.histogram, record.host) if record.host else (record.histogram,)


def mean_intended_pps(trials: Sequence[Trial]) -> float:
    """Return the aggregate of all sending directions; the offered rate at maximum offered load."""
    rates = [
        t.offered_pps if t.load.pps_per_direction is None else t.load.pps_per_direction * len(t.directions)
        for t in trials
    ]
    return statistics.fmean(rates) if rates else 0.0


def _missing_probes(trials: Sequence[Trial]) -> tuple[Reason, ...]:
    """Return a reason if more probes are missing than network functions dropped by policy, as they did other frames."""
    counted = [(t, t.latency) for t in trials if t.latency is not None]
    sent = sum(record.probes_sent for _, record in counted)
    missing = sent - sum(record.probes_received for _, record in counted)
    policy = sum(
        min(policy_packets(trial) / max(sum(d.offered_packets for d in trial.directions), 1), 1.0) * record.probes_sent
        for trial, record in counted
    )
    if missing - policy <= max(MAX_PROBES_MISSING * sent, POLICY_DEVIATIONS * math.sqrt(policy)):
        return ()
    dropped = f", network functions dropped about {policy:.0f} of them by policy" if policy >= 1 else ""
    text = f"{missing} of {sent} probes did not return{dropped}; the missing ones may be the slowest"
    return (Reason(ReasonCode.PROBES_MISSING, text, {"missing": missing, "sent": sent}),)
