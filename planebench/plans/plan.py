# SPDX-License-Identifier: BSD-3-Clause
"""The records of a plan. Frozen; validated where text becomes a plan (:mod:`planebench.plans.schema`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planebench.model.records import Direction, Hosting, ScenarioName, WireName

PLAN_VERSION = 1
"""Version of the plan file. History: 1 = first."""

MissingSwitches = Literal["skip", "error"]


@dataclass(frozen=True, slots=True)
class ThroughputPlan:
    """Saturating trials, whose mean is R+. ``retries``: how often a trial that was disturbed is run again."""

    duration_s: float
    warmup_s: float
    repetitions: int
    retries: int


@dataclass(frozen=True, slots=True)
class LatencyPlan:
    """Latency trials at shares of R+ (``loads``, empty for none); in v2v at the fixed ``v2v_pps`` instead.

    ``probe_rate_pps`` probes per second travel inside the background traffic of each sending end.
    """

    loads: tuple[float, ...]
    duration_s: float
    repetitions: int
    probe_rate_pps: int
    v2v_pps: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The matrix of a run and how each point of it is measured.

    ``switches`` are adapter names and may repeat: the same switch named twice is measured twice. ``missing_switches``
    says what becomes of one that is not installed. ``chain_lengths`` are for loopback only.
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
    ring_size: int = 256
    missing_switches: MissingSwitches = "error"
    time_budget_s: float | None = None
