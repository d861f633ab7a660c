# SPDX-License-Identifier: BSD-3-Clause
"""What planed's ``stats.get`` says after a trial, as records. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planebench.model.records import DirectionCounts, LatencyRecord
from planebench.scenarios import Flow
from planebench.stats.histogram import encode

Stats = Mapping[str, Any]

_PORT_DROPS = ("rx_missed", "rx_nombuf", "rx_errors")
"""What a port of the tester counts when a frame does not reach its task. What a generator's port does not take is
counted as refused, not as dropped."""
_ENDS = frozenset({"generator", "monitor"})
"""Kinds of task at the ends of a path: they drop nothing. All others are VNFs."""


@dataclass(frozen=True, slots=True)
class TesterCounts:
    """One trial as the tester saw it."""

    directions: tuple[DirectionCounts, ...]
    latency: LatencyRecord | None
    duration_ns: int
    poll_gaps: int
    """Gaps are those of the worker that lost most time: one such worker is enough to disturb a trial."""
    poll_gap_sum_ns: int
    poll_gap_max_ns: int
    poll_gap_threshold_ns: int
    busy_cycles: int
    foreign_packets: int
    stale_packets: int
    misdirected_packets: int
    """Intact frames of this trial that came out at a port where they do not belong."""
    tester_drops: dict[str, int]
    """Frames that VNFs (``v1:tx_full``: the ring of port v1 was full; ``vnf0:runt``) and the tester's own ports
    (``n1:rx_missed``) dropped. Only what is not zero; damaged and misplaced frames are not in it."""
    tsc_hz: int


def tester_counts(stats: Stats, flows: Sequence[Flow]) -> TesterCounts:
    """Counts of a trial from ``stats.get`` of the tester. ``flows`` are the directions that sent."""
    tasks = {task["name"]: task for task in stats["tasks"]}
    workers = stats["workers"]
    monitors = [task["monitor"] for task in stats["tasks"] if "monitor" in task]
    expected = {(flow.receiver_port, flow.stream) for flow in flows}
    worst: Mapping[str, Any] = max(workers, key=lambda worker: worker["gap_sum_ns"], default={})
    return TesterCounts(
        directions=tuple(_direction(flow, tasks) for flow in flows),
        latency=_latency(flows, tasks),
        duration_ns=max((_generator(flow, tasks)["duration_ns"] for flow in flows), default=0),
        poll_gaps=worst.get("gaps", 0),
        poll_gap_sum_ns=worst.get("gap_sum_ns", 0),
        poll_gap_max_ns=worst.get("gap_max_ns", 0),
        poll_gap_threshold_ns=max((worker["gap_threshold_ns"] for worker in workers), default=0),
        busy_cycles=max((worker["busy_cycles"] for worker in workers), default=0),
        foreign_packets=sum(monitor["foreign_packets"] for monitor in monitors),
        stale_packets=sum(monitor["stale_packets"] for monitor in monitors),
        misdirected_packets=_misdirected(tasks, expected),
        tester_drops=_tester_drops(stats),
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
    """The probes of all directions, each kind of histogram added up over the flows. None if no probe was sent."""
    generators = [_generator(flow, tasks) for flow in flows]
    sent = sum(generator["probes_sent"] for generator in generators)
    if sent == 0:
        return None
    streams = [_stream(flow, tasks) for flow in flows]
    return LatencyRecord(
        probes_sent=sent,
        probes_received=sum(stream.get("probes_received", 0) for stream in streams),
        histogram=_histogram(streams, "latency"),
        overflow=sum(stream["latency"]["overflow"] for stream in streams if "latency" in stream),
        probes_stamped=sum(generator["probes_stamped"] for generator in generators),
        clock="software",
        ipdv=_histogram(streams, "ipdv"),
        burst_jitter=_histogram(streams, "burst_jitter"),
    )


def _histogram(streams: Sequence[Mapping[str, Any]], kind: str) -> str:
    """The histograms of one kind as one, encoded; a stream that nothing came of adds nothing."""
    histograms = [stream[kind] for stream in streams if kind in stream]
    counts = [pair for histogram in histograms for pair in histogram["counts"]]
    return encode(counts, sum(histogram["overflow"] for histogram in histograms))


def _tester_drops(stats: Stats) -> dict[str, int]:
    drops = Counter(dict(_port_drops(stats)))
    for task in stats["tasks"]:
        if task["kind"] not in _ENDS:
            drops.update(dict(_vnf_drops(task)))
    return {key: count for key, count in drops.items() if count}


def _port_drops(stats: Stats) -> Iterator[tuple[str, int]]:
    for port in stats.get("ports", ()):
        for reason in _PORT_DROPS:
            yield f"{port['name']}:{reason}", int(port[reason])


def _vnf_drops(task: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Full rings by port, other reasons by the name of the VNF."""
    for port, reasons in task["drops_by_port"].items():
        for reason, count in reasons.items():
            yield f"{port}:{reason}", int(count)
    for reason, count in task["drops"].items():
        if reason != "tx_full":
            yield f"{task['name']}:{reason}", int(count)


def _misdirected(tasks: Mapping[str, Any], expected: set[tuple[str, int]]) -> int:
    return sum(
        stream["forwarded_packets"]
        for name, task in tasks.items()
        if "monitor" in task
        for stream in task["monitor"]["streams"]
        if (name.removeprefix("mon-"), stream["stream"]) not in expected
    )
