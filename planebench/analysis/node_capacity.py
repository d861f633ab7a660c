# SPDX-License-Identifier: BSD-3-Clause
"""The number of VNFs that a server carries: by virtual functions and cores (ic16), and by the cost of a frame. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from planebench.analysis.answers import Answer, Bounds, effect_of
from planebench.analysis.compare import Derived
from planebench.analysis.counting import counts, saturating
from planebench.analysis.noise import Estimate
from planebench.analysis.starts import by_start, noise_of_sides, throughput_blocks
from planebench.model.records import Point, VerdictKind
from planebench.model.results import Result
from planebench.model.scenario import scenario_named
from planebench.model.server import NEAR

CapacityLimit = Literal["virtual functions", "logical cores"]


@dataclass(frozen=True, slots=True)
class Server:
    """NIC ports, virtual functions of each, logical cores and sockets; ``reserved`` cores have other work."""

    ports: int
    vfs_per_port: int
    lcores: int
    sockets: int = 1
    reserved: int = 0

    @property
    def vnf_cores(self) -> int:
        """Return the logical cores that are left for VNFs."""
        return self.lcores - self.reserved


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """The VNFs of a server, each with a virtual function and a logical core of its own, and what limits them."""

    per_port: int
    per_socket: int
    vnfs: int
    limit: CapacityLimit


def node_capacity(server: Server) -> NodeCapacity:
    """Return the capacity by ic16's model: min(c / (d e), b) for a port, min(a b, c) in all.

    a ports with b virtual functions each, c logical cores on d sockets, e ports for each socket: c / (d e) is c / a.
    """
    functions, cores = server.ports * server.vfs_per_port, server.vnf_cores
    return NodeCapacity(
        per_port=min(cores // server.ports, server.vfs_per_port),
        per_socket=min(cores // server.sockets, functions),
        vnfs=min(functions, cores),
        limit="virtual functions" if functions < cores else "logical cores",
    )


@dataclass(frozen=True, slots=True)
class PathCost:
    """The cost of a frame on one path of a run: R+ of one core, and cycles where the switch counts them.

    ``is_bound``: R+ is a lower bound.
    """

    point: Point
    pps_per_core: float
    is_bound: bool
    cycles_per_frame: float | None
    hz: float | None

    def vnfs(self, cores: float, pps_per_vnf: float) -> int:
        """Return for how many VNFs that receive ``pps_per_vnf`` frames per second each ``cores`` cores do the work.

        N = cores f / (cycles a frame x frames per second), at full load f / cycles is R+ of a core.
        """
        full = self.pps_per_core if not self.cycles_per_frame or not self.hz else self.hz / self.cycles_per_frame
        return math.floor(cores * full / pps_per_vnf)


def path_costs(derived: Derived, cores_of: Callable[[str], int]) -> tuple[PathCost, ...]:
    """Return the cost of every path with an accepted throughput; ``cores_of`` returns the cores of a switch."""
    found = []
    for result in filter(counts, derived.results):
        cores = cores_of(result.point.switch)
        cycles, hz = [], []
        for trial in saturating(derived.trials[result.point]).trials:
            busy, idle = trial.switch.busy_cycles, trial.switch.idle_cycles
            if busy and idle is not None and trial.forwarded_packets:
                cycles.append(busy / trial.forwarded_packets)
                hz.append((busy + idle) * 1e9 / trial.offered_duration_ns / cores)
        cost = PathCost(
            result.point,
            (result.throughput_pps or 0.0) / cores,
            result.verdict.kind.is_bound,
            statistics.median(cycles) if cycles else None,
            statistics.median(hz) if hz else None,
        )
        found.append(cost)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Carried:
    """The most VNFs side by side that carried a load for each of them: latency was accepted at it."""

    switch: str
    chain: str
    frame_size_bytes: int
    load: str
    vnfs: int


def carried(results: Iterable[Result]) -> tuple[Carried, ...]:
    """Return for each switch, function, frame size and load per VNF the most VNFs that a run carried without loss."""
    most: dict[tuple[str, str, int, str], int] = {}
    for result in results:
        point = result.point
        for summary in result.latency if point.side_by_side else ():
            if summary.load.endswith("per VNF") and summary.verdict.kind is VerdictKind.VALID:
                key = point.switch, point.chain or "l2fwd", point.frame_size_bytes, summary.load
                most[key] = max(most.get(key, 0), point.chain_length)
    return tuple(Carried(*key, vnfs) for key, vnfs in most.items())


# The throughput of a chain of n VNFs, predicted from single hops, and from chains of other lengths (netsoft19).
#
# On one core the times that a switch spends on a frame add up: into the first VNF, n - 1 times from VNF to VNF, and out
# of the last. ``hops`` takes them from p2v, v2v and reversed p2v, ``first`` from a chain of one and v2v; nothing is
# fitted. ``lengths`` puts a line through the times of all other lengths that were measured (leave one out). Pure.
# docs/capacity.md.

Way = Literal["hops", "first", "lengths"]
OTHERS_MIN = 2
"""Other lengths that a line needs."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted throughput of a chain, all directions, beside the measured one.

    ``estimate`` is that of its logarithm, None where nothing is known of the noise; ``is_bound``: a hop was
    tester-limited, so it is a lower bound. ``against``: the measured throughput over it.
    """

    point: Point
    way: Way
    pps: float
    estimate: Estimate | None
    is_bound: bool
    measured_pps: float
    against: Answer

    @property
    def error(self) -> float:
        """Return predicted / measured - 1."""
        return self.pps / self.measured_pps - 1


@dataclass(frozen=True, slots=True)
class _Time:
    """Seconds a frame, with the estimate of the logarithm of the rate."""

    seconds: float
    estimate: Estimate | None
    is_bound: bool


Times = Mapping[Point, _Time]


def predictions(derived: Derived) -> tuple[Prediction, ...]:
    """Return the predictions of all chains of l2fwd that were measured."""
    accepted = [r for r in derived.results if counts(r) and not r.point.chain and r.point.placement == NEAR]
    blocks = {r.point: throughput_blocks(saturating(derived.trials[r.point]).trials) for r in accepted}
    noise = noise_of_sides(blocks.items())
    times = {
        r.point: _Time(1 / r.throughput_pps, noise.estimate(by_start(blocks[r.point])), r.verdict.kind.is_bound)
        for r in accepted
        if r.throughput_pps
    }
    families: dict[Point, list[int]] = {}  # the lengths of the chains behind one switch that are alike but for these
    for point in times:
        scenario = scenario_named(point.scenario)
        if scenario.chained and not scenario.two_switches:
            families.setdefault(replace(point, chain_length=1), []).append(point.chain_length)
    found = []
    for family, lengths in families.items():
        for length in sorted(lengths):
            point = replace(family, chain_length=length)
            both = point.direction == "bidirectional"
            # Both directions of p2v together have as many hops into a VNF as out of it.
            into = replace(point, scenario="p2v", chain_length=0, hosting="process")
            ends = [(2, into)] if both else [(1, into), (1, replace(into, direction="reversed"))]
            # A chain of one and the hops after it; a chain of one itself is no prediction.
            first = None
            if length > 1:
                first = _sum([(1, replace(point, chain_length=1)), (length - 1, replace(into, scenario="v2v"))], times)
            ways: tuple[tuple[Way, _Time | None], ...] = (
                ("hops", _sum([*ends, (length - 1, replace(into, scenario="v2v"))], times)),
                ("first", first),
                ("lengths", _by_lengths(point, lengths, times)),
            )
            measured = times[point]
            for way, it in ways:
                if it is not None:
                    one, other = measured.estimate, it.estimate
                    estimate = None if one is None or other is None else one.minus(other)
                    limits = Bounds(it.is_bound, measured.is_bound)
                    against = effect_of(estimate, it.seconds / measured.seconds, bounds=limits)
                    rates = 1 / it.seconds, it.estimate, it.is_bound, 1 / measured.seconds
                    found.append(Prediction(point, way, *rates, against))
    return tuple(found)


def _sum(points: Iterable[tuple[int, Point]], times: Times) -> _Time | None:
    """Return the time of some points together, each so many times; None if one was not measured.

    Points of one topology share their starts, so their errors add up; those of different ones are independent.
    """
    wanted = [(count, point) for count, point in points if count]
    parts = [(count, point.topology, times[point]) for count, point in wanted if point in times]
    if len(parts) < len(wanted):
        return None
    total = sum(count * part.seconds for count, _, part in parts)
    errors: dict[Hashable, float] = {}
    known = [part.estimate for _, _, part in parts if part.estimate is not None]
    for count, topology, part in parts:
        if part.estimate is not None:
            errors[topology] = errors.get(topology, 0.0) + count * part.seconds / total * part.estimate.error
    estimate = None
    if len(known) == len(parts):
        degrees, n = min(it.degrees for it in known), min(it.n for it in known)
        estimate = Estimate(-math.log(total), math.hypot(*errors.values()), degrees, n)
    return _Time(total, estimate, any(part.is_bound for _, _, part in parts))


def _by_lengths(chain: Point, lengths: Iterable[int], times: Times) -> _Time | None:
    """Return the time on a line through those of all other lengths; None with fewer than two of them.

    Weighted least squares; where the other lengths are farther from the line than their noise, its error is as much
    larger.
    """
    others = [(n, times[replace(chain, chain_length=n)]) for n in sorted(lengths) if n != chain.chain_length]
    usable = [(n, it) for n, it in others if not it.is_bound and it.estimate]
    if len(usable) < OTHERS_MIN:
        return None
    rows = np.array([[1.0, n] for n, _ in usable])
    seconds = np.array([it.seconds for _, it in usable])
    errors = np.array([it.seconds * it.estimate.error for _, it in usable if it.estimate])
    covariance = np.linalg.inv(rows.T @ (rows / errors[:, None] ** 2))
    line = covariance @ (rows.T @ (seconds / errors**2))
    spare = len(usable) - len(line)
    excess = float(np.sum(((seconds - rows @ line) / errors) ** 2)) / spare if spare else 1.0
    at = np.array([1.0, chain.chain_length])
    total = float(at @ line)
    if total <= 0:
        return None
    error = math.sqrt(float(at @ covariance @ at) * max(excess, 1.0)) / total
    estimates = [it.estimate for _, it in usable if it.estimate]
    degrees, n = min(it.degrees for it in estimates), min(it.n for it in estimates)
    return _Time(total, Estimate(-math.log(total), error, degrees, n), False)
