# SPDX-License-Identifier: BSD-3-Clause
"""Latency anatomy (ic16 Fig. 8): stamps of probes along a path, read and joined (docs/design/anatomy.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from planebench.model.anatomy import Anatomy, AnatomyPart, PartKind
from planebench.planed.requests import Call, get_stamps, get_statistics, start_traffic
from planebench.planed.statistics import Statistics
from planebench.scenarios.flows import Flow
from planebench.scenarios.queues import QUEUES_MAX, queue_name, queue_stream
from planebench.stats.histogram import HIGHEST_NS, decode, encode, percentile_ns

PAGE = 16384
TOLERANCE = 0.01
"""The parts may differ from the latency that the monitor reports by this share."""

Probe = tuple[int, int]
"""Stream and sequence number."""
Clock = Literal["tester", "own", "none"]
"""The clock of a place: that of the tester, its own, or unknown."""
Stamps = Sequence[tuple[int, int]]
"""The stamps of one probe at every place of its path."""


@dataclass(frozen=True, slots=True)
class StampedVnf:
    """A VNF of a path, and where its stamps are read."""

    name: str
    call: Call | None = None
    """planed in it; None where it is a task of the tester."""
    clock: Clock = "tester"
    """``none``: a VNF of the user's own."""

    @property
    def hosted(self) -> bool:
        """Return whether the VNF is not a task of the tester."""
        return self.call is not None or self.clock == "none"


@dataclass(slots=True)
class StampLog:
    """The stamps of one place of the path, of all its queues: probe -> (in, out) in TSC ticks."""

    name: str
    times: dict[Probe, tuple[int, int]] = field(default_factory=dict)
    twice: set[Probe] = field(default_factory=set)
    lost: int = 0
    """Stamps for which the log had no room."""
    hosted: bool = False
    clock: Clock = "tester"
    tsc_hz: int = 0
    """Frequency of the place's own clock."""

    port_ns: dict[Probe, int] = field(default_factory=dict)
    """The stamp by the clock of the place's port, of the probes that it stamped."""

    def add(self, stamps: Sequence[Sequence[int]]) -> None:
        """Add entries of ``stamps.get``. A planed of before clocks has no stamps of ports."""
        for stream, sequence, in_tsc, out_tsc, *port_ns in stamps:
            if self.times.setdefault((stream, sequence), (in_tsc, out_tsc)) != (in_tsc, out_tsc):
                self.twice.add((stream, sequence))
            if port_ns and port_ns[0]:
                self.port_ns[stream, sequence] = port_ns[0]


def read_anatomy(
    call: Call, flows: Sequence[Flow], vnfs: Sequence[StampedVnf], stats: Statistics
) -> tuple[Anatomy, ...]:
    """Return the anatomy of every direction of the trial just ended.

    ``vnfs`` is in path order of the first direction.
    """
    tasks = _task_names(stats)
    inner = [_vnf_log(vnf, call, tasks) for vnf in vnfs]
    found = []
    for flow in flows:
        way = inner if flow.stream == 0 else inner[::-1]
        ends = [read_log(call, f"{end}-{port}", tasks) for end, port in _ends(flow)]
        path = [ends[0], *way, ends[1]]
        found.append(split(flow, path, int(stats["tsc_hz"]), reported_mean_ns(flow, stats)))
    return tuple(found)


def begin_stamps(vnfs: Sequence[StampedVnf], epoch: int, duration_s: float) -> None:
    """Have the planed of every hosted VNF stamp the probes of the sending that begins next. Clears its counters."""
    for vnf in vnfs:
        if vnf.call is not None:
            start_traffic(vnf.call, epoch, duration_s, stamps=True)


def _vnf_log(vnf: StampedVnf, tester: Call, tasks: set[str]) -> StampLog:
    """Return the stamps of a VNF, wherever it runs."""
    if vnf.clock == "none":
        return StampLog(vnf.name, hosted=True, clock="none")
    if vnf.call is None:
        return read_log(tester, vnf.name, tasks)
    stats = get_statistics(vnf.call)
    log = read_log(vnf.call, vnf.name, _task_names(stats))
    log.hosted, log.clock, log.tsc_hz = True, vnf.clock, stats["tsc_hz"]
    return log


def _task_names(stats: Statistics) -> set[str]:
    return {task["name"] for task in stats["tasks"]}


def read_log(call: Call, name: str, tasks: set[str]) -> StampLog:
    """Return the stamps of a task, on every queue it is on."""
    log = StampLog(name)
    for queue in range(QUEUES_MAX):
        task = queue_name(name, queue)
        start: int | None = 0 if task in tasks else None
        lost = 0
        while start is not None:
            page = get_stamps(call, task, start, PAGE)
            log.add(page["stamps"])
            start, lost = page["next"], page["lost"]
        log.lost += lost
    return log


