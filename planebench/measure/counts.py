# SPDX-License-Identifier: BSD-3-Clause
"""What planed's ``stats.get`` says after a trial, as records. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planebench.model.records import DirectionCounts, LatencyRecord
from planebench.scenarios import Flow
from planebench.stats.histogram import encode

Stats = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TesterCounts:
    """One trial as the tester saw it."""

    directions: tuple[DirectionCounts, ...]
    latency: LatencyRecord | None
    duration_ns: int
    poll_gaps: int
    poll_gap_sum_ns: int
    poll_gap_max_ns: int
    poll_gap_threshold_ns: int
    busy_cycles: int
    foreign_packets: int
    stale_packets: int
    misdirected_packets: int
    """Intact frames of this trial that came out at a port where they do not belong."""
    vnf_drops: int
    tsc_hz: int


def tester_counts(stats: Stats, flows: Sequence[Flow]) -> TesterCounts:
    """Counts of a trial from ``stats.get`` of the tester. ``flows`` are the directions that sent."""
    tasks = {task["name"]: task for task in stats["tasks"]}
    workers = stats["workers"]
    monitors = [task["monitor"] for task in stats["tasks"] if "monitor" in task]
    expected = {(flow.receiver_port, flow.stream) for flow in flows}
    return TesterCounts(
        directions=tuple(_direction(flow, tasks) for flow in flows),
        latency=_latency(flows, tasks),
        duration_ns=max((_generator(flow, tasks)["duration_ns"] for flow in flows), default=0),
        poll_gaps=sum(worker["gaps"] for worker in workers),
        poll_gap_sum_ns=max((worker["gap_sum_ns"] for worker in workers), default=0),
        poll_gap_max_ns=max((worker["gap_max_ns"] for worker in workers), default=0),
        poll_gap_threshold_ns=max((worker["gap_threshold_ns"] for worker in workers), default=0),
        busy_cycles=max((worker["busy_cycles"] for worker in workers), default=0),
        foreign_packets=sum(monitor["foreign_packets"] for monitor in monitors),
        stale_packets=sum(monitor["stale_packets"] for monitor in monitors),
        misdirected_packets=_misdirected(tasks, expected),
        vnf_drops=sum(sum(task["drops"].values()) for task in stats["tasks"] if task["kind"] == "l2fwd"),
        tsc_hz=int(stats["tsc_hz"]),
    )


def received_total(stats: Stats) -> int:
    """Everything the monitors have seen: grows as long as stragglers come in."""
    return sum(task["monitor"]["received_packets"] for task in stats["tasks"] if "monitor" in task)


def _generator(flow: Flow, tasks: Mapping[str, Any]) -> Mapping[str, Any]:
    generator: Mapping[str, Any] = tasks[f"gen-{flow.sender_port}"]["generator"]
    return generator


def _stream(flow: Flow, tasks: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the receiving monitor counted of the flow; empty if it saw nothing of it."""
    streams = tasks[f"mon-{flow.receiver_port}"]["monitor"]["streams"]
    return next((stream for stream in streams if stream["stream"] == flow.stream), {})


def _direction(flow: Flow, tasks: Mapping[str, Any]) -> DirectionCounts:
    sent, came = _generator(flow, tasks), _stream(flow, tasks)
    monitor = tasks[f"mon-{flow.receiver_port}"]["monitor"]
    intended = sent["intended_packets"]
    return DirectionCounts(
        name=flow.name,
        intended_packets=sent["offered_packets"] if intended is None else intended,
        offered_packets=sent["offered_packets"],
        forwarded_packets=came.get("forwarded_packets", 0),
        duplicate_packets=came.get("duplicate_packets", 0),
        reordered_packets=came.get("reordered_packets", 0),
        corrupt_packets=came.get("corrupt_packets", 0),
        unsent_late_packets=sent["unsent_late_packets"],
        unsent_ring_full_packets=sent["unsent_ring_full_packets"],
        attempted_packets=sent["attempted_packets"],
        refused_packets=sent["refused_packets"],
        monitor_bursts=monitor["bursts"],
        monitor_full_bursts=monitor["full_bursts"],
    )


def _latency(flows: Sequence[Flow], tasks: Mapping[str, Any]) -> LatencyRecord | None:
    """The probes of all directions, in one histogram. None if none were sent."""
    sent = sum(_generator(flow, tasks)["probes_sent"] for flow in flows)
    if sent == 0:
        return None
    streams = [_stream(flow, tasks) for flow in flows]
    histograms = [stream["latency"] for stream in streams if "latency" in stream]
    overflow = sum(histogram.get("overflow", 0) for histogram in histograms)
    counts = [pair for histogram in histograms for pair in histogram["counts"]]
    return LatencyRecord(
        probes_sent=sent,
        probes_received=sum(stream.get("probes_received", 0) for stream in streams),
        histogram=encode(counts, overflow),
        overflow=overflow,
    )


def _misdirected(tasks: Mapping[str, Any], expected: set[tuple[str, int]]) -> int:
    return sum(
        stream["forwarded_packets"]
        for name, task in tasks.items()
        if "monitor" in task
        for stream in task["monitor"]["streams"]
        if (name.removeprefix("mon-"), stream["stream"]) not in expected
    )
