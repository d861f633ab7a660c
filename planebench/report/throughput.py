# SPDX-License-Identifier: BSD-3-Clause
"""Throughput: rows of its charts, and its figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from planebench.analysis.counting import counts, same_cell
from planebench.model.records import Verdict, VerdictKind
from planebench.model.results import Result
from planebench.model.server import NEAR
from planebench.model.time_had import STOOD_SHARE
from planebench.model.words import (
    ARROWS,
    NOTHING,
    cycles,
    estimate,
    frames,
    interval,
    mark,
    mpps,
    percent,
    printable,
    reasons,
    result_words,
    throughput,
)
from planebench.report.figure import ChartRow, Colors, Figure, cell_title, frames_key, point_name, tip


def throughput_row(result: Result) -> ChartRow:
    """Return one bar: the rate and its 95 % confidence interval in Mpps, and how it may be read."""
    shown, rate = result.throughput_pps is not None, (result.throughput_pps or 0.0) / 1e6
    low, high = (rate if end is None else end / 1e6 for end in (result.throughput_low_pps, result.throughput_high_pps))
    limit = {VerdictKind.TESTER_LIMITED: " tester limit", VerdictKind.LINE_RATE: " line rate"}
    limited = result.verdict.kind.is_bound
    return {
        "switch": printable(result.point.switch),
        "size": frames(result.point),
        "size_bytes": result.point.frame_size_bytes,
        "chain": result.point.chain_length,
        "chain_label": printable(result.point.chain_label),
        "mpps": rate,
        "low": low,
        "high": high,
        "label": throughput(result) + limit.get(result.verdict.kind, "")
        if shown
        else f"{NOTHING} {result.verdict.kind.value}",
        "limited": limited,
        "counts": counts(result),
        "cell": point_name(result.point),
        "tip": tip(throughput_tip(result), result.point),
    }


def throughput_tip(result: Result) -> str:
    """Return the throughput of a result in words, with its interval, its verdict and the evidence for both."""
    point = result.point
    name = f"{printable(point.switch)}, {printable(point.scenario_label)} {point.direction} {frames(point)}"
    return f"{name}: {_throughput_words(result)}; {_evidence_words(result)}"


def _evidence_words(result: Result) -> str:
    starts = f"{result.starts} start{'' if result.starts == 1 else 's'}, " if result.throughput_pps is not None else ""
    host = host_words(result) or f"the host took {percent(result.stood_share)} of the time"
    return f"{verdict_words(result.verdict)}; {starts}{host}"


def host_words(result: Result) -> str:
    """Return what the host took from the pollers, and the throughput as counted; empty where that is little."""
    if result.stood_share <= STOOD_SHARE or result.counted_pps is None:
        return ""
    return f"the host took {percent(result.stood_share)} of the time, as counted {mpps(result.counted_pps)}"


def strata_words(result: Result) -> str:
    """Return what explains a wide interval: ``28.1: 38.2 near (12 trials), 19.4 far (1 trial)``; or nothing."""
    parts = [f"{mpps(it.throughput_pps)} {it.name} ({it.trials} trial{'s' * (it.trials > 1)})" for it in result.strata]
    return f"{throughput(result)} Mpps: {', '.join(parts)}" if parts else ""


def verdict_words(verdict: Verdict) -> str:
    """Return a verdict with its first reason: ``verdict tester-limited: the switch was busy 60 %``."""
    why = printable(reasons(verdict.texts, 100))
    return f"verdict {verdict.kind.value}{f': {why}' if why else ''}"


def _throughput_words(result: Result) -> str:
    if result.throughput_pps is None:
        return "no trial counts"
    at_least = "at least " if mark(result.verdict.kind) == "≥" else ""
    trials = len(result.throughput_trials_pps)
    plural = "" if trials == 1 else "s"
    known = interval(result.throughput_low_pps, result.throughput_high_pps, mpps)
    return (
        f"{at_least}{mpps(result.throughput_pps)} Mpps{f' {known}' if known else ''}, "
        f"{result.throughput_l1_gbps or 0:.1f} Gb/s layer 1, "
        f"mean of {trials} trial{plural}{_limit_words(result)}"
    )


def _limit_words(result: Result) -> str:
    """Return what the switch reports of its core, if the tester limits it."""
    if mark(result.verdict.kind) != "≥" or result.switch_busy_share is None:
        return ""
    words = (
        f"; core utilization {percent(result.switch_busy_share)}, "
        f"{cycles(result.switch_cycles_per_packet)} cycles per packet"
    )
    known = estimate(result.capacity_estimate_pps, result.capacity_low_pps, result.capacity_high_pps)
    return words + (f", {known} Mpps" if known else "")


def throughput_figures(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield bars by direction; nothing for several chains, which have curves or bars of their own."""
    from planebench.report.charts import throughput_bars

    if len({r.point.chain_key for r in results}) > 1:
        return
    top = top_mpps(results)
    for direction in dict.fromkeys(r.point.direction for r in results):
        members = [r for r in results if r.point.direction == direction]
        point = members[0].point
        chart = partial(throughput_bars, [throughput_row(r) for r in members], colors, top)
        key = f"throughput-{point.scenario_slug}-{direction}"
        yield Figure(key, "throughput", point.scenario, f"{ARROWS[direction]} {direction}", chart)


def chain_length_figures(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield curves over the length of chains of one function; bars by chain if they have names."""
    from planebench.report.charts import chain_curves

    if len({r.point.chain_key for r in results}) < 2:
        return
    if any(r.point.named for r in results):
        yield from _named_chains(results, colors)
        return
    for cell, members in same_cell(results, chain_length=1).items():
        rows = [throughput_row(r) for r in members]
        if any(row["counts"] for row in rows):
            key = f"chain-{cell.direction}-{frames_key(cell)}"
            chart = partial(chain_curves, rows, colors, top_mpps(members))
            yield Figure(key, "chain", cell.scenario, cell_title(cell), chart)


def _named_chains(results: Sequence[Result], colors: Colors) -> Iterator[Figure]:
    """Yield bars by chain, a figure per direction and frame size."""
    from planebench.report.charts import throughput_bars

    length = min(results[0].point.chain_length, 1)  # of p2v and v2v, where ends are hosted in several ways, 0
    cells = same_cell(results, chain_length=length, chain="", hosting="process", placement=NEAR)
    top = top_mpps(results)
    for cell, members in cells.items():
        rows = [{**row, "size": row["chain_label"] or "process"} for row in map(throughput_row, members)]
        key = f"chain-{cell.direction}-{frames_key(cell)}"
        yield Figure(key, "chain", cell.scenario, cell_title(cell), partial(throughput_bars, rows, colors, top))


def strata_sentences(results: Iterable[Result]) -> list[str]:
    """Return a sentence for each throughput that something explains."""
    return [f"{result_words(r)}: {words}" for r in results if (words := strata_words(r))]


def top_mpps(results: Sequence[Result]) -> float:
    """Return the end of the Mpps axis, with room for the label behind the longest bar."""
    rates = [rate for r in results for rate in (r.throughput_pps, r.throughput_high_pps) if rate]
    limited = any(mark(r.verdict.kind) == "≥" for r in results)
    return max(rates, default=1e6) / 1e6 * (1.6 if limited else 1.22)
