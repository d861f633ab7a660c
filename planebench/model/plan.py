# SPDX-License-Identifier: BSD-3-Clause
"""The records of a plan, defined once: what their keys are, what each may be, and what it is where nobody says.

A plan file, the options of the command line and the plan of a run are all validated by these annotations
(:mod:`planebench.plan.schema`, :mod:`planebench.store.codec`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import StringConstraints

from planebench.model.dimensions import EXTERNAL, TESTER_PLACES, ClockChoice, HostingName
from planebench.model.scenario import Direction, ScenarioName, scenario_named
from planebench.model.server import NEAR, OWN_CLOCK, CpuClock, Placing
from planebench.model.traffic import PLAIN, TrafficProfile
from planebench.model.wire import WireChoice, WireName, wire_name

TesterChoice = Annotated[str, StringConstraints(pattern=rf"^({'|'.join(TESTER_PLACES)}|({'|'.join(EXTERNAL)}):.+)$")]
"""A place of planed, or ``KIND:WHERE,...``."""

Missing = Literal["skip", "error"]
Stamp = Literal["probes", "all"]
FrameCheck = Literal["full", "sampled"]
RingSize = Literal[64, 128, 256, 512, 1024, 2048, 4096]
OWN_RING: Literal["own"] = "own"
WireRingSize = Literal["own", 64, 128, 256, 512, 1024, 2048, 4096]
"""``own``: what each switch has at a NIC, its default or that of its paper."""
NIC_RING_SIZE: RingSize = 1024
"""At a NIC, as DPDK's examples have it: of a switch that has no other."""
SwitchCores = Literal[1, 2, 3, 4]
TesterCores = Literal[1, 2, 3, 4]
Seconds = Annotated[float, Gt(0), Le(3600)]
Count = Annotated[int, Ge(1), Le(1000)]
Share = Annotated[float, Gt(0), Le(1)]
PartOfOne = Annotated[float, Gt(0), Lt(1)]
Rate = Annotated[int, Ge(1), Le(1_000_000_000)]
RatePerDirection = Annotated[float, Gt(0), Le(1e10)]

BitRate = Annotated[float, Gt(0), Le(1e13)]

R_PLUS = "r_plus"
LOOK_GROWTH = 1.6
"""From one look at the comparisons to the next: each look costs some of the confidence of all."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A switch or point that did not run, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class ThroughputPlan:
    """Saturating trials, whose mean is R+."""

    duration_s: Seconds
    repetitions: Count
    """Passes over all test points: each point has one saturating trial in each."""
    warmup_s: Annotated[float, Ge(0), Le(60)] = 0.0
    """How long the load of every trial, those of searches and of latency too, is sent before it counts."""
    restarts: Annotated[int, Ge(0), Le(999)] | None = None
    """How often every switch is started anew between repetitions: what a start decides (memory, placement) averages.
    None: before each, but for switches and VNFs that take long to start (planebench.plan.passes)."""
    repetitions_max: Count | None = None
    """Where comparisons are open after ``repetitions``, further passes over their points, up to this many in all."""
    max_rate_pps: RatePerDirection | None = None
    """Saturating trials send at this rate in each direction instead of the maximum."""
    line_bps: BitRate | None = None
    """The speed of every wire, also of those without one: saturating trials of paths with a wire (:func:`has_line`)
    send at its line rate by frame size."""
    open_loop: bool | None = None
    """Saturating trials send at ``max_rate_pps`` or, without it, at the line rate, and count frames that find the ring
    full as unsent. False: without ``max_rate_pps`` the generator waits for room in the ring. None: so it does on wires
    without a line rate."""

    def is_open_loop(self, *, has_line_rate: bool) -> bool:
        """Return whether saturating trials without ``max_rate_pps`` are an open loop."""
        if self.open_loop is not None:
            return self.open_loop
        return has_line_rate or self.line_bps is not None

    @property
    def looks(self) -> tuple[int, ...]:
        """Return the numbers of repetitions after which comparisons are looked at: 3, 5, 8; the last is the end."""
        found, end = [self.repetitions], self.repetitions_max or self.repetitions
        while found[-1] < end:
            found.append(min(ceil(found[-1] * LOOK_GROWTH), end))
        return tuple(found)


def has_line(scenario: ScenarioName, profile: TrafficProfile) -> bool:
    """Return whether trials go over a wire whose speed the plan says: not from VNF to VNF, nor in a closed loop."""
    return scenario_named(scenario).wired and not profile.closed_loop


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Searches on every point, after R+. Names of :data:`planebench.analysis.search.METHODS`, without ``r_plus``.

    Where a value is None, that of the method's standard is taken.
    """

    methods: tuple[str, ...] = ()
    duration_s: Seconds | None = None
    """Duration of each search trial."""
    duration_sum_s: Seconds | None = None
    """NDR and PDR: seconds of trials at a load before it is decided (CSIT: 21)."""
    relative_width: PartOfOne | None = None
    """Upper and lower bound may differ by this share of the upper (CSIT: 0.005)."""
    pdr_loss_ratio: PartOfOne = 0.005
    max_r: Annotated[int, Ge(1), Le(100)] = 2
    """BSwLV (ETSI GS NFV-TST 009): a load fails only when this many trials at it lost frames."""
    starts: Count = 1
    """Every search is done in so many starts of the switch, one in each pass: their spread is the error of a rate."""
    burst_repetitions: Count = 3
    """Repetitions of the search for the longest burst, b2b (RFC 2544 asks for 50)."""


