# SPDX-License-Identifier: BSD-3-Clause
"""Records of what planed's ``stats.get`` reports after a trial. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from planebench.measure.probes import PROBES, HistogramKind, histogram_of
from planebench.measure.sent import traffic_sent
from planebench.measure.updates import ControlTraffic, control_packets, fib_updates
from planebench.model.nic_counters import of_losses
from planebench.model.records import TENTHS, ControlPackets, DirectionCounts, FibUpdates, LatencyRecord, TrafficSent
from planebench.planed.statistics import (
    PORT_DROPS,
    Firewall,
    FirewallRule,
    Generator,
    Monitor,
    PortState,
    Statistics,
    Stream,
    TaskStatistics,
)
from planebench.scenarios.flows import Flow
from planebench.scenarios.queues import QUEUES_MAX, queue_name, queue_stream
from planebench.wiring.tasks import SOURCE

Tasks = Mapping[str, TaskStatistics]
_NO_RULES: Firewall = {"rules": []}
_ENDS = frozenset({"generator", "monitor", SOURCE})
"""Kinds of task at the ends of a path: they drop nothing. All others are VNFs."""


@dataclass(frozen=True, slots=True)
class TesterCounts:
    """Counts of one trial as the tester reports them."""

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
    sent: tuple[TrafficSent, ...] = ()
    """The traffic sent, if a generator had a traffic profile."""
    updates: FibUpdates | None = None
    """The updates sent by the control of a VNF; None without one."""
    control: ControlPackets | None = None
    """The control packets to a VNF; None without any."""
    stall_ns: int | None = None
    """For how long the tester polled and no frame came, of the stream that stood least; None if one was not seen."""


def tester_counts(stats: Statistics, flows: Sequence[Flow], control: ControlTraffic | None = None) -> TesterCounts:
    """Return the counts of a trial from ``stats.get`` of the tester. ``flows`` are the directions that sent, beside
    ``control``."""
    tasks = {task["name"]: task for task in stats["tasks"]}
    workers = stats["workers"]
    monitors = [task["monitor"] for task in stats["tasks"] if "monitor" in task]
    expected = {
        (queue_name(flow.receiver_port, queue), stream)
        for flow in (*flows, *(() if control is None else (control.flow,)))
        for queue in range(QUEUES_MAX)
        for stream in _stream_numbers(flow)
    }
    worst = max(workers, key=lambda worker: worker["gap_sum_ns"], default=None)
    return TesterCounts(
        directions=tuple(_direction(flow, tasks) for flow in flows),
        latency=_latency(flows, tasks),
        duration_ns=max((sent["duration_ns"] for flow in flows for sent in _generators(flow, tasks)), default=0),
        poll_gaps=0 if worst is None else worst["gaps"],
        poll_gap_sum_ns=0 if worst is None else worst["gap_sum_ns"],
        poll_gap_max_ns=0 if worst is None else worst["gap_max_ns"],
        poll_gap_threshold_ns=max((worker["gap_threshold_ns"] for worker in workers), default=0),
        busy_cycles=max((worker["busy_cycles"] for worker in workers), default=0),
        foreign_packets=sum(monitor["foreign_packets"] for monitor in monitors),
        stale_packets=sum(monitor["stale_packets"] for monitor in monitors),
        misdirected_packets=_misdirected(tasks, expected),
        tester_drops=dropped(stats),
        tsc_hz=stats["tsc_hz"],
        sent=tuple(filter(None, (traffic_sent(flow.name, _generators(flow, tasks)) for flow in flows))),
        updates=fib_updates(stats, control),
        control=None if control is None else control_packets(stats, control),
        stall_ns=_stall_ns([_streams(flow, tasks) for flow in flows]),
    )


def _stall_ns(flows: Sequence[Sequence[Stream]]) -> int | None:
    """Return the least stall: while the switch has no CPU, all streams stand."""
    stalls = [stream.get("stall_sum_ns") for streams in flows for stream in streams]
    return min(known) if all(flows) and (known := [it for it in stalls if it is not None]) == stalls else None


def received_total(stats: Statistics) -> int:
    """Return the number of all frames received by the monitors: it grows as long as late frames arrive."""
    return sum(task["monitor"]["received_packets"] for task in stats["tasks"] if "monitor" in task)


def arrived(stats: Statistics, flow: Flow) -> bool:
    """Return whether frames of every queue of the sending port arrived, on whatever queues of the receiving port."""
    tasks = {task["name"]: task for task in stats["tasks"]}
    monitors = _monitors(flow, tasks)
    if len(monitors) == 1:
        return bool(monitors[0]["received_packets"])
    came = {seen["stream"] for seen in _streams(flow, tasks) if seen["forwarded_packets"]}
    return len(came) == len(monitors)


def untried(stats: Statistics, flows: Sequence[Flow]) -> list[str]:
    """Return the names of the flows in which the tester did not try to send at all: that tells nothing of a switch."""
    tasks = {task["name"]: task for task in stats["tasks"]}
    return [flow.name for flow in flows if not _sum(_generators(flow, tasks), "attempted_packets")]


def lost(stats: Statistics, flow: Flow) -> int:
    """Return the number of frames of a flow that were sent and did not arrive."""
    tasks = {task["name"]: task for task in stats["tasks"]}
    return _direction(flow, tasks).lost_packets


def nic_losses(ports: Sequence[PortState]) -> Counter[str]:
    """Return the extended statistics of ports (``ports.get``) that speak of lost frames, as ``n0:rx_crc_errors``."""
    return Counter(
        {f"{port['name']}:{name}": count for port in ports for name, count in of_losses(port.get("xstats", {})).items()}
    )


def vnf_drops(stats: Statistics) -> dict[str, dict[str, int]]:
    """Return what each network function dropped by policy, by reason. Full rings and zeros are left out."""
    found = {
        task["name"]: {reason: count for reason, count in _policy(task).items() if count}
        for task in stats["tasks"]
        if task["kind"] not in _ENDS
    }
    return {name: reasons for name, reasons in found.items() if reasons}


def _generators(flow: Flow, tasks: Tasks) -> list[Generator]:
    return [task["generator"] for task in _each_queue(f"gen-{flow.sender_port}", tasks)]


def _monitors(flow: Flow, tasks: Tasks) -> list[Monitor]:
    return [task["monitor"] for task in _each_queue(f"mon-{flow.receiver_port}", tasks)]


def _each_queue(name: str, tasks: Tasks) -> list[TaskStatistics]:
    others = (queue_name(name, queue) for queue in range(1, QUEUES_MAX))
    return [tasks[name], *(tasks[other] for other in others if other in tasks)]


def _streams(flow: Flow, tasks: Tasks) -> list[Stream]:
    """Return what the receiving monitors counted of the flow; nothing for a monitor that received none of it.

    The switch chooses the queue on which a frame leaves: a stream may arrive on several.
    """
    numbers = _stream_numbers(flow)
    return [seen for monitor in _monitors(flow, tasks) for seen in monitor["streams"] if seen["stream"] in numbers]


def _stream_numbers(flow: Flow) -> frozenset[int]:
    return frozenset(queue_stream(flow.stream, queue) for queue in range(QUEUES_MAX))


def _sum(parts: Iterable[Mapping[str, object]], key: str) -> int:
    return sum(value for part in parts if isinstance(value := part.get(key), int))


def _direction(flow: Flow, tasks: Tasks) -> DirectionCounts:
    sent, came, monitors = _generators(flow, tasks), _streams(flow, tasks), _monitors(flow, tasks)
    offered = _sum(sent, "offered_packets")
    paced = all(generator["intended_packets"] is not None for generator in sent)
    return DirectionCounts(
        name=flow.name,
        intended_packets=_sum(sent, "intended_packets") if paced else offered,
        offered_packets=offered,
        forwarded_packets=_sum(came, "forwarded_packets"),
        duplicate_packets=_sum(came, "duplicate_packets"),
        reordered_packets=_sum(came, "reordered_packets"),
        corrupt_packets=_sum(came, "corrupt_packets"),
        unsent_late_packets=_sum(sent, "unsent_late_packets"),
        unsent_ring_full_packets=_sum(sent, "unsent_ring_full_packets"),
        attempted_packets=_sum(sent, "attempted_packets"),
        refused_packets=_sum(sent, "refused_packets"),
        monitor_bursts=_sum(monitors, "bursts"),
        monitor_full_bursts=_sum(monitors, "full_bursts"),
        offered_bytes=_bytes(sent, "offered_bytes"),
        forwarded_bytes=_bytes(came, "forwarded_bytes"),
        forwarded_by_tenth=_by_tenth(came),
    )


def _by_tenth(streams: Sequence[Stream]) -> tuple[int, ...]:
    """Return the sum over the queues; empty where one of them did not count the whole sending."""
    tenths = [stream.get("forwarded_by_tenth", ()) for stream in streams]
    return tuple(map(sum, zip(*tenths, strict=True))) if all(len(each) == TENTHS for each in tenths) else ()


def _bytes(parts: Sequence[Mapping[str, object]], key: str) -> int | None:
    """Return the sum; None if one of them does not count bytes."""
    return _sum(parts, key) if all(key in part for part in parts) else None


def _latency(flows: Sequence[Flow], tasks: Tasks) -> LatencyRecord | None:
    """Return the probes of all directions, each kind of histogram added up; None if no probe was sent."""
    generators = [generator for flow in flows for generator in _generators(flow, tasks)]
    sent = sum(generator["probes_sent"] for generator in generators)
    if sent == 0:
        return None
    streams = [stream for flow in flows for stream in _streams(flow, tasks)]
    stamped = _sum(streams, "stamped_packets")
    return LatencyRecord(
        probes_sent=sent,
        probes_received=_sum(streams, "probes_received"),
        histogram=histogram_of(streams, "latency", "latency_stall"),
        overflow=sum(stream[kind]["overflow"] for stream in streams for kind in PROBES if kind in stream),
        probes_stamped=sum(generator["probes_stamped"] for generator in generators),
        clock="software",
        ipdv=histogram_of(streams, "ipdv"),
        stamped_packets=stamped,
        burst_rises=histogram_of(streams, "burst_rises") if stamped else "",
        burst_falls=histogram_of(streams, "burst_falls") if stamped else "",
        host=_if_any(streams, "latency_gap"),
        stalled=_if_any(streams, "latency_stall"),
        stalled_ns=max((stream.get("stall_sum_ns", 0) for stream in streams), default=0),
    )


def _if_any(streams: Sequence[Stream], kind: HistogramKind) -> str:
    return histogram_of(streams, kind) if any(kind in stream for stream in streams) else ""


def dropped(stats: Statistics) -> dict[str, int]:
    """Return what ports and network functions of a planed dropped, as in :attr:`TesterCounts.tester_drops`."""
    drops = Counter(dict(_port_drops(stats)))
    for task in stats["tasks"]:
        if task["kind"] not in _ENDS:
            drops.update(dict(_vnf_drops(task)))
    return {key: count for key, count in drops.items() if count}


def _port_drops(stats: Statistics) -> Iterator[tuple[str, int]]:
    for port in stats.get("ports", ()):
        for reason in PORT_DROPS:
            yield f"{port['name']}:{reason}", port[reason]


def _vnf_drops(task: TaskStatistics) -> Iterator[tuple[str, int]]:
    """Yield full rings by port, other reasons by the name of the VNF."""
    for port, reasons in task["drops_by_port"].items():
        for reason, count in reasons.items():
            yield f"{port}:{reason}", count
    for reason, count in _policy(task).items():
        yield f"{task['name']}:{reason}", count


def _policy(task: TaskStatistics) -> dict[str, int]:
    """Return what a network function dropped by policy, by reason; a firewall's drops by each rule: ``rule 2 web``.

    planed reports the first 64 rules; what the others dropped stays with the reason ``rule``.
    """
    reasons = {reason: count for reason, count in task["drops"].items() if reason != "tx_full"}
    rules = {_rule_name(it): it["packets"] for it in task.get("firewall", _NO_RULES)["rules"] if it["action"] == "drop"}
    others = reasons.get("rule", 0) - sum(rules.values())
    return {**reasons, **rules, "rule": others} if rules and others >= 0 else reasons


def _rule_name(rule: FirewallRule) -> str:
    """Return ``rule 2 web``: its place in the list and its name, if it has one. A colon separates the VNF."""
    return f"rule {rule['rule']} {rule.get('name', '').replace(':', '.')}".rstrip()


def _misdirected(tasks: Tasks, expected: set[tuple[str, int]]) -> int:
    return sum(
        stream["forwarded_packets"]
        for name, task in tasks.items()
        if "monitor" in task
        for stream in task["monitor"]["streams"]
        if (name.removeprefix("mon-"), stream["stream"]) not in expected
    )
