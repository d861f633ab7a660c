# SPDX-License-Identifier: BSD-3-Clause
"""Latency by the clocks of the ports (docs/design/clocks.md): the stamps of sent and received probes, joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from planebench.measure.anatomy import GAP, STALL, StampLog, read_log
from planebench.model.clock import ClockName
from planebench.model.records import LatencyRecord
from planebench.planed.requests import Call
from planebench.planed.statistics import PortState, Statistics
from planebench.scenarios.flows import Flow
from planebench.stats.clock_relation import SAME, Reading, Relation, Stamped, relate, relate_readings
from planebench.stats.histogram import HIGHEST_NS, encode

WITHIN_SHARE, WITHIN_NS = 0.001, 100.0
"""A latency may be above that of the software clock by so much: who sets a clock changes its rate by up to 0.05 %, and
the quartz of a NIC is off by up to 0.01 %."""

Readings = Mapping[str, Reading]
"""A reading of the clock of each port that has one of its own."""


@dataclass(slots=True)
class Joined:
    """The probes of one direction with both stamps, in the order of sending, and why others have no latency."""

    clock_ns: list[float] = field(default_factory=list)
    software_ns: list[float] = field(default_factory=list)
    met: list[int] = field(default_factory=list)
    without: Counter[str] = field(default_factory=Counter)


def common_clock(clocks: Iterable[str]) -> ClockName:
    """Return the clock that all ports have, of ``clocks``, one of each; software where they differ."""
    found = set(clocks)
    if found == {"hardware"}:
        return "hardware"
    return "kernel" if found == {"kernel"} else "software"


def by_clock(
    software: LatencyRecord,
    clock: ClockName,
    call: Call,
    flows: Sequence[Flow],
    stats: Statistics,
    readings: Sequence[Readings] = (),
    cable: Relation | None = None,
) -> LatencyRecord:
    """Return the latency of the trial just sent by the clock of the ports, with that of software beside it.

    ``software``: the latency as planed counted it; it stays the latency where the clock has stamped no probe.
    ``readings``: of the clocks of devices before and after the trial; none where all ports have one clock.
    ``cable``: what is known better, of the clock of the only receiving port to that of the sending one.
    """
    tasks = {task["name"] for task in stats["tasks"]}
    found = [
        join(
            read_log(call, f"gen-{flow.sender_port}", tasks),
            read_log(call, f"mon-{flow.receiver_port}", tasks),
            stats["tsc_hz"],
            cable or _relation(flow, readings, stats["tsc_hz"]),
        )
        for flow in flows
    ]
    times = [probe for it in found for probe in zip(it.met, it.clock_ns, it.software_ns, strict=True)]
    without = dict(sum((joined.without for joined in found), Counter()))
    if not times:
        return replace(software, unstamped=without)
    return replace(
        software,
        clock=clock,
        histogram=_histogram(ns for met, ns, _ in times if met != GAP),
        software=_histogram(ns for met, _, ns in times if met != GAP),
        host=_histogram(gaps) if (gaps := [ns for met, ns, _ in times if met == GAP]) else "",
        stalled=_histogram(stalls) if (stalls := [ns for met, ns, _ in times if met == STALL]) else "",
        ipdv=_histogram(
            abs(later - earlier)
            for joined in found
            for earlier, later in zip(joined.clock_ns, joined.clock_ns[1:], strict=False)
        ),
        overflow=0,
        probes_stamped=len(times),
        unstamped=without,
    )


def relate_over_cable(call: Call, there: Flow, back: Flow, stats: Statistics) -> Relation | None:
    """Return the relation of the clock that receives ``there`` to the one that sends it, from probes sent both ways.

    None if too few were stamped.
    """
    tasks = {task["name"] for task in stats["tasks"]}
    stamped: list[list[Stamped]] = []
    for flow in (there, back):
        sent = read_log(call, f"gen-{flow.sender_port}", tasks).port_ns
        came = read_log(call, f"mon-{flow.receiver_port}", tasks).port_ns
        stamped.append([(at_ns, came[probe]) for probe, at_ns in sent.items() if probe in came])
    return relate(*stamped)


def clock_readings(ports: Sequence[PortState]) -> Readings:
    """Return what the clocks of devices read, by port; empty without such clocks."""
    found = {port["name"]: port.get("clock_reading") for port in ports}
    return {name: Reading(*reading) for name, reading in found.items() if reading}


def _relation(flow: Flow, readings: Sequence[Readings], tsc_hz: int) -> Relation:
    """Return the relation of the clock of the receiving port to that of the sending one."""
    ends = flow.sender_port, flow.receiver_port
    if ends[0] == ends[1] or not readings or any(end not in each for end in ends for each in readings):
        return SAME
    a, b = ((readings[0][end], readings[-1][end]) for end in ends)
    return relate_readings(a, b, tsc_hz)


def join(sent: StampLog, came: StampLog, tsc_hz: int, relation: Relation = SAME) -> Joined:
    """Join the stamps of one direction by stream and sequence number. Pure.

    Both stamps of a port lie between those of software, so a latency below zero or above the one that software
    has of the same probe is made of a stamp of another frame: it is not used.
    """
    joined = Joined()
    for probe, (out_tsc, _) in sent.times.items():
        if probe in sent.twice or probe in came.twice:
            joined.without["seen twice"] += 1
        elif probe not in came.times:
            joined.without["the log was full" if came.lost else "did not arrive"] += 1
        elif probe not in sent.port_ns:
            joined.without["not stamped when sent"] += 1
        elif probe not in came.port_ns:
            joined.without["not stamped when received"] += 1
        else:
            software_ns = (came.times[probe][1] - out_tsc) * 1e9 / tsc_hz
            clock_ns = relation.elapsed_ns(sent.port_ns[probe], came.port_ns[probe])
            error_ns = 2 * relation.error_at(sent.port_ns[probe])
            margin_ns = WITHIN_SHARE * software_ns + WITHIN_NS + error_ns
            if -error_ns <= clock_ns <= software_ns + margin_ns:
                joined.clock_ns.append(max(clock_ns, 0.0))
                joined.software_ns.append(software_ns)
                joined.met.append(came.met.get(probe, 0))
            else:
                joined.without["stamp of another frame"] += 1
    joined.without["the log was full"] += sent.lost
    joined.without = +joined.without
    return joined


def _histogram(times_ns: Iterable[float]) -> str:
    counts = Counter(min(max(1, round(ns)), HIGHEST_NS) for ns in times_ns)
    return encode(sorted(counts.items()))
