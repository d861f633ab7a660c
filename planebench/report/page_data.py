# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a scenario on the page: throughput, latency, jitter, the other core distance, the drop ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planebench.metrics.column import Column, on_page
from planebench.metrics.results import DROPS, JITTER, LATENCY, RESULT, OfLatency, OfResult
from planebench.model.results import BandFigure, Ledger, Result
from planebench.model.run import Run
from planebench.model.words import NOTHING, count, load_words, mpps, throughput
from planebench.report.ledger import unexplained_words
from planebench.report.page_table import PageTable, page_table
from planebench.stats.counting import counts, latency_counts

_LOAD = Column("load", str, "summary.load", title="load", kind="plain", words=load_words)
_CLOCK = Column("clock", str, "summary.clock", title="clock", kind="plain")


def throughput_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return a row per result, with what the figure rests on."""
    return page_table(
        "Throughput at maximum offered load (R+)",
        on_page(RESULT),
        [OfResult(run, result) for result in results],
        out=lambda it: not counts(it.result),
        note="Cycles / packet, batch (packets per non-empty poll) and core utilization are reported by the switch; "
        "unknown: it has no such counter.",
    )


def latency_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return a row per latency, in us, with its probes and, where it is known, the tester latency baseline."""
    table = page_table("Latency in µs", on_page(LATENCY), _latencies(run, results), out=_not_accepted)
    note = "Sent, stamped, received: probes. Stamped but not received: lost, or still in flight when the trial ended."
    if any(head.name == "baseline" for head in table.heads):
        note += " Baseline: the p50 that the tester measures without a switch at this frame size."
    return replace(table, note=note)


def jitter_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return mean / p99 / max in us of each definition that a latency has."""
    items = [it for it in _latencies(run, results) if it.summary.ipdv or it.summary.pdv or it.summary.burst_jitter]
    columns = (_LOAD, *on_page(LATENCY, JITTER), _CLOCK)
    return page_table("Jitter, mean / p99 / max in µs", columns, items, out=_not_accepted)


def _latencies(run: Run, results: Sequence[Result]) -> list[OfLatency]:
    return [OfLatency(run, result, summary) for result in results for summary in result.latency]


def _not_accepted(it: OfLatency) -> bool:
    return not latency_counts(it.summary)


@dataclass(frozen=True, slots=True)
class _OfBand(OfResult):
    figure: BandFigure


def _share_of_result(it: _OfBand) -> str:
    pps = it.result.throughput_pps
    return f"{it.figure.throughput_pps / pps:.2f}" if pps else NOTHING


_BANDS = (
    Column(
        "result_pps",
        float,
        "result.throughput_pps",
        title="result, Mpps",
        cell=lambda it: f"{throughput(it.result)} {it.result.band or 'unknown'}",
    ),
    Column("throughput_pps", float, "figure.throughput_pps", title="Mpps", kind="strong", words=mpps),
    Column("band", str, "figure.band", title="core group", kind="plain"),
    Column("trials", int, "figure.trials", title="trials"),
    Column("share", float, "figure.throughput_pps", title="ratio to the result", cell=_share_of_result),
)


def band_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return the figures of the other band beside those of the result; never mixed into them."""
    items = [_OfBand(run, result, figure) for result in results for figure in result.other_bands]
    return page_table("Results of the other core group (core-to-core latency)", _BANDS, items)


def ledger_table(run: Run, results: Sequence[Result]) -> PageTable:
    """Return where the frames of the saturating trials went: forwarded, lost by place and cause, unexplained."""
    items = [OfResult(run, result) for result in results if result.ledger is not None]
    return page_table(
        "Loss accounting of the accepted trials, in frames", (*_SUMS, *on_page(RESULT, DROPS), *_WHERE), items
    )


def _losses(ledger: Ledger) -> str:
    return "; ".join(f"{count(loss.packets)} {loss.place}: {loss.cause}" for loss in ledger.losses) or NOTHING


def _unexplained(ledger: Ledger) -> str:
    if ledger.unexplained_packets:
        return f"⚠ {unexplained_words(ledger)}"
    return "0" if ledger.counted else "0 (some switches report no drop counters)"


_SUMS = (
    Column("offered_packets", int, "result.ledger.offered_packets", title="offered", words=count),
    Column("forwarded_packets", int, "result.ledger.forwarded_packets", title="forwarded", words=count),
    Column("lost_packets", int, "result.ledger.lost_packets", title="lost", words=count),
)
_WHERE = (
    Column("losses", str, "result.ledger", title="lost where and why", kind="text", words=_losses),
    Column("unexplained_packets", int, "result.ledger", title="unexplained", kind="plain", words=_unexplained),
)
