# SPDX-License-Identifier: BSD-3-Clause
"""Restarts under traffic, for the terminal and the page: how long nothing came, and where every lost frame went."""

from __future__ import annotations

from planebench.model.outage import OutageReport
from planebench.model.run import Run
from planebench.model.words import count, printable
from planebench.report.page_table import Head, PageTable, Row, heads
from planebench.stats.outages import outage_reports

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
    rows = []
    for report in outage_reports(run):
        for number, it in enumerate(report.outages, start=1):
            times = (it.silence.duration_ns, it.calm.duration_ns, it.restart_ns)
            frames = (it.lost_packets, it.unsent_ring_full_packets, it.dropped_packets, it.gone_packets)
            cells = (
                report.switch,
                printable(_restart(report)),
                number,
                *(f"{ns / 1e6:.1f}" for ns in times),
                *map(count, (*frames, it.intended_packets, it.unsent_late_packets)),
            )
            rows.append(Row(cells, out=bool(report.functional)))
    times_words = ("outage ms", "calm ms", "restart ms")
    frames_words = ("lost", "not taken", "dropped", "gone", "of", "late")
    columns = (Head("switch", "switch"), Head("restart", "text"), *heads(("no.", *times_words, *frames_words)))
    return PageTable("Restarts under traffic", columns, tuple(rows), NOTE)


def _what(report: OutageReport) -> str:
    return printable(f"{report.switch}: {_restart(report)}")


def _restart(report: OutageReport) -> str:
    how = "killed" if report.killed else "ended"
    return f"{report.chain}: {report.victim} {how}, {count(round(report.rate_pps))} frames/s"


def _shown(report: OutageReport, text: str) -> str:
    return f"({text})" if report.functional else text
