# SPDX-License-Identifier: BSD-3-Clause
"""The number of VNFs that a server carries: by virtual functions and cores (ic16), and by the cost of a frame. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from planebench.analysis.compare import Derived
from planebench.analysis.counting import counts, saturating
from planebench.analysis.noise import Estimate
from planebench.analysis.starts import Distances, at_same_distance, noise_of_sides, throughput_blocks
from planebench.model.records import Point, VerdictKind
from planebench.model.results import Result
from planebench.model.scenario import scenario_named
from planebench.model.server import NEAR
from planebench.model.time_had import stood_in

SLICE_S = 0.004
"""A time slice of Linux's scheduler with several runnable threads; those of CFS on ic16's 32 cores were 12 ms."""

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
        per_socket=min(cores // server.sockets, -(-server.ports // server.sockets) * server.vfs_per_port),
        vnfs=min(functions, cores),
        limit="virtual functions" if functions < cores else "logical cores",
    )


def carried_pps(load_pps: float, vnfs: int, cores: int, pps_per_core: float, ring_size: int, slice_s: float) -> float:
    """Return what VNFs that poll carry of a load that is spread over them, where they may outnumber their cores (ic16).

    On a core the VNFs take turns by time slices. What comes for one while others run is lost, but for what its ring
    holds: of a ring's frames, and those that come in its slice, it forwards as many as its core can.
    """
    if vnfs <= cores:
        return min(load_pps, vnfs * pps_per_core)
    return min(load_pps, cores * min(pps_per_core, ring_size / slice_s + load_pps / vnfs))


@dataclass(frozen=True, slots=True)
class OverProvisioned:
    """The share of frames that more VNFs than cores lost at saturating load, and the share of the model."""

    point: Point
    cores: int
    loss: float
    expected: float


def over_provisioned(derived: Derived, ring_size: int) -> tuple[OverProvisioned, ...]:
    """Return every point with more VNFs side by side than cores, beside the model by R+ of one of these VNFs."""
    found = []
    measured = {result.point: result for result in derived.results if counts(result) and result.throughput_pps}
    for point in (it for it in measured if it.side_by_side):
        trials, one = saturating(derived.trials[point]).trials, measured.get(replace(point, chain_length=1))
        cores = len({thread.cpu for trial in trials for thread in trial.evidence.threads if thread.owner == "vnf"})
        if one is None or not cores or point.chain_length <= cores:
            continue
        offered = sum(way.offered_packets for trial in trials for way in trial.directions)
        forwarded = sum(way.forwarded_packets for trial in trials for way in trial.directions)
        load_pps = offered * 1e9 / sum(trial.offered_duration_ns for trial in trials)
        pps = carried_pps(load_pps, point.chain_length, cores, one.throughput_pps or 0.0, ring_size, SLICE_S)
        found.append(OverProvisioned(point, cores, 1 - forwarded / offered, 1 - pps / load_pps))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class PathCost:
    """What one core of a switch carries on one path of a run, in frames per second, and what a frame costs it.

    ``low`` and ``high`` are the 95 % interval of R+, None where it is not known. ``is_bound``: the tester was the
    limit, so the switch carries at least R+; ``capacity`` is then the 95 % interval of what it is estimated to carry.
    """

    point: Point
    pps_per_core: float
    low: float | None
    high: float | None
    is_bound: bool
    capacity: tuple[float, float] | None
    gbps_per_core: float
    """The same in Gb/s of layer 1, of the frames that came through."""
    cycles_per_frame: float | None

    def vnfs(self, cores: float, pps_per_vnf: float) -> tuple[int, int | None] | None:
        """Return the least and the most VNFs, or chains, that ``cores`` serve if each receives ``pps_per_vnf``.

        The most is None for a lower bound. None on a path without VNFs.
        """
        scenario = scenario_named(self.point.scenario)
        if not (scenario.has_vnfs or scenario.ends_in_vnfs):
            return None
        least, most = (math.floor(cores * (end or self.pps_per_core) / pps_per_vnf) for end in (self.low, self.high))
        return least, None if self.is_bound else most


def path_costs(derived: Derived, cores_of: Callable[[str], int]) -> tuple[PathCost, ...]:
    """Return the cost of every path with a throughput; ``cores_of`` returns the cores of a switch."""
    found = []
    for result in filter(counts, derived.results):
        cores = cores_of(result.point.switch)
        cycles = [
            trial.switch.busy_cycles / trial.forwarded_packets * (1 - stood_in(trial).switch)
            for trial in saturating(derived.trials[result.point]).trials
            if trial.switch.busy_cycles and trial.forwarded_packets
        ]
        low, high = result.throughput_low_pps, result.throughput_high_pps
        capacity = result.capacity_low_pps, result.capacity_high_pps
        cost = PathCost(
            result.point,
            (result.throughput_pps or 0.0) / cores,
            low and low / cores,
            high and high / cores,
            result.verdict.kind.is_bound,
            (capacity[0] / cores, capacity[1] / cores) if capacity[0] and capacity[1] else None,
            (result.throughput_l1_gbps or 0.0) / cores,
            statistics.median(cycles) if cycles else None,
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


# The throughput of a chain of n VNFs, predicted from a chain of one and v2v (netsoft19).
#
# On one core the times that a switch spends on a frame add up: that of a chain of one, and n - 1 times from VNF to VNF.


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted throughput of a chain, all directions, beside the measured one.

    ``estimate`` is that of its logarithm, None where nothing is known of the noise, ``by_distance`` that at each core
    distance; ``is_bound``: the chain of one or v2v was tester-limited, so it is a lower bound.
    """

    point: Point
    pps: float
    estimate: Estimate | None
    by_distance: Distances
    is_bound: bool
    measured_pps: float
    measured_by_distance: Distances

    @property
    def error(self) -> float:
        """Return predicted / measured - 1, at the core distances that all three paths had where they have such."""
        alike = at_same_distance(self.by_distance, self.measured_by_distance)
        return (self.pps / self.measured_pps if alike is None else math.exp(alike.mean)) - 1