@dataclass(frozen=True, slots=True)
class LatencyPlan:
    """Latency trials at shares of R+ or ``of`` (``loads``, empty for none); in v2v at the fixed ``v2v_pps`` instead.

    ``rates_pps`` are fixed loads of each sending end beside these: the same for every point, so that their latencies
    may be set against each other, as of a chain and of its parts.
    ``probe_rate_pps`` probes per second travel inside the background traffic of each sending end. With ``stamp`` all,
    every frame has a time stamp: the jitter of ic16 is of the mean delays of all frames of receive bursts.
    """

    loads: tuple[Share, ...]
    duration_s: Seconds
    repetitions: Count = 1
    probe_rate_pps: Rate = 1000
    v2v_pps: Rate = 1_000_000
    rates_pps: tuple[RatePerDirection, ...] = ()
    total_bps: tuple[BitRate, ...] = ()
    """Bit rates on layer 1 of all sending ends together: the same for every frame size and number of VNFs."""
    per_vnf_bps: tuple[BitRate, ...] = ()
    """Bit rates on layer 1 of each VNF side by side: the load is that times their number."""
    of: str = R_PLUS
    """What the loads are shares of: ``r_plus``, or the load that this search finds, as ``carried`` or ``pdr``."""
    anatomy: bool = False
    """Probes are stamped at every task of their path, so that latency splits into parts."""
    stamp: Stamp = "probes"

    @property
    def wanted(self) -> bool:
        """Return whether any latency is taken."""
        return bool(self.loads or self.fixed)

    @property
    def fixed(self) -> tuple[float, ...]:
        """Return the loads that are no shares."""
        return (*self.rates_pps, *self.total_bps, *self.per_vnf_bps)


SECTIONS: Mapping[str, type[Any]] = {"throughput": ThroughputPlan, "latency": LatencyPlan, "search": SearchPlan}


