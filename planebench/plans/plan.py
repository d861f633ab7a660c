# SPDX-License-Identifier: BSD-3-Clause
"""The records of a plan. Frozen; validated where text becomes a plan (:mod:`planebench.plans.schema`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planebench.model.header import Skipped
from planebench.model.hosting import Hosting
from planebench.model.records import Direction, ScenarioName, WireName
from planebench.search.ask import SearchSettings
from planebench.traffic.profile import PLAIN, TrafficProfile

PLAN_VERSION = 1
"""Version of the plan file. History: 1 = first."""

MissingSwitches = Literal["skip", "error"]
Band = Literal["near", "far"]


@dataclass(frozen=True, slots=True)
class ThroughputPlan:
    """Saturating trials, whose mean is R+. ``retries``: how often a trial that was disturbed is run again."""

    duration_s: float
    warmup_s: float
    repetitions: int
    retries: int
    restarts: int = 0
    """How often every switch is started anew between repetitions: what a start decides (memory, placement) averages."""
    max_rate_pps: float | None = None
    """Saturating trials send at this rate in each direction, not flat out: a line rate for a wire that has none."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Searches on every point, after R+. Names of :data:`planebench.search.METHODS`, without ``r_plus``.

    ``duration_s`` of a trial, ``duration_sum_s`` and ``relative_width`` are those of the method's standard where None.
    """

    methods: tuple[str, ...] = ()
    duration_s: float | None = None
    duration_sum_s: float | None = None
    relative_width: float | None = None
    pdr_loss_ratio: float = 0.005
    max_r: int = 2
    burst_repetitions: int = 3


@dataclass(frozen=True, slots=True)
class LatencyPlan:
    """Latency trials at shares of R+ (``loads``, empty for none); in v2v at the fixed ``v2v_pps`` instead.

    ``rates_pps`` are fixed loads of each sending end beside these: the same for every point, so that their latencies
    may be set against each other, as of a chain and of its parts.
    ``probe_rate_pps`` probes per second travel inside the background traffic of each sending end.
    """

    loads: tuple[float, ...]
    duration_s: float
    repetitions: int
    probe_rate_pps: int
    v2v_pps: int
    rates_pps: tuple[float, ...] = ()
    anatomy: bool = False
    """Probes are stamped at every task of their path, so that latency splits into parts."""

    @property
    def wanted(self) -> bool:
        """Whether any latency is taken."""
        return bool(self.loads or self.rates_pps)


@dataclass(frozen=True, slots=True)
class Plan:
    """The matrix of a run and how each point of it is measured.

    ``switches`` are adapter names and may repeat: the same switch named twice is measured twice. ``missing_switches``
    says what becomes of one that is not installed. ``chain_lengths``, of l2fwd, and ``chains``, by name with absolute
    paths (planebench.vnfs), are for loopback only: each of both is a topology. So is each of ``vnf_counts``, for
    parallel only; its VNFs are what the chains of one function say, l2fwd where there is none.
    """

    name: str
    description: str
    switches: tuple[str, ...]
    scenarios: tuple[ScenarioName, ...]
    directions: tuple[Direction, ...]
    frame_sizes_bytes: tuple[int, ...]
    chain_lengths: tuple[int, ...]
    throughput: ThroughputPlan
    latency: LatencyPlan
    seed: int
    wire: WireName = "virtio"
    hosting: Hosting = "process"
    """What the VNFs run in of which a chain says nothing else."""
    ring_size: int = 256
    switch_cores: int = 1
    """Cores of the switch, where there are as many; one that has no queues for several uses the first."""
    missing_switches: MissingSwitches = "error"
    time_budget_s: float | None = None
    search: SearchPlan = SearchPlan()
    band: Band | None = None
    """The core-distance band that counts; None: the one with most trials."""
    chains: tuple[str, ...] = ()
    traffic: tuple[TrafficProfile, ...] = (PLAIN,)
    """Each makes points: one with sizes of its own one, another one for each of ``frame_sizes_bytes``."""

    papers: tuple[str, ...] = ()
    """The papers whose tables and figures it reproduces, by short name."""
    left_out: tuple[Skipped, ...] = ()
    """Tables and figures of these papers that it leaves out, and why."""
    purpose: str = ""
    """Of a part: what it is for, as ``Table 3``."""
    vnf_counts: tuple[int, ...] = (1,)
    parts: tuple[Plan, ...] = ()
    """Several matrices in one run, each a whole plan of its own. The matrix of the plan itself is then what its parts
    have between them (:mod:`planebench.plans.parts`); everything but matrix and latency is the same in all of them."""

    more_hostings: tuple[Hosting, ...] = ()
    """What they run in besides, each a topology of its own."""

    @property
    def hostings(self) -> tuple[Hosting, ...]:
        """All of them."""
        return (self.hosting, *self.more_hostings)

    @property
    def sections(self) -> tuple[Plan, ...]:
        """The matrices of the plan: its parts, or itself."""
        return self.parts or (self,)

    def profile(self, name: str) -> TrafficProfile:
        """The traffic profile of a point, by the name it has there."""
        return next(profile for profile in self.traffic if profile.name == name)

    def search_settings(self, senders: int) -> SearchSettings:
        """How searches are done on a point with so many sending directions."""
        rate = self.throughput.max_rate_pps
        return SearchSettings(
            trial_duration_s=self.search.duration_s,
            duration_sum_s=self.search.duration_sum_s,
            relative_width=self.search.relative_width,
            pdr_loss_ratio=self.search.pdr_loss_ratio,
            max_r=self.search.max_r,
            repetitions=self.throughput.repetitions,
            burst_repetitions=self.search.burst_repetitions,
            restarts=self.throughput.restarts,
            r_plus_duration_s=self.throughput.duration_s,
            max_load_pps=None if rate is None else rate * senders,
        )
