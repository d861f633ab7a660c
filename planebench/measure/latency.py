# SPDX-License-Identifier: BSD-3-Clause
"""Latencies from stamps: the anatomy of a path (ic16 Fig. 8), clocks of ports, and probes that met a stall."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from planebench.analysis.histogram import (
    HIGHEST_NS,
    SAME,
    ClockReading,
    Relation,
    decode,
    encode,
    encode_counts,
    merge,
    percentile_ns,
    relate_readings,
)
from planebench.model.dimensions import ClockName
from planebench.model.records import Anatomy, AnatomyPart, Evidence, LatencyRecord, PartKind
from planebench.model.scenarios import QUEUES_MAX, Flow, queue_name, queue_stream
from planebench.model.time_had import stood
from planebench.planed.client import Call, get_stamps, get_statistics
from planebench.planed.statistics import Histogram, PortState, Statistics

# Probes by what they met: the tester's gaps are the host's, and a stall is the host's or the switch's. Pure.

HOSTS_SHARE = 0.5
"""Stalls are the host's if the kernel knows of waits for at least this share of their time."""


def histogram_of(histograms: Iterable[Histogram | None]) -> str:
    """Return histograms as one, encoded. A stream that has none adds nothing."""
    found = [histogram for histogram in histograms if histogram is not None]
    counts = [pair for histogram in found for pair in histogram.counts]
    return encode(counts, sum(histogram.overflow for histogram in found))


def charged(
    latency: LatencyRecord,
    evidence: Evidence,
    duration_ns: int,
    *,
    roaming: bool = False,
    floor_ns: float | None = None,
) -> LatencyRecord:
    """Return the latency with the probes that met a stall in ``host`` if the stalls are the host's.

    The rule: while a thread of the switch, or of a VNF in a process of its own, waits for a CPU, no frame comes. So
    stalls are the host's if these waits, as `stood` accounts them, make up half of their time or more; else they are
    the switch's own, as any stall that the kernel cannot explain: a stop, a lock, a flush. They are judged together:
    which of them a wait fell in is not known. Stalls are of the time that the tester polled, so of the waits that share
    counts.

    Where the host would have every probe, nothing is left to tell apart, and all stay in ``histogram``.
    """
    histogram, host = decode(latency.histogram), merge(filter(None, [latency.host]))
    host_took = stood(evidence, duration_ns, roaming=roaming)
    kept_ns = host_took.waited * (1 - host_took.tester) * duration_ns
    if latency.stalled and kept_ns >= HOSTS_SHARE * latency.stalled_ns:
        stalled = decode(latency.stalled)
        histogram, host = histogram - stalled, host + stalled
    if not histogram.any():
        histogram, host = host, histogram
    hosts = encode_counts(host) if host.any() else ""
    return replace(latency, histogram=encode_counts(histogram), host=hosts, floor_ns=floor_ns)


PAGE = 16384
TOLERANCE = 0.01
"""The parts may differ from the latency that the monitor reports by this share."""

GAP, STALL = 1, 2
"""What the stamps of a monitor say that a probe met."""

ProbeKey = tuple[int, int]
"""Stream and sequence number."""
Clock = Literal["tester", "own", "none"]
"""The clock of a place: that of the tester, its own, or unknown."""
SIDE_BY_SIDE = "VNFs"
"""The place of VNFs side by side: each probe passes one of them."""


@dataclass(frozen=True, slots=True)
class StampedVnf:
    """A VNF of a path, and where its stamps are read."""

    name: str
    call: Call | None = None
    """planed in it; None where it is a task of the tester."""
    clock: Clock = "tester"
    """``none``: a VNF of the user's own."""


