# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a scenario on the page: throughput, latency, jitter, the other core distance, the drop ledger."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.analysis.counting import counts, latency_counts
from planebench.analysis.metrics.results import DROPS, JITTER, LATENCY, RESULT, OfLatency, OfResult
from planebench.model.header import Run
from planebench.model.records import Point
from planebench.model.results import Ledger, Result
from planebench.model.words import NOTHING, count, load_words, mpps, throughput
from planebench.report.page.table import PageColumn, PageTable, number, on_page, page_table, point_columns
from planebench.report.trials import unexplained_words


def throughput_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return a row per result, with what the figure rests on."""
    items = [OfResult(run, result) for result in results]
    return page_table(
        "Throughput at maximum offered load (R+)",
        (*point_columns(items, _point), *on_page(RESULT, items)),
        items,
        "Cycles / packet, batch (packets per non-empty poll) and core utilization are reported by the switch; "
        "unknown: it has no such counter.",
        out=lambda it: not counts(it.result),
    )


def latency_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return a row per latency, in us, with its probes and, where it is known, the tester latency baseline."""
    items = _latencies(run, results)
    columns = (*point_columns(items, _point), *on_page(LATENCY, items))
    note = "Sent, stamped, received: probes. Stamped but not received: lost, or still in flight when the trial ended."
    if any(column.title == "baseline" for column in columns):
        note += " Baseline: the p50 that the tester measures without a switch at this frame size."
    return page_table("Latency in µs", columns, items, note, out=_not_accepted)


def jitter_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return p50 / p99 / max in us of each definition that a latency has."""
    items = [it for it in _latencies(run, results) if it.summary.ipdv or it.summary.pdv or it.summary.burst_jitter]
    columns = (
        *point_columns(items, _point),
        PageColumn("load", lambda it: load_words(it.summary.load)),
        *on_page(LATENCY, items, JITTER),
        PageColumn("clock", lambda it: it.summary.clock),
    )
    return page_table("Jitter, p50 / p99 / max in µs", columns, items, out=_not_accepted)


def _point(it: OfResult) -> Point:
    return it.result.point


def _latencies(run: Run, results: Sequence[Result]) -> list[OfLatency]:
    return [OfLatency(run, result, summary) for result in results for summary in result.latency]


def _not_accepted(it: OfLatency) -> bool:
    return not latency_counts(it.summary)


def strata_table(results: Sequence[Result]) -> PageTable:
    """Return the throughputs by what explains a wide interval."""
    items = [(result, it) for result in results for it in result.strata]
    columns = (
        *point_columns(items, lambda it: it[0].point),
        number("result, Mpps", lambda it: throughput(it[0])),
        PageColumn("Mpps", lambda it: mpps(it[1].throughput_pps), "strong"),
        PageColumn("trials with", lambda it: it[1].name),
        number("trials", lambda it: it[1].trials),
    )
    return page_table("What explains wide intervals: core distance, shared cores", columns, items)


def ledger_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return where the frames of the saturating trials went: forwarded, lost by place and cause, unexplained.

    Those of the trials that count; of a point without any, those whose counts are exact.
    """
    items = [OfResult(run, result) for result in results if result.ledger is not None]
    columns = (
        *point_columns(items, _point),
        number("offered", lambda it: count(it.result.ledger.offered_packets)),
        number("forwarded", lambda it: count(it.result.ledger.forwarded_packets)),
        number("lost", lambda it: count(it.result.ledger.lost_packets)),
        *on_page(RESULT, items, DROPS),
        PageColumn("lost where and why", lambda it: _losses(it.result.ledger), "text"),
        PageColumn("unexplained", lambda it: _unexplained(it.result.ledger)),
    )
    return page_table("Loss accounting of the saturating trials, in frames", columns, items)


def _losses(ledger: Ledger) -> str:
    return "; ".join(f"{count(loss.packets)} {loss.place}: {loss.cause}" for loss in ledger.losses) or NOTHING


def _unexplained(ledger: Ledger) -> str:
    if ledger.unexplained_packets:
        return f"⚠ {unexplained_words(ledger)}"
    return "0" if ledger.counted else "0 (some switches report no drop counters)"
