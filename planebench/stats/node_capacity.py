# SPDX-License-Identifier: BSD-3-Clause
"""The number of VNFs that a server carries: by virtual functions and cores (ic16), and by the cost of a frame. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from planebench.model.records import Point, Trial, VerdictKind
from planebench.model.results import Result
from planebench.stats.counting import counts, saturating
from planebench.stats.derived import Derived

Limit = Literal["virtual functions", "logical cores"]


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
    limit: Limit


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
    return tuple(_cost(derived, result, cores_of(result.point.switch)) for result in derived.results if counts(result))


def _cost(derived: Derived, result: Result, cores: int) -> PathCost:
    trials = saturating(derived.trials[result.point]).trials
    cycles = list(_figures(trials, lambda t: (t.switch.busy_cycles or 0) / t.forwarded_packets))
    hz = list(_figures(trials, lambda t: _cycles(t) * 1e9 / t.offered_duration_ns / cores))
    return PathCost(
        result.point,
        (result.throughput_pps or 0.0) / cores,
        result.verdict.kind.is_bound,
        statistics.median(cycles) if cycles else None,
        statistics.median(hz) if hz else None,
    )


def _figures(trials: Iterable[Trial], figure: Callable[[Trial], float]) -> Iterator[float]:
    """Yield a figure of each trial of which the switch counted its cycles."""
    return (
        figure(t) for t in trials if t.switch.busy_cycles and t.switch.idle_cycles is not None and t.forwarded_packets
    )


def _cycles(trial: Trial) -> int:
    return (trial.switch.busy_cycles or 0) + (trial.switch.idle_cycles or 0)


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
