# SPDX-License-Identifier: BSD-3-Clause
"""The tables of a scenario: throughput, latency, jitter, the other core distance, where frames were lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from planebench.model.header import Calibration
from planebench.model.records import Point
from planebench.model.results import JitterSummary, LatencySummary, Result
from planebench.model.words import (
    NOTHING,
    UNKNOWN,
    batch,
    count,
    cycles,
    estimate,
    latency_counts,
    load_words,
    mpps,
    percent,
    throughput,
    us,
)
from planebench.report.ledger import unexplained_words
from planebench.report.page_table import Head, PageTable, Row, heads, point_cells, point_heads, verdict_cell
from planebench.stats.ceiling import latency_floor
from planebench.stats.ranking import counts

JITTERS = (("IPDV (RFC 3393)", "ipdv"), ("PDV (delay - minimum)", "pdv"), ("burst means (ic16)", "burst_jitter"))
"""The three definitions, named exactly, and their fields."""

_FIGURES = ("mean", "stddev", "p50", "p90", "p99", "p99_9", "max")


def throughput_table(results: Sequence[Result]) -> PageTable:
    """A row a result, with what the figure rests on."""
    points = [r.point for r in results]
    numbers = (
        "± sd",
        "median",
        "Gb/s L1",
        "trials",
        "rejected",
        "loss",
        "cycles / packet",
        "batch",
        "core busy",
        "estimate",
    )
    return PageTable(
        "Throughput at saturating input",
        (*point_heads(points), Head("Mpps", "strong"), *heads(numbers), Head("band"), Head("verdict", "verdict")),
        tuple(Row((*point_cells(r.point, points), *_throughput(r)), not counts(r)) for r in results),
        "Cycles / packet, batch (frames that a poll found, of polls that found any) and core busy are what the switch "
        "says of itself; unknown: it does not.",
    )


def latency_table(results: Sequence[Result], calibration: Calibration | None = None) -> PageTable:
    """A row a latency, in us, with its probes; beside it the latency floor of the tester where it is known."""
    pairs = [(r, s) for r in results for s in r.latency]
    points = [r.point for r, _ in pairs]
    floors = {p: _floor(calibration, p) for p in points}
    with_floor = any(floor != NOTHING for floor in floors.values())
    names = ("Mpps", "achieved", "mean", "sd", "p50", "p90", "p99", "p99.9", "max")
    probes = ("sent", "stamped", "received")
    rows = []
    for r, s in pairs:
        floor = (floors[r.point],) if with_floor else ()
        rows.append(
            Row((*point_cells(r.point, points), *_latency(s), *floor, *_probes(s), verdict_cell(s.verdict)), _out(s))
        )
    floor_head = heads(("floor",)) if with_floor else ()
    note = "Sent, stamped, received: probes. Stamped and not received: lost, or late by more than the trial."
    if with_floor:
        note += " Floor: the p50 that the tester measures on its own wire at this frame size."
    return PageTable(
        "Latency in µs",
        (
            *point_heads(points),
            Head("load"),
            *heads(names),
            *floor_head,
            *heads(probes),
            Head("clock"),
            Head("verdict", "verdict"),
        ),
        tuple(rows),
        note,
    )


def jitter_table(results: Sequence[Result]) -> PageTable:
    """Mean / p99 / max in us of each definition that a latency has."""
    pairs = [(r, s) for r in results for s in r.latency if s.ipdv or s.pdv or s.burst_jitter]
    points = [r.point for r, _ in pairs]
    rows = tuple(
        Row(
            (
                *point_cells(r.point, points),
                load_words(s.load),
                *(_jitter(getattr(s, name)) for _, name in JITTERS),
                s.clock,
            ),
            _out(s),
        )
        for r, s in pairs
    )
    titles = heads(title for title, _ in JITTERS)
    return PageTable(
        "Jitter, mean / p99 / max in µs", (*point_heads(points), Head("load"), *titles, Head("clock")), rows
    )


def band_table(results: Sequence[Result]) -> PageTable:
    """Figures of the other band beside those of the result; never mixed into them."""
    pairs = [(r, b) for r in results for b in r.other_bands]
    points = [r.point for r, _ in pairs]
    rows = tuple(
        Row(
            (
                *point_cells(r.point, points),
                f"{throughput(r)} {r.band or 'unknown'}",
                mpps(b.throughput_pps),
                b.band,
                b.trials,
                f"{b.throughput_pps / r.throughput_pps:.2f}" if r.throughput_pps else NOTHING,
            )
        )
        for r, b in pairs
    )
    columns = (Head("result, Mpps", "number"), Head("Mpps", "strong"), Head("core distance"))
    return PageTable(
        "The same at the other core distance",
        (*point_heads(points), *columns, *heads(("trials", "share of the result"))),
        rows,
    )


def ledger_table(results: Sequence[Result]) -> PageTable:
    """Where the frames of the saturating trials went: forwarded, lost by place and cause, unexplained."""
    members = [(r, r.ledger) for r in results if r.ledger is not None]
    points = [r.point for r, _ in members]
    rows = tuple(
        Row(
            (
                *point_cells(r.point, points),
                count(ledger.offered_packets),
                count(ledger.forwarded_packets),
                count(ledger.offered_packets - ledger.forwarded_packets),
                _counted(r.switch_received_packets),
                _counted(r.switch_forwarded_packets),
                "; ".join(f"{count(loss.packets)} {loss.place}: {loss.cause}" for loss in ledger.losses) or NOTHING,
                (f"⚠ {unexplained_words(ledger)}" if ledger.unexplained_packets else "0")
                + ("" if ledger.counted or ledger.unexplained_packets else " (not all count drops)"),
            )
        )
        for r, ledger in members
    )
    columns = (
        *heads(("offered", "forwarded", "lost", "switch received", "switch forwarded")),
        Head("lost where and why", "text"),
        Head("unexplained"),
    )
    return PageTable("Drop ledger of the trials that count, in frames", (*point_heads(points), *columns), rows)


def _counted(packets: int | None) -> str:
    return UNKNOWN if packets is None else count(packets)


def _throughput(result: Result) -> tuple[Any, ...]:
    sd, median, gbps = result.throughput_stddev_pps, result.throughput_median_pps, result.throughput_l1_gbps
    return (
        throughput(result),
        NOTHING if sd is None else f"{sd / 1e6:.3f}",
        mpps(median),
        NOTHING if gbps is None else f"{gbps:.2f}",
        len(result.throughput_trials_pps),
        result.rejected,
        percent(result.loss_ratio),
        _told(result, result.switch_cycles_per_packet, cycles),
        _told(result, result.switch_batch_size, batch),
        _told(result, result.switch_busy_share, percent),
        estimate(result.capacity_estimate_pps),
        result.band or NOTHING,
        verdict_cell(result.verdict),
    )


def _told(result: Result, value: float | None, words: Callable[[float | None], str]) -> str:
    """A figure of the switch's own: where trials count, and it does not tell it, it is unknown."""
    return UNKNOWN if value is None and result.throughput_pps is not None else words(value)


def _latency(summary: LatencySummary) -> tuple[Any, ...]:
    achieved = f"{summary.achieved_fraction:.1%}".replace("%", " %")
    figures = (us(getattr(summary, name)) for name in _FIGURES)
    return (load_words(summary.load), mpps(summary.intended_pps), achieved, *figures)


def _probes(summary: LatencySummary) -> tuple[Any, ...]:
    """Sent, stamped, received, clock. Runs of schema 1 do not know how many were stamped."""
    stamped = count(summary.probes_stamped) if summary.probes_stamped else NOTHING
    return (count(summary.probes_sent), stamped, count(summary.samples), summary.clock)


def _out(summary: LatencySummary) -> bool:
    return not latency_counts(summary)


def _floor(calibration: Calibration | None, point: Point) -> str:
    floor = latency_floor(calibration, point)
    return NOTHING if floor is None else us(floor.p50_ns / 1e3)


def _jitter(jitter: JitterSummary | None) -> str:
    return NOTHING if jitter is None else f"{us(jitter.mean)} / {us(jitter.p99)} / {us(jitter.max)}"
