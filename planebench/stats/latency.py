# SPDX-License-Identifier: BSD-3-Clause
"""Latency of a point by load: the trials that count and their merged figures."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import LatencyRecord, Trial, Verdict, VerdictKind
from planebench.model.results import ControlSummary, LatencySummary, LoadFinding
from planebench.stats.anatomy import summarise_anatomy
from planebench.stats.counting import LIMITED, VALID, Counted, of_kinds
from planebench.stats.histogram import Counts, decode, merge, percentile_ns, summarise
from planebench.stats.jitter import burst_sizes, merged_jitter, pdv, signed_jitter
from planebench.stats.latency_load import LoadPoint, load_finding
from planebench.stats.ledger import policy_packets
from planebench.stats.starts import Blocks, blocks_of

MAX_PROBES_MISSING = 0.01
"""Limit of missing probes as a share of those sent: more missing probes, the slow ones, move the percentiles."""
POLICY_DEVIATIONS = 3.0
"""Standard deviations by which more probes may be dropped by policy than their share of all frames says."""

_CARRIED_OR_NOT = (VALID, VerdictKind.OVERLOAD)
_ANY_KIND = (*_CARRIED_OR_NOT, LIMITED, VerdictKind.FUNCTIONAL, VerdictKind.INVALID)


def latency_groups(trials: Sequence[Trial]) -> dict[str, Counted]:
    """Return the latency trials used for each load label: carried or overloaded ones, else the best kind.

    In order of rising load.
    """
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.role == "latency":
            groups.setdefault(trial.load.label, []).append(trial)
    ordered = sorted(groups.items(), key=lambda item: (mean_intended_pps(item[1]), item[0]))
    return {label: of_kinds(group, _by_number(group)) for label, group in ordered}


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
        verdict = Verdict(verdict.kind, (*verdict.reasons, _no_percentiles(*told[:2])))
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
    return LatencySummary(
        load=label,
        intended_pps=mean_intended_pps(counted.trials),
        achieved_fraction=forwarded / intended if intended else 0.0,
        mean=summary.mean if summary else told[0] if told else nan,
        stddev=summary.stddev if summary else nan,
        p50=summary.p50 if summary else nan,
        p90=summary.p90 if summary else nan,
        p99=summary.p99 if summary else nan,
        p99_9=summary.p99_9 if summary else nan,
        max=summary.max if summary else told[1] if told else nan,
        samples=summary.samples if summary else told[2] if told else 0,
        probes_sent=sum(r.probes_sent for r in records),
        verdict=verdict,
        probes_stamped=sum(r.probes_stamped for r in records),
        clock=_clock(records),
        floor=min((r.floor_ns / 1e3 for r in records if r.floor_ns is not None), default=None),
        with_host_p50=None if with_host is None else with_host.p50,
        with_host_p99=None if with_host is None else with_host.p99,
        software_p50=None if beside is None else beside.p50,
        software_p99=None if beside is None else beside.p99,
        ipdv=merged_jitter(r.ipdv for r in records if summary),
        pdv=pdv(counts),
        burst_jitter=merged_jitter(sizes for r in records if summary for sizes in burst_sizes(r)),
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


def _no_percentiles(mean_us: float, max_us: float) -> Reason:
    mean = "" if math.isnan(mean_us) else f"a mean of {mean_us:.1f} us and "
    text = f"the tester reports {mean}a maximum of {max_us:.1f} us, and no percentiles"
    return Reason(ReasonCode.NO_DISTRIBUTION, text, {"max_us": max_us})


def finding(groups: Mapping[str, Counted], summaries: Sequence[LatencySummary]) -> LoadFinding | None:
    """Return how latency changes with the loads. ``summaries`` are those of ``groups``."""
    shown = [s for s in summaries if s.verdict.kind is VALID and s.samples and not math.isnan(s.p50)]
    curve = [LoadPoint(s.load, s.p50, _spread(groups[s.load])) for s in shown]
    return load_finding(curve)


def latency_records(counted: Counted) -> list[LatencyRecord]:
    """Return the latency records of some trials."""
    return [t.latency for t in counted.trials if t.latency is not None]


def trial_counts(counted: Counted) -> list[Counts]:
    """Return the histograms of the trials with a returned probe, one each."""
    histograms = [decode(r.histogram) for r in latency_records(counted)]
    return [counts for counts in histograms if counts.any()]


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


def _by_number(trials: Sequence[Trial]) -> tuple[VerdictKind, ...]:
    """Return all kinds, first VALID or OVERLOAD, that of more trials: carried and overloaded ones are not merged."""
    kinds = [t.verdict.kind for t in trials]
    carried = kinds.count(VALID) > kinds.count(VerdictKind.OVERLOAD)
    return _ANY_KIND if carried else (VerdictKind.OVERLOAD, *_ANY_KIND)


def _missing_probes(trials: Sequence[Trial]) -> tuple[Reason, ...]:
    """Return a reason if more probes are missing than network functions dropped by policy, as they did other frames."""
    counted = [(t, t.latency) for t in trials if t.latency is not None]
    sent = sum(record.probes_sent for _, record in counted)
    missing = sent - sum(record.probes_received for _, record in counted)
    policy = sum(_policy_share(trial) * record.probes_sent for trial, record in counted)
    if missing - policy <= max(MAX_PROBES_MISSING * sent, POLICY_DEVIATIONS * math.sqrt(policy)):
        return ()
    dropped = f", network functions dropped about {policy:.0f} of them by policy" if policy >= 1 else ""
    text = f"{missing} of {sent} probes did not return{dropped}; the missing ones may be the slowest"
    return (Reason(ReasonCode.PROBES_MISSING, text, {"missing": missing, "sent": sent}),)


def _policy_share(trial: Trial) -> float:
    """Return the share of the frames of a trial that network functions dropped by policy."""
    return min(policy_packets(trial) / max(sum(d.offered_packets for d in trial.directions), 1), 1.0)


def _spread(counted: Counted) -> float | None:
    medians = [percentile_ns(counts, 0.50) for counts in trial_counts(counted)]
    return relative_spread(medians) if len(medians) > 1 else None


def relative_spread(values: Sequence[float]) -> float:
    """Return (max - min) / median; 0.0 for fewer than two values or a median of zero."""
    middle = statistics.median(values) if values else 0.0
    return (max(values) - min(values)) / middle if len(values) > 1 and middle else 0.0


def _clock(records: Sequence[LatencyRecord]) -> str:
    clocks: set[str] = {r.clock for r in records}
    return "mixed" if len(clocks) > 1 else next(iter(clocks), "software")