@dataclass(slots=True)
class StampLog:
    """The stamps of one place of the path, of all its queues: probe -> (in, out) in TSC ticks."""

    name: str
    times: dict[ProbeKey, tuple[int, int]] = field(default_factory=dict)
    twice: set[ProbeKey] = field(default_factory=set)
    lost: int = 0
    """Stamps for which the log had no room."""
    hosted: bool = False
    clock: Clock = "tester"
    tsc_hz: int = 0
    """Frequency of the place's own clock; 0 with the tester's, which each process measures by itself."""

    port_ns: dict[ProbeKey, int] = field(default_factory=dict)
    """The stamp by the clock of the place's port, of the probes that it stamped."""
    met: dict[ProbeKey, int] = field(default_factory=dict)
    """Of the probes that met a gap (GAP) or a stall (STALL) on their way to a monitor."""
    waits: dict[ProbeKey, int] = field(default_factory=dict)
    """Ticks from the last poll that found nothing to the poll that found the probe: it waited no longer there."""

    def add(self, stamps: Sequence[Sequence[int]]) -> None:
        """Add entries of ``stamps.get``. An older planed in a guest has no stamps of ports and of empty polls."""
        for stream, sequence, in_tsc, out_tsc, *more in stamps:
            probe, (port_ns, empty_tsc, met, *_) = (stream, sequence), (*more, 0, 0, 0)
            if self.times.setdefault(probe, (in_tsc, out_tsc)) != (in_tsc, out_tsc):
                self.twice.add(probe)
            if port_ns:
                self.port_ns[probe] = port_ns
            if met:
                self.met[probe] = met
            if empty_tsc:
                self.waits[probe] = in_tsc - empty_tsc

    def add_log(self, other: StampLog) -> None:
        """Add the stamps of a place beside this one. Clocks of their own differ in rate: times become this one's."""
        scale = (self.tsc_hz, other.tsc_hz) if other.tsc_hz else (1, 1)
        for probe, times in other.times.items():
            into, out = (tsc * scale[0] // scale[1] for tsc in times)
            empty = into - other.waits[probe] * scale[0] // scale[1] if probe in other.waits else 0
            self.add([(*probe, into, out, other.port_ns.get(probe, 0), empty)])
        self.twice |= other.twice
        self.lost += other.lost


def read_anatomy(
    call: Call, flows: Sequence[Flow], vnfs: Sequence[StampedVnf], stats: Statistics, *, side_by_side: bool = False
) -> tuple[Anatomy, ...]:
    """Return the anatomy of every direction of the trial just ended.

    ``vnfs`` is in path order of the first direction; ``side_by_side``: each probe passes one of them.
    """
    tasks = {task.name for task in stats.tasks}
    inner = []
    for vnf in vnfs:
        if vnf.clock == "none":
            log = StampLog(vnf.name, hosted=True, clock="none")
        elif vnf.call is None:
            log = read_log(call, vnf.name, tasks)
        else:
            own = get_statistics(vnf.call)
            log = read_log(vnf.call, vnf.name, {task.name for task in own.tasks})
            log.hosted, log.clock = True, vnf.clock
            log.tsc_hz = own.tsc_hz if vnf.clock == "own" else 0
        inner.append(log)
    if side_by_side and inner:  # all have the same kind of clock
        first = inner[0]
        place = StampLog(SIDE_BY_SIDE, hosted=first.hosted, clock=first.clock, tsc_hz=first.tsc_hz)
        for log in inner:
            place.add_log(log)
        inner = [place]
    found = []
    for flow in flows:
        way = inner if flow.stream == 0 else inner[::-1]
        sent, came = (read_log(call, name, tasks) for name in (f"gen-{flow.sender_port}", f"mon-{flow.receiver_port}"))
        found.append(split(flow, [sent, *way, came], stats.tsc_hz, reported_mean_ns(flow, stats)))
    return tuple(found)


def read_log(call: Call, name: str, tasks: set[str]) -> StampLog:
    """Return the stamps of a task, on every queue it is on."""
    log = StampLog(name)
    for queue in range(QUEUES_MAX):
        task = queue_name(name, queue)
        start: int | None = 0 if task in tasks else None
        lost = 0
        while start is not None:
            page = get_stamps(call, task, start, PAGE)
            log.add(page.stamps)
            start, lost = page.next, page.lost
        log.lost += lost
    return log


def reported_mean_ns(flow: Flow, stats: Statistics) -> float | None:
    """Return mean latency of a direction by the histograms of its monitors; None if no probe came back."""
    streams = {queue_stream(flow.stream, queue) for queue in range(QUEUES_MAX)}
    receiver = f"mon-{flow.receiver_port}"
    monitors = [it.monitor for it in stats.tasks if it.name.startswith(receiver) and it.monitor is not None]
    found = [
        histogram
        for monitor in monitors
        for stream in monitor.streams
        for histogram in stream.probes
        if stream.stream in streams
    ]
    pairs = [pair for histogram in found for pair in histogram.counts]
    pairs += [(HIGHEST_NS, histogram.overflow) for histogram in found]
    total = sum(count for _, count in pairs)
    return sum(value * count for value, count in pairs) / total if total else None


def split(flow: Flow, path: Sequence[StampLog], tsc_hz: int, reported_ns: float | None) -> Anatomy:
    """Join the stamps of one direction and split the latency of each probe into parts. Pure."""
    streams = {queue_stream(flow.stream, queue) for queue in range(QUEUES_MAX)}
    missing: Counter[str] = Counter()
    joined: list[ProbeKey] = []
    for probe in (probe for probe in path[0].times if probe[0] in streams):
        why = _not_joined(probe, path)
        if why:
            missing[why] += 1
        else:
            joined.append(probe)
    missing["the generator's log was full"] += path[0].lost
    parts = tuple(_parts(path, joined, tsc_hz)) if joined else ()
    made = Anatomy(flow.name, len(joined), {why: n for why, n in missing.items() if n}, parts, reported_ns)
    if not joined or reported_ns is None:
        return replace(made, problem="no probe has a stamp at every task of its path")
    if abs(made.sum_ns - reported_ns) <= TOLERANCE * reported_ns:
        return made
    problem = (
        f"the parts of {len(joined)} probes add up to {made.sum_ns / 1e3:.2f} us on average; the monitor reports "
        f"{reported_ns / 1e3:.2f} us for all of them"
    )
    return replace(made, problem=problem)


def _not_joined(probe: ProbeKey, path: Sequence[StampLog]) -> str:
    """Return why the stamps of a probe make no complete path; empty if they do."""
    for log in (log for log in path if log.clock != "none"):
        if probe in log.twice:
            return f"seen twice at {log.name}"
        if probe not in log.times:
            return f"the log of {log.name} was full" if log.lost else f"did not reach {log.name}"
        if log.times[probe][1] == 0:
            return f"dropped by {log.name}"
    return ""


def _parts(path: Sequence[StampLog], joined: Sequence[ProbeKey], tsc_hz: int) -> Iterator[AnatomyPart]:
    """Yield the time in each place with the tester's clock and between them: tester, hop, VNF, ..., tester.

    A probe may have waited at a place for its poll: no longer than since the last poll that found nothing there, nor
    than the hop took. A hop has this wait in its mean and not in its lower bound; the place has it in its upper bound.
    """
    here = [number for number, log in enumerate(path) if log.clock == "tester"]
    waited_ns = [0.0] * len(joined)
    ends = {0: "generator", len(path) - 1: "monitor"}
    for place, following in zip(here, [*here[1:], None], strict=True):
        inside_ns = _inside_ns(path[place], joined, tsc_hz)
        most_ns = [inside + waited for inside, waited in zip(inside_ns, waited_ns, strict=True)]
        kind: PartKind = "tester" if place in ends else "vnf"
        yield _part(ends.get(place, path[place].name), kind, inside_ns, inside_ns, most_ns)
        if following is not None:
            parts, waited_ns = _between(path, joined, place, following, tsc_hz)
            yield from parts


def _between(
    path: Sequence[StampLog], joined: Sequence[ProbeKey], place: int, following: int, tsc_hz: int
) -> tuple[list[AnatomyPart], list[float]]:
    """Return the hops from ``place`` to ``following``, less the time inside the VNFs between them; then these VNFs.

    Beside them: how long each probe may have waited for the poll of ``following``.
    """
    between = path[place + 1 : following]
    inner = [log for log in between if log.clock == "own"]
    inside = [_inside_ns(log, joined, log.tsc_hz) for log in inner]
    scale = 1e9 / tsc_hz
    whole = [(path[following].times[it][0] - path[place].times[it][1]) * scale for it in joined]
    hops = [ns - sum(times) for ns, *times in zip(whole, *inside, strict=True)]
    waits = [_waits_ns(log, joined, hops, log.tsc_hz) for log in inner]
    last = _waits_ns(path[following], joined, hops, tsc_hz)
    silent = [log.name for log in between if log.clock == "none"]
    # If a VNF records no times, its own time is part of the hops, so the lower bound of the switch's time is 0.
    low = [0.0 if silent else ns - min(max(ns, 0.0), sum(wait)) for ns, *wait in zip(hops, last, *waits, strict=True)]
    number = f"hops {place + 1} to {following}" if between else f"hop {following}"
    kind: PartKind = "hosting" if any(log.hosted for log in path[place : following + 1]) else "switch"
    parts = [_part(", ".join([number, *silent]), kind, hops, low, hops)]
    for log, times, wait in zip(inner, inside, waits, strict=True):
        parts.append(_part(log.name, "vnf", times, times, [ns + more for ns, more in zip(times, wait, strict=True)]))
    return parts, last


def _inside_ns(log: StampLog, joined: Sequence[ProbeKey], tsc_hz: int) -> list[float]:
    """Return the time that each probe spent at a place, by the clock of that place."""
    scale = 1e9 / tsc_hz
    return [(out - into) * scale for into, out in (log.times[probe] for probe in joined)]


def _waits_ns(log: StampLog, joined: Sequence[ProbeKey], hops_ns: Sequence[float], tsc_hz: int) -> list[float]:
    """Return how long each probe may have waited at a place for its poll: at most as long as its hops took."""
    scale = 1e9 / tsc_hz
    longest = (log.waits.get(probe) for probe in joined)
    return [
        max(0.0, hop if ticks is None else min(hop, ticks * scale)) for hop, ticks in zip(hops_ns, longest, strict=True)
    ]


def _part(
    name: str, kind: PartKind, times_ns: Sequence[float], low_ns: Sequence[float], high_ns: Sequence[float]
) -> AnatomyPart:
    text = _histogram(times_ns)
    histogram = decode(text)
    mean, low, high = (sum(times) / len(times) for times in (times_ns, low_ns, high_ns))
    p50, p99 = (percentile_ns(histogram, share) for share in (0.50, 0.99))
    return AnatomyPart(name, kind, mean, p50, p99, text, low, high)


# Latency by the clocks of the ports (docs/design/latency.md): the stamps of sent and received probes, joined.

WITHIN_SHARE, WITHIN_NS = 0.001, 100.0
"""A latency may be above that of the software clock by so much: who sets a clock changes its rate by up to 0.05 %, and
the quartz of a NIC is off by up to 0.01 %."""

Readings = Mapping[str, ClockReading]
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
) -> LatencyRecord:
    """Return the latency of the trial just sent by the clock of the ports, with that of software beside it.

    ``software``: the latency as planed counted it; it stays the latency where the clock has stamped no probe.
    ``readings``: of the clocks of devices before and after the trial; none where all ports have one clock.
    """
    tasks, relations = {task.name for task in stats.tasks}, []
    for flow in flows:  # of the clock of the receiving port to that of the sending one
        a, b = flow.sender_port, flow.receiver_port
        known = a != b and readings and all(end in each for end in (a, b) for each in readings)
        relation = SAME
        if known:
            first, last = ((readings[0][end], readings[-1][end]) for end in (a, b))
            relation = relate_readings(first, last, stats.tsc_hz)
        relations.append(relation)
    found = [
        join(
            read_log(call, f"gen-{flow.sender_port}", tasks),
            read_log(call, f"mon-{flow.receiver_port}", tasks),
            stats.tsc_hz,
            relation,
        )
        for flow, relation in zip(flows, relations, strict=True)
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


def clock_readings(ports: Sequence[PortState]) -> Readings:
    """Return what the clocks of devices read, by port; empty without such clocks."""
    return {port.name: ClockReading(*port.clock_reading) for port in ports if port.clock_reading is not None}


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
    # Below 1 ns: two cores read the clock within a few ticks of each other.
    counts = Counter(min(max(1, round(ns)), HIGHEST_NS) for ns in times_ns)
    return encode(sorted(counts.items()))
