# SPDX-License-Identifier: BSD-3-Clause
"""Restarts under traffic, for the terminal and the page: the time without frames, and where the lost frames went."""

from __future__ import annotations

from planebench.analysis.outages import outage_reports
from planebench.model.header import Run
from planebench.model.outage import OutageReport
from planebench.model.words import count, printable
from planebench.report.page.table import PageColumn, PageTable, number, page_table

TITLE = "Outages"
NOTE = (
    "Outage: the longest time without a received frame. Calm: the same traffic just before, without a restart. "
    "Dropped: counted by the switch or a VNF. Gone: sent, neither received nor counted. In brackets: functional, "
    "frames were counted, times are no figures of performance."
)


def outage_lines(run: Run) -> list[str]:
    """Return a line for each switch and restart: the median outage, and the frames lost."""
    return [
        f"{_what(it)}: {_shown(it, f'{it.silence_median_ns / 1e6:.1f} ms')}, {count(round(it.lost_median_packets))} "
        f"frames lost (median of {len(it.outages)})"
        for it in outage_reports(run)
    ]


def outage_table(run: Run) -> PageTable:
    """Return a row for each restart, in the order in which they were measured."""
    items = [(report, number, it) for report in outage_reports(run) for number, it in enumerate(report.outages, 1)]
    columns = (
        PageColumn("switch", lambda it: it[0].switch, "switch"),
        PageColumn("restart", lambda it: printable(_restart(it[0])), "text"),
        number("no.", lambda it: it[1]),
        number("outage ms", lambda it: _ms(it[2].silence.duration_ns)),
        number("calm ms", lambda it: _ms(it[2].calm.duration_ns)),
        number("restart ms", lambda it: _ms(it[2].restart_ns)),
        number("lost", lambda it: count(it[2].lost_packets)),
        number("not taken", lambda it: count(it[2].unsent_ring_full_packets)),
        number("dropped", lambda it: count(it[2].dropped_packets)),
        number("gone", lambda it: count(it[2].gone_packets)),
        number("of", lambda it: count(it[2].intended_packets)),
        number("late", lambda it: count(it[2].unsent_late_packets)),
    )
    return page_table("Restarts under traffic", columns, items, NOTE, out=lambda it: bool(it[0].functional))


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.1f}"


def _what(report: OutageReport) -> str:
    return printable(f"{report.switch}: {_restart(report)}")


def _restart(report: OutageReport) -> str:
    how = "killed" if report.killed else "ended"
    return f"{report.chain}: {report.victim} {how}, {count(round(report.rate_pps))} frames/s"


def _shown(report: OutageReport, text: str) -> str:
    return f"({text})" if report.functional else text