def predictions(derived: Derived) -> tuple[Prediction, ...]:
    """Return the predictions of all chains of l2fwd that were measured beside a chain of one and v2v."""
    accepted = {r.point: r for r in derived.results if counts(r) and not r.point.chain and r.point.placement == NEAR}
    blocks = {point: throughput_blocks(saturating(derived.trials[point]).trials) for point in accepted}
    rates = {point: result.throughput_pps for point, result in accepted.items() if result.throughput_pps}
    noise = noise_of_sides(blocks.items())
    distances = {point: noise.by_distance(found) for point, found in blocks.items()}
    lengths = sorted({point.chain_length for point in rates if point.chain_length > 1})
    found = []
    for one in rates:
        scenario, hop = scenario_named(one.scenario), replace(one, scenario="v2v", chain_length=0, hosting="process")
        if one.chain_length != 1 or not scenario.chained or scenario.two_switches or hop not in rates:
            continue
        whole = noise.estimate(blocks[one]), noise.estimate(blocks[hop])
        is_bound = any(accepted[part].verdict.kind.is_bound for part in (one, hop))
        for point in (replace(one, chain_length=length) for length in lengths):
            if point in rates:
                more = point.chain_length - 1
                found.append(
                    Prediction(
                        point,
                        1 / (1 / rates[one] + more / rates[hop]),
                        _one_and_more(*whole, more),
                        {
                            band: it
                            for band, first in distances[one].items()
                            if (it := _one_and_more(first, distances[hop].get(band), more)) is not None
                        },
                        is_bound,
                        rates[point],
                        distances[point],
                    )
                )
    return tuple(found)


def _one_and_more(one: Estimate | None, hop: Estimate | None, more: int) -> Estimate | None:
    """Return the estimate of a chain from those of a chain of one and v2v: of different topologies, so independent."""
    if one is None or hop is None:
        return None
    seconds = math.exp(-one.mean), more * math.exp(-hop.mean)
    error = math.hypot(*(its / sum(seconds) * it.error for its, it in zip(seconds, (one, hop), strict=True)))
    return Estimate(-math.log(sum(seconds)), error, min(one.degrees, hop.degrees), min(one.n, hop.n))
