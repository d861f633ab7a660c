# SPDX-License-Identifier: BSD-3-Clause
"""The offered traffic of traffic profiles, for page and terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from planebench.model.records import TrafficSent
from planebench.model.results import Result
from planebench.model.words import NOTHING, count, percent, point_words, printable, us
from planebench.report.page.table import PageColumn, PageTable, number, page_table, point_columns

MAX_SIZES = 12
"""Sizes of a mix that are listed; a capture may have hundreds."""


def traffic_table(results: Sequence[Result]) -> PageTable:
    """Return a row for each direction of each point with a traffic profile, from the accepted saturating trials."""
    pairs = [(result, sent) for result in results for sent in result.sent]
    updates = number("FIB updates/s", lambda it: updates_words(it[0]))
    updating = any(result.fib_updates_per_s is not None for result, _ in pairs)
    replies = (
        number("control replies", lambda it: control_words(it[0])),
        number("reply p50 µs", lambda it: reply_words(it[0], "p50_us")),
        number("p99 µs", lambda it: reply_words(it[0], "p99_us")),
    )
    answering = any(result.control is not None for result, _ in pairs)
    columns = (
        *point_columns(pairs, lambda it: it[0].point),
        PageColumn("way", lambda it: it[1].name),
        number("frames", lambda it: count(it[1].packets)),
        number("mean B", lambda it: _mean(it[1])),
        PageColumn("sizes", lambda it: sizes_words(it[1]), "text"),
        number("flows", lambda it: number_words(it[1].flows_sent)),
        number("MACs", lambda it: number_words(len(it[1].dst_macs) or None)),
        number("IPs", lambda it: number_words(it[1].dst_ips_sent)),
        PageColumn("capture", lambda it: pcap_words(it[1]), "text"),
        *((updates,) if updating else ()),
        *(replies if answering else ()),
    )
    note = (
        "Counted by the generators when their ports accepted the frames. Flows, MACs, IPs: number of distinct values."
    )
    return page_table("Offered traffic", columns, pairs, note)


def _mean(sent: TrafficSent) -> str:
    return NOTHING if sent.mean_frame_bytes is None else f"{sent.mean_frame_bytes:.2f}"


def traffic_sentences(results: Sequence[Result]) -> list[str]:
    """Return one line per direction for the terminal: ``planed p2p → imix 362 B, n0->n1: ...``."""
    return [
        f"{result.point.switch} {point_words(result.point)}, {sent.name}: {'; '.join(_words(sent))}{_updates(result)}"
        for result in results
        for sent in result.sent
    ]


def sizes_words(sent: TrafficSent) -> str:
    """Return the most frequent sizes: ``64 B 58 %, 594 B 33 %, 1518 B 8.3 %``."""
    shown = sorted(sent.sizes, key=lambda pair: -pair[1])[:MAX_SIZES]
    words = [f"{size} B {percent(number / sent.packets)}" for size, number in sorted(shown) if sent.packets]
    left = len(sent.sizes) - len(shown)
    return ", ".join((*words, *((f"{left} more sizes",) if left else ()))) or NOTHING


def number_words(number: int | None) -> str:
    """Return a count; a dash for None."""
    return NOTHING if number is None else count(number)


def pcap_words(sent: TrafficSent) -> str:
    """Return how many frames of a capture were sent, enlarged and skipped."""
    if sent.pcap_frames is None:
        return NOTHING
    skipped = [f"{count(n)} skipped: {printable(why)}" for why, n in sent.pcap_skipped.items()]
    loops = f", {sent.pcap_loops} times" if sent.pcap_loops else ""
    return "; ".join((f"{count(sent.pcap_frames)} frames{loops}", f"{count(sent.pcap_enlarged)} enlarged", *skipped))


def updates_words(result: Result) -> str:
    """Return the applied FIB updates per second; a dash if there were none."""
    return NOTHING if result.fib_updates_per_s is None else count(round(result.fib_updates_per_s))


def control_words(result: Result) -> str:
    """Return how many control packets were answered: ``12 of 12``; a dash if there were none."""
    control = result.control
    return NOTHING if control is None else f"{count(control.replies)} of {count(control.sent)}"


def reply_words(result: Result, figure: Literal["p50_us", "p99_us"]) -> str:
    """Return a percentile of the times to the replies; a dash without any."""
    value = None if result.control is None else getattr(result.control, figure)
    return NOTHING if value is None else us(value)


def _updates(result: Result) -> str:
    if result.fib_updates_per_s is None:
        return ""
    words = f"; {updates_words(result)} FIB updates per second applied"
    if result.control is not None:
        words += f"; control packets answered: {control_words(result)}, median {reply_words(result, 'p50_us')} µs"
    return words


def _words(sent: TrafficSent) -> Iterator[str]:
    mean = sent.mean_frame_bytes
    yield f"{count(sent.packets)} frames" + ("" if mean is None else f", mean {mean:.2f} B")
    for found, what in (
        (sent.flows_sent, "flows"),
        (len(sent.dst_macs) or None, "destination MACs"),
        (sent.dst_ips_sent, "destination IPs"),
    ):
        if found is not None and found > 1:
            yield f"{count(found)} {what}"
    if sent.pcap_frames is not None:
        yield pcap_words(sent)
