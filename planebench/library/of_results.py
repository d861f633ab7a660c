# SPDX-License-Identifier: BSD-3-Clause
"""Tables of what trials came to: results, latency, searches, loss-rate curves, ledger, anatomy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planebench.library.source import Source
from planebench.library.table import NUMBERS, TEXTS, Column, Table
from planebench.model.header import LatencyFloor
from planebench.model.records import Verdict, VerdictKind
from planebench.model.results import (
    AnatomySummary,
    BurstSummary,
    CurvePoint,
    JitterSummary,
    LatencySummary,
    Loss,
    PartSummary,
    Result,
    SearchResult,
)
from planebench.model.run import Run
from planebench.model.words import latency_counts
from planebench.report.search_words import search_counts
from planebench.stats.ceiling import latency_floor
from planebench.stats.choose import is_foreign
from planebench.stats.ranking import counts

LIMITED = VerdictKind.TESTER_LIMITED
INDICES = "BIGINT[]"


@dataclass(frozen=True, slots=True)
class OfResult:
    """A row of a result."""

    run: Run
    result: Result


@dataclass(frozen=True, slots=True)
class OfLatency(OfResult):
    """A row of one load."""

    summary: LatencySummary


@dataclass(frozen=True, slots=True)
class OfPart(OfLatency):
    """A row of a part of the path."""

    anatomy: AnatomySummary
    part: PartSummary


@dataclass(frozen=True, slots=True)
class OfSearch(OfResult):
    """A row of a search."""

    search: SearchResult


@dataclass(frozen=True, slots=True)
class OfCurve(OfSearch):
    """A row of one load of a loss-rate curve."""

    point: CurvePoint


@dataclass(frozen=True, slots=True)
class OfLoss(OfResult):
    """A row of one place where frames were lost; ``counted``: whether the switch counts its drops at all."""

    loss: Loss | None
    packets: int
    offered_packets: int
    forwarded_packets: int
    counted: bool


POINT: Mapping[str, Column[OfResult]] = {
    "run_id": ("VARCHAR", lambda it: it.run.header.run_id),
    "switch": ("VARCHAR", lambda it: it.result.point.switch),
    "version": ("VARCHAR", lambda it: it.result.version),
    "scenario": ("VARCHAR", lambda it: it.result.point.scenario),
    "chain_length": ("INTEGER", lambda it: it.result.point.chain_length),
    "chain": ("VARCHAR", lambda it: it.result.point.chain_text),
    "direction": ("VARCHAR", lambda it: it.result.point.direction),
    "frame_size_bytes": ("INTEGER", lambda it: it.result.point.frame_size_bytes),
    "traffic": ("VARCHAR", lambda it: it.result.point.traffic),
    "wire": ("VARCHAR", lambda it: it.result.point.wire),
    "hosting": ("VARCHAR", lambda it: it.result.point.hosting),
}
"""Which point, of which run: the first columns of every table of this module, and what they are joined by."""

RESULTS: Mapping[str, Column[OfResult]] = {
    **POINT,
    "verdict": ("VARCHAR", lambda it: it.result.verdict.kind.value),
    "verdict_reasons": (TEXTS, lambda it: list(it.result.verdict.reasons)),
    "counts": ("BOOLEAN", lambda it: counts(it.result)),
    "is_lower_bound": ("BOOLEAN", lambda it: counts(it.result) and it.result.verdict.kind is LIMITED),
    "band": ("VARCHAR", lambda it: it.result.band),
    "other_band": ("BOOLEAN", lambda it: is_foreign(it.result.verdict)),
    "throughput_pps": ("DOUBLE", lambda it: it.result.throughput_pps),
    "throughput_median_pps": ("DOUBLE", lambda it: it.result.throughput_median_pps),
    "throughput_stddev_pps": ("DOUBLE", lambda it: it.result.throughput_stddev_pps),
    "throughput_trials_pps": (NUMBERS, lambda it: list(it.result.throughput_trials_pps)),
    "throughput_l1_gbps": ("DOUBLE", lambda it: it.result.throughput_l1_gbps),
    "capacity_estimate_pps": ("DOUBLE", lambda it: it.result.capacity_estimate_pps),
    "loss_ratio": ("DOUBLE", lambda it: it.result.loss_ratio),
    "mean_frame_bytes": ("DOUBLE", lambda it: it.result.mean_frame_bytes),
    "switch_cycles_per_packet": ("DOUBLE", lambda it: it.result.switch_cycles_per_packet),
    "switch_busy_share": ("DOUBLE", lambda it: it.result.switch_busy_share),
    "switch_batch_size": ("DOUBLE", lambda it: it.result.switch_batch_size),
    "switch_received_packets": ("BIGINT", lambda it: it.result.switch_received_packets),
    "switch_forwarded_packets": ("BIGINT", lambda it: it.result.switch_forwarded_packets),
    "trials": ("INTEGER", lambda it: len(it.result.trials)),
    "rejected": ("INTEGER", lambda it: it.result.rejected),
    "trial_indices": (INDICES, lambda it: list(it.result.trials)),
}


def _verdict(of: Callable[[OfLatency], Verdict]) -> Mapping[str, Column[OfLatency]]:
    return {
        "verdict": ("VARCHAR", lambda it: of(it).kind.value),
        "verdict_reasons": (TEXTS, lambda it: list(of(it).reasons)),
        "counts": ("BOOLEAN", lambda it: latency_counts(it.summary)),
        "other_band": ("BOOLEAN", lambda it: is_foreign(of(it))),
    }


def _figure(name: str) -> Column[OfLatency]:
    """Of a latency, in us; None where no probe came back."""
    return "DOUBLE", lambda it: getattr(it.summary, name)


def _jitter(prefix: str, of: Callable[[LatencySummary], JitterSummary | None]) -> Mapping[str, Column[OfLatency]]:
    def column(name: str) -> Column[OfLatency]:
        return "DOUBLE", lambda it: None if (found := of(it.summary)) is None else getattr(found, name)

    return {f"{prefix}_{name}_us": column(name) for name in ("mean", "p50", "p99", "max")}


def _floor(it: OfLatency) -> LatencyFloor | None:
    return latency_floor(it.run.header.calibration, it.result.point)


LATENCY: Mapping[str, Column[OfLatency]] = {
    **POINT,
    "load": ("VARCHAR", lambda it: it.summary.load),
    "intended_pps": ("DOUBLE", lambda it: it.summary.intended_pps),
    "achieved_fraction": ("DOUBLE", lambda it: it.summary.achieved_fraction),
    **_verdict(lambda it: it.summary.verdict),
    **{f"{name}_us": _figure(name) for name in ("mean", "stddev", "p50", "p90", "p99", "p99_9", "max")},
    "samples": ("BIGINT", lambda it: it.summary.samples),
    "probes_sent": ("BIGINT", lambda it: it.summary.probes_sent),
    "probes_stamped": ("BIGINT", lambda it: it.summary.probes_stamped),
    "clock": ("VARCHAR", lambda it: it.summary.clock),
    **_jitter("ipdv", lambda s: s.ipdv),
    **_jitter("pdv", lambda s: s.pdv),
    **_jitter("burst_jitter", lambda s: s.burst_jitter),
    "floor_p50_us": ("DOUBLE", lambda it: None if (f := _floor(it)) is None else f.p50_ns / 1e3),
    "floor_p99_us": ("DOUBLE", lambda it: None if (f := _floor(it)) is None else f.p99_ns / 1e3),
}

ANATOMY: Mapping[str, Column[OfPart]] = {
    **POINT,
    "load": ("VARCHAR", lambda it: it.summary.load),
    **_verdict(lambda it: it.summary.verdict),
    "flow": ("VARCHAR", lambda it: it.anatomy.direction),
    "probes": ("BIGINT", lambda it: it.anatomy.probes),
    "part": ("VARCHAR", lambda it: it.part.name),
    "kind": ("VARCHAR", lambda it: it.part.kind),
    "mean_us": ("DOUBLE", lambda it: it.part.mean),
    "p50_us": ("DOUBLE", lambda it: it.part.p50),
    "p99_us": ("DOUBLE", lambda it: it.part.p99),
    "share": ("DOUBLE", lambda it: it.part.share),
}


def _burst(name: str) -> Callable[[OfSearch], object]:
    def get(it: OfSearch) -> object:
        burst: BurstSummary | None = it.search.burst
        return None if burst is None else getattr(burst, name)

    return get


_SEARCH: Mapping[str, Column[OfSearch]] = {
    **POINT,
    "method": ("VARCHAR", lambda it: it.search.method),
    "verdict": ("VARCHAR", lambda it: it.search.verdict.kind.value),
    "verdict_reasons": (TEXTS, lambda it: list(it.search.verdict.reasons)),
    "complete": ("BOOLEAN", lambda it: it.search.complete),
    "counts": ("BOOLEAN", lambda it: search_counts(it.search)),
    "is_lower_bound": ("BOOLEAN", lambda it: it.search.verdict.kind is LIMITED),
    "band": ("VARCHAR", lambda it: it.search.band),
    "other_band": ("BOOLEAN", lambda it: is_foreign(it.search.verdict)),
}

SEARCHES: Mapping[str, Column[OfSearch]] = {
    **_SEARCH,
    "lower_pps": ("DOUBLE", lambda it: it.search.lower_pps),
    "upper_pps": ("DOUBLE", lambda it: it.search.upper_pps),
    "conditional_pps": ("DOUBLE", lambda it: it.search.conditional_pps),
    "burst_rate_pps": ("DOUBLE", _burst("rate_pps")),
    "burst_mean_packets": ("DOUBLE", _burst("mean_packets")),
    "burst_min_packets": ("BIGINT", _burst("min_packets")),
    "burst_max_packets": ("BIGINT", _burst("max_packets")),
    "burst_buffer_ns": ("DOUBLE", _burst("buffer_ns")),
    "trials": ("INTEGER", lambda it: len(it.search.trials)),
    "trial_indices": (INDICES, lambda it: list(it.search.trials)),
    "deviations": (TEXTS, lambda it: list(it.search.deviations)),
}

CURVE: Mapping[str, Column[OfCurve]] = {
    **_SEARCH,
    "intended_pps": ("DOUBLE", lambda it: it.point.intended_pps),
    "forwarded_pps": ("DOUBLE", lambda it: it.point.forwarded_pps),
    "loss_ratio": ("DOUBLE", lambda it: it.point.loss_ratio),
}

LEDGER: Mapping[str, Column[OfLoss]] = {
    **POINT,
    "verdict": ("VARCHAR", lambda it: it.result.verdict.kind.value),
    "verdict_reasons": (TEXTS, lambda it: list(it.result.verdict.reasons)),
    "counts": ("BOOLEAN", lambda it: counts(it.result)),
    "place": ("VARCHAR", lambda it: "unexplained" if it.loss is None else it.loss.place),
    "cause": ("VARCHAR", lambda it: "" if it.loss is None else it.loss.cause),
    "packets": ("BIGINT", lambda it: it.packets),
    "offered_packets": ("BIGINT", lambda it: it.offered_packets),
    "forwarded_packets": ("BIGINT", lambda it: it.forwarded_packets),
    "switch_counts_drops": ("BOOLEAN", lambda it: it.counted),
}


def _results(source: Source) -> Iterator[OfResult]:
    return (OfResult(source.run, result) for result in source.results)


def latencies(source: Source) -> Iterator[OfLatency]:
    """Every load of every result."""
    return (OfLatency(source.run, r, summary) for r in source.results for summary in r.latency)


def _parts(source: Source) -> Iterator[OfPart]:
    for it in latencies(source):
        for anatomy in it.summary.anatomy:
            for part in anatomy.parts:
                yield OfPart(it.run, it.result, it.summary, anatomy, part)


def _searches(source: Source) -> Iterator[OfSearch]:
    return (OfSearch(source.run, r, search) for r in source.results for search in r.searches)


def _curves(source: Source) -> Iterator[OfCurve]:
    return (OfCurve(it.run, it.result, it.search, point) for it in _searches(source) for point in it.search.curve)


def _losses(source: Source) -> Iterator[OfLoss]:
    for result in source.results:
        ledger = result.ledger
        if ledger is None:
            continue
        sums = (ledger.offered_packets, ledger.forwarded_packets, ledger.counted)
        for loss in ledger.losses:
            yield OfLoss(source.run, result, loss, loss.packets, *sums)
        yield OfLoss(source.run, result, None, ledger.unexplained_packets, *sums)


RESULT_TABLES: Mapping[str, Table[Any]] = {
    "results": Table("what a point came to: throughput, loss, cycles", RESULTS, _results),
    "latency": Table("a result and load: percentiles, jitter, floor of the tester", LATENCY, latencies),
    "anatomy": Table("a latency, flow and part of the path", ANATOMY, _parts),
    "searches": Table("a result and search: bounds, or the longest burst", SEARCHES, _searches),
    "curve": Table("a load of a loss-rate curve (--search curve)", CURVE, _curves),
    "ledger": Table("a result and place where frames were lost, `unexplained` last", LEDGER, _losses),
}
