# SPDX-License-Identifier: BSD-3-Clause
"""The offered traffic of traffic profiles."""

from __future__ import annotations

from collections.abc import Sequence

from planebench.model.records import TrafficSent
from planebench.model.results import Result
from planebench.model.words import NOTHING, count, percent, us
from planebench.report.tables import PageColumn, PageTable, known, number, page_table, point_columns

MAX_SIZES = 12
"""Sizes of a mix that are listed; a capture may have hundreds."""


def traffic_table(results: Sequence[Result]) -> PageTable:
    """Return a row for each direction of each point with a traffic profile, from the accepted saturating trials."""
    pairs = [(result, sent) for result in results for sent in result.sent]
    columns = [
        *point_columns(lambda it: it[0].point),
        PageColumn("way", lambda it: it[1].name),
        number("frames", lambda it: count(it[1].packets)),
        number("mean B", lambda it: known(it[1].mean_frame_bytes, "{:.2f}".format)),
        PageColumn("sizes", lambda it: _sizes(it[1]), "text"),
        number("flows", lambda it: known(it[1].flows_sent, count)),
        number("MACs", lambda it: known(len(it[1].dst_macs) or None, count)),
        number("IPs", lambda it: known(it[1].dst_ips_sent, count)),
        PageColumn("capture", lambda it: _capture(it[1]), "text"),
    ]
    if any(sent.entries is not None for _, sent in pairs):
        columns.insert(-1, number("entries touched", lambda it: _touched(it[1])))
    if any(result.fib_updates_per_s is not None for result, _ in pairs):
        columns.append(number("FIB updates/s", lambda it: known(it[0].fib_updates_per_s, "{:.0f}".format)))
    if any(result.control is not None for result, _ in pairs):
        columns += (
            number(
                "control replies", lambda it: known(it[0].control, lambda c: f"{count(c.replies)} of {count(c.sent)}")
            ),
            number("reply p50 µs", lambda it: known(it[0].control and it[0].control.p50_us, us)),
            number("p99 µs", lambda it: known(it[0].control and it[0].control.p99_us, us)),
        )
    note = (
        "Counted by the generators when their ports accepted the frames. Flows, MACs, IPs: number of distinct values. "
        "Entries: those of the synthetic FIB of each VNF."
    )
    return page_table("Offered traffic", columns, pairs, note)


def _touched(sent: TrafficSent) -> str:
    """Return ``6 300 000 of 63 000 000 (10 %)``; entries alone, where so many are not counted."""
    if sent.entries is None or sent.entries_touched is None:
        return known(sent.entries, count)
    return f"{count(sent.entries_touched)} of {count(sent.entries)} ({percent(sent.entries_touched / sent.entries)})"


def _sizes(sent: TrafficSent) -> str:
    """Return the most frequent sizes: ``64 B 58 %, 594 B 33 %, 1518 B 8.3 %``."""
    shown = sorted(sent.sizes, key=lambda pair: -pair[1])[:MAX_SIZES]
    words = [f"{size} B {percent(number / sent.packets)}" for size, number in sorted(shown) if sent.packets]
    left = len(sent.sizes) - len(shown)
    return ", ".join((*words, *((f"{left} more sizes",) if left else ()))) or NOTHING


def _capture(sent: TrafficSent) -> str:
    """Return how many frames of a capture were sent, enlarged and skipped."""
    if sent.pcap_frames is None:
        return NOTHING
    skipped = [f"{count(n)} skipped: {why}" for why, n in sent.pcap_skipped.items()]
    loops = f", {sent.pcap_loops} times" if sent.pcap_loops else ""
    return "; ".join((f"{count(sent.pcap_frames)} frames{loops}", f"{count(sent.pcap_enlarged)} enlarged", *skipped))