@dataclass(frozen=True, slots=True)
class Plan:
    """The matrix of a run and how each point of it is measured.

    ``switches`` are adapter names and may repeat: the same switch named twice is measured twice. ``missing_switches``
    says what becomes of one that is not installed. ``chain_lengths``, of l2fwd, and ``chains``, by name with absolute
    paths (planebench.testbed.vnfs), are for loopback only: each of both is a topology. So is each of ``vnf_counts``,
    for parallel only; its VNFs are what the chains of one function say, l2fwd where there is none.
    """

    name: str
    description: str
    switches: Annotated[tuple[Annotated[str, MinLen(1)], ...], MinLen(1)]
    scenarios: tuple[ScenarioName, ...]
    directions: tuple[Direction, ...]
    frame_sizes_bytes: tuple[int, ...]
    chain_lengths: tuple[int, ...]
    throughput: ThroughputPlan
    latency: LatencyPlan
    seed: Annotated[int, Ge(0), Lt(10**18)] = 1
    wire: WireChoice = "virtio"
    hosting: HostingName = "process"
    """The hostings of VNFs whose text in the chain names none."""
    ring_size: RingSize = 256
    """Of every port, but for wires where ``wire_ring_size`` says theirs."""
    wire_ring_size: WireRingSize | None = None
    send_burst: Annotated[int, Ge(0), Le(64)] = 0
    """Frames that wait for each other in VNFs whose text does not say it; 0: none waits."""
    drain_us: Annotated[int, Ge(0), Le(1000)] = 100
    """Interval in which all that wait are sent."""
    clock: ClockChoice = "auto"
    """The clock of latencies; ``auto``: software."""
    switch_cores: SwitchCores = 1
    """Cores of the switch, where there are as many; one that has no queues for several uses the first."""
    tester_cores: TesterCores = 1
    """Queue pairs of every port that the tester has a generator and a monitor on, each pair on a core of its own where
    there are as many. With 1, a second core, where there is one, has the second end of the path."""
    missing_switches: Missing = "error"
    missing_hostings: Missing = "error"
    """What becomes of VNFs in a hosting that is not installed, and, with ``skip``, of VMs that would be emulated."""
    time_budget_s: Annotated[float, Gt(0)] | None = None
    search: SearchPlan = field(default_factory=SearchPlan)
    chains: tuple[str, ...] = ()
    traffic: tuple[TrafficProfile, ...] = (PLAIN,)
    """Each makes points: one with sizes of its own one, another one for each of ``frame_sizes_bytes``."""

    papers: tuple[str, ...] = ()
    """The papers whose tables and figures it reproduces, by short name."""
    left_out: tuple[Skipped, ...] = ()
    """Tables and figures of these papers that it leaves out, and why."""
    differs: tuple[Skipped, ...] = ()
    """Conditions in which it, or a part, is not as the papers are (planebench.measure.suite_conditions), and why."""
    purpose: str = ""
    """The purpose of a part, e.g. ``Table 3``."""
    only: tuple[str, ...] = ()
    """The labels of the switches that a part is about; empty: all switches of the plan."""
    vnf_counts: tuple[int, ...] = (1,)
    parts: tuple[Plan, ...] = ()
    """Several matrices in one run, each a whole plan of its own. The matrix of the plan itself is then what its parts
    have between them (:mod:`planebench.plan.passes`); everything but matrix and latency is the same in all of them."""

    more_hostings: tuple[HostingName, ...] = ()
    """Further hostings, each in a separate topology."""
    placements: tuple[Placing, ...] = (NEAR,)
    """The NUMA nodes of the VNFs, relative to the switch; each in a separate topology."""
    cpu_clocks: tuple[CpuClock, ...] = (OWN_CLOCK,)
    """The clocks of the CPUs of switch and VNFs; each in a separate topology."""
    tester: TesterChoice = "near"
    """The NUMA node of planed as the tester, relative to the switch; or an external tester."""
    check: FrameCheck = "full"
    """``sampled``: in trials without probes planed looks into one burst in 16 and counts the others by length."""

    @property
    def sending(self) -> dict[str, int]:
        """Return how VNFs collect frames whose text does not say it, as their tasks take it; empty if they do not."""
        return {"send_burst": self.send_burst, "drain_us": self.drain_us} if self.send_burst else {}

    @property
    def wire_name(self) -> WireName:
        """Return the wire without its arguments."""
        return wire_name(self.wire)

    @property
    def hostings(self) -> tuple[HostingName, ...]:
        """Return all of them."""
        return (self.hosting, *self.more_hostings)

    @property
    def sections(self) -> tuple[Plan, ...]:
        """Return the matrices of the plan: its parts, or itself."""
        return self.parts or (self,)

    def profile(self, name: str) -> TrafficProfile:
        """Return the traffic profile of a point, by the name it has there."""
        return next(profile for profile in self.traffic if profile.name == name)
