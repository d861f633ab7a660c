# SPDX-License-Identifier: BSD-3-Clause
"""Latency anatomy (ic16 Fig. 8): stamps of probes along a path, read and joined (docs/design/anatomy.md).

Generator, VNFs and monitor read one clock, so the parts of a probe add up to its latency exactly: generator (its stamp
to hand-over), hop (one task let go of it to the next one got it), VNF (got to handed over), monitor (got to timed).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planebench.model.anatomy import Anatomy, AnatomyPart, PartKind
from planebench.scenarios import Flow
from planebench.scenarios.queues import QUEUES_MAX, queue_name, queue_stream
from planebench.stats.histogram import HIGHEST_NS, decode, encode, percentile_ns

PAGE = 16384
TOLERANCE = 0.01
"""The parts may differ from the latency that the monitor reports by this share."""

Call = Callable[..., dict[str, Any]]
Probe = tuple[int, int]
"""Stream and sequence number."""


@dataclass(slots=True)
class StampLog:
    """The stamps of one place of the path, of all its queues: probe -> (in, out) in TSC ticks."""

    name: str
    times: dict[Probe, tuple[int, int]] = field(default_factory=dict)
    twice: set[Probe] = field(default_factory=set)
    lost: int = 0
    """Stamps for which the log had no room."""

    def add(self, stamps: Sequence[Sequence[int]]) -> None:
        """Entries of ``stamps.get``."""
        for stream, sequence, in_tsc, out_tsc in stamps:
            if self.times.setdefault((stream, sequence), (in_tsc, out_tsc)) != (in_tsc, out_tsc):
                self.twice.add((stream, sequence))


def read_anatomy(
    call: Call, flows: Sequence[Flow], vnfs: Sequence[str], stats: Mapping[str, Any]
) -> tuple[Anatomy, ...]:
    """The anatomy of every direction of the trial just ended. ``vnfs``: names in path order of the first direction."""
    tasks = {task["name"] for task in stats["tasks"]}
    inner = [read_log(call, name, tasks) for name in vnfs]
    found = []
    for flow in flows:
        way = inner if flow.stream == 0 else inner[::-1]
        ends = [read_log(call, f"{end}-{port}", tasks) for end, port in _ends(flow)]
        path = [ends[0], *way, ends[1]]
        found.append(split(flow, path, int(stats["tsc_hz"]), reported_mean_ns(flow, stats)))
    return tuple(found)


def read_log(call: Call, name: str, tasks: set[str]) -> StampLog:
    """The stamps of a task, on every queue it is on."""
    log = StampLog(name)
    for queue in range(QUEUES_MAX):
        task = queue_name(name, queue)
        start: int | None = 0 if task in tasks else None
        lost = 0
        while start is not None:
            page = call("stamps.get", {"task": task, "from": start, "limit": PAGE})
            log.add(page["stamps"])
            start, lost = page["next"], int(page["lost"])
        log.lost += lost
    return log


def reported_mean_ns(flow: Flow, stats: Mapping[str, Any]) -> float | None:
    """Mean latency of a direction by the histograms of its monitors; None if no probe came back."""
    streams = {queue_stream(flow.stream, queue) for queue in range(QUEUES_MAX)}
    monitors = [t["monitor"] for t in stats["tasks"] if t["name"].startswith(f"mon-{flow.receiver_port}")]
    seen = [s for monitor in monitors for s in monitor["streams"] if s["stream"] in streams]
    pairs = [pair for stream in seen for pair in stream["latency"]["counts"]]
    pairs += [[HIGHEST_NS, stream["latency"]["overflow"]] for stream in seen]
    total = sum(count for _, count in pairs)
    return sum(value * count for value, count in pairs) / total if total else None


def split(flow: Flow, path: Sequence[StampLog], tsc_hz: int, reported_ns: float | None) -> Anatomy:
    """Join the stamps of one direction and take each probe's latency apart. Pure."""
    streams = {queue_stream(flow.stream, queue) for queue in range(QUEUES_MAX)}
    missing: Counter[str] = Counter()
    joined: list[list[int]] = []
    for probe in (probe for probe in path[0].times if probe[0] in streams):
        why = _not_joined(probe, path)
        if why:
            missing[why] += 1
        else:
            joined.append([tsc for log in path for tsc in log.times[probe]])
    missing["the generator's log was full"] += path[0].lost
    parts = tuple(_parts(path, joined, tsc_hz)) if joined else ()
    made = Anatomy(flow.name, len(joined), {why: n for why, n in missing.items() if n}, parts, reported_ns)
    return replace(made, problem=_problem(made))


def _ends(flow: Flow) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("gen", flow.sender_port), ("mon", flow.receiver_port)


def _not_joined(probe: Probe, path: Sequence[StampLog]) -> str:
    """Where the way of a probe breaks off, or is not one way; empty if it is whole."""
    for log in path:
        if probe in log.twice:
            return f"seen twice at {log.name}"
        if probe not in log.times:
            return f"the log of {log.name} was full" if log.lost else f"did not reach {log.name}"
        if log.times[probe][1] == 0:
            return f"dropped by {log.name}"
    return ""


def _parts(path: Sequence[StampLog], joined: Sequence[Sequence[int]], tsc_hz: int) -> Iterator[AnatomyPart]:
    """Successive differences of the stamps of all joined probes: tester, hop, VNF, hop, ..., tester."""
    ns = 1e9 / tsc_hz
    for i, (name, kind) in enumerate(_names([log.name for log in path])):
        ticks = [stamps[i + 1] - stamps[i] for stamps in joined]
        # Below 1 ns: two cores read the clock within a few ticks of each other. The mean has it as it is.
        counts = sorted(Counter(min(max(1, round(t * ns)), HIGHEST_NS) for t in ticks).items())
        text = encode(counts)
        histogram = decode(text)
        mean = sum(ticks) / len(ticks) * ns
        yield AnatomyPart(name, kind, mean, percentile_ns(histogram, 0.50), percentile_ns(histogram, 0.99), text)


def _names(places: Sequence[str]) -> Iterator[tuple[str, PartKind]]:
    """Names of the parts of a path; hops are numbered along it."""
    yield "generator", "tester"
    for number, vnf in enumerate(places[1:-1], start=1):
        yield f"hop {number}", "switch"
        yield vnf, "vnf"
    yield f"hop {len(places) - 1}", "switch"
    yield "monitor", "tester"


def _problem(anatomy: Anatomy) -> str:
    """Why the parts do not stand for the whole; empty if they do."""
    if not anatomy.joined or anatomy.reported_mean_ns is None:
        return "no probe has a stamp at every task of its path"
    whole, parts = anatomy.reported_mean_ns, anatomy.sum_ns
    if abs(parts - whole) <= TOLERANCE * whole:
        return ""
    return (
        f"the parts of {anatomy.joined} probes add up to {parts / 1e3:.2f} us on average, the monitor reports "
        f"{whole / 1e3:.2f} us for all of them"
    )