def reported_mean_ns(flow: Flow, stats: Statistics) -> float | None:
    """Return mean latency of a direction by the histograms of its monitors; None if no probe came back."""
    streams = {queue_stream(flow.stream, queue) for queue in range(QUEUES_MAX)}
    monitors = [t["monitor"] for t in stats["tasks"] if t["name"].startswith(f"mon-{flow.receiver_port}")]
    seen = [s for monitor in monitors for s in monitor["streams"] if s["stream"] in streams]
    pairs = [pair for stream in seen for pair in stream["latency"]["counts"]]
    pairs += [(HIGHEST_NS, stream["latency"]["overflow"]) for stream in seen]
    total = sum(count for _, count in pairs)
    return sum(value * count for value, count in pairs) / total if total else None


def split(flow: Flow, path: Sequence[StampLog], tsc_hz: int, reported_ns: float | None) -> Anatomy:
    """Join the stamps of one direction and split the latency of each probe into parts. Pure."""
    streams = {queue_stream(flow.stream, queue) for queue in range(QUEUES_MAX)}
    missing: Counter[str] = Counter()
    joined: list[Stamps] = []
    for probe in (probe for probe in path[0].times if probe[0] in streams):
        why = _not_joined(probe, path)
        if why:
            missing[why] += 1
        else:
            joined.append([log.times.get(probe, (0, 0)) for log in path])
    missing["the generator's log was full"] += path[0].lost
    parts = tuple(_parts(path, joined, tsc_hz)) if joined else ()
    made = Anatomy(flow.name, len(joined), {why: n for why, n in missing.items() if n}, parts, reported_ns)
    return replace(made, problem=_problem(made))


def _ends(flow: Flow) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("gen", flow.sender_port), ("mon", flow.receiver_port)


def _not_joined(probe: Probe, path: Sequence[StampLog]) -> str:
    """Return why the stamps of a probe make no complete path; empty if they do."""
    for log in (log for log in path if log.clock != "none"):
        if probe in log.twice:
            return f"seen twice at {log.name}"
        if probe not in log.times:
            return f"the log of {log.name} was full" if log.lost else f"did not reach {log.name}"
        if log.times[probe][1] == 0:
            return f"dropped by {log.name}"
    return ""


def _parts(path: Sequence[StampLog], joined: Sequence[Stamps], tsc_hz: int) -> Iterator[AnatomyPart]:
    """Yield the time in each place with the tester's clock and between them: tester, hop, VNF, ..., tester."""
    here = [number for number, log in enumerate(path) if log.clock == "tester"]
    for place, following in zip(here, [*here[1:], None], strict=True):
        yield _part(*_place(path, place), _inside_ns(joined, place, tsc_hz))
        if following is not None:
            yield from _between(path, joined, place, following, tsc_hz)


def _place(path: Sequence[StampLog], place: int) -> tuple[str, PartKind]:
    if place in (0, len(path) - 1):
        return ("monitor" if place else "generator"), "tester"
    return path[place].name, "vnf"


def _between(
    path: Sequence[StampLog], joined: Sequence[Stamps], place: int, following: int, tsc_hz: int
) -> Iterator[AnatomyPart]:
    """Yield the hops from ``place`` to ``following``, less the time inside the VNFs between them; then these VNFs."""
    inner = range(place + 1, following)
    inside = {k: _inside_ns(joined, k, path[k].tsc_hz) for k in inner if path[k].clock == "own"}
    scale = 1e9 / tsc_hz
    whole = [(stamps[following][0] - stamps[place][1]) * scale for stamps in joined]
    hops = [ns - sum(times[probe] for times in inside.values()) for probe, ns in enumerate(whole)]
    number = f"hop {following}" if not inner else f"hops {place + 1} to {following}"
    silent = [path[k].name for k in inner if path[k].clock == "none"]
    kind: PartKind = "hosting" if any(log.hosted for log in path[place : following + 1]) else "switch"
    yield _part(", ".join([number, *silent]), kind, hops)
    for k, times in inside.items():
        yield _part(path[k].name, "vnf", times)


def _inside_ns(joined: Sequence[Stamps], place: int, tsc_hz: int) -> list[float]:
    """Return the time that each probe spent at a place, by the clock of that place."""
    scale = 1e9 / tsc_hz
    return [(stamps[place][1] - stamps[place][0]) * scale for stamps in joined]


def _part(name: str, kind: PartKind, times_ns: Sequence[float]) -> AnatomyPart:
    # Below 1 ns: two cores read the clock within a few ticks of each other. The mean has it as it is.
    counts = sorted(Counter(min(max(1, round(ns)), HIGHEST_NS) for ns in times_ns).items())
    text = encode(counts)
    histogram = decode(text)
    mean = sum(times_ns) / len(times_ns)
    return AnatomyPart(name, kind, mean, percentile_ns(histogram, 0.50), percentile_ns(histogram, 0.99), text)


def _problem(anatomy: Anatomy) -> str:
    """Return why the parts do not add up to the reported latency; empty if they do."""
    if not anatomy.joined or anatomy.reported_mean_ns is None:
        return "no probe has a stamp at every task of its path"
    whole, parts = anatomy.reported_mean_ns, anatomy.sum_ns
    if abs(parts - whole) <= TOLERANCE * whole:
        return ""
    return (
        f"the parts of {anatomy.joined} probes add up to {parts / 1e3:.2f} us on average; the monitor reports "
        f"{whole / 1e3:.2f} us for all of them"
    )
