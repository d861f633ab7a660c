# SPDX-License-Identifier: BSD-3-Clause
"""The conditions under which a switch ran, as found on a live topology: a line of conditions.jsonl.

What an adapter says of itself is in the header (``SwitchInfo.settings``); this is what was negotiated and measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planebench.model.cpu_clock import OWN, CpuClock
from planebench.model.hosting import HostingFacts, HostingName
from planebench.model.placement import NEAR, Placing
from planebench.model.quantity import Moment
from planebench.model.records import ScenarioName, WireName

Side = Literal["wire", "vnf"]


@dataclass(frozen=True, slots=True)
class PortConditions:
    """A port of the tester, and so of the switch at its other end. None: not known; ``features`` of virtio only.

    ``features`` are those that driver and device negotiated, by name: ``version_1``, ``mrg_rxbuf``, ``packed``, ...
    ``ring_sizes``: entries of each ring that runs. ``driver`` is the tester's.
    """

    name: str
    side: Side
    kind: str
    driver: str
    queues: int | None = None
    ring_sizes: tuple[int, ...] | None = None
    features: tuple[str, ...] | None = None
    speed_mbps: int | None = None
    """The speed of the link, of a NIC only."""


@dataclass(frozen=True, slots=True)
class ThreadConditions:
    """A thread of the switch that polls: where it may run, how it is scheduled, and how fast its CPU was just then."""

    name: str
    cpus: str
    """Allowed CPUs, e.g. ``1`` or ``0,1``."""
    policy: str
    """``SCHED_OTHER``, ``SCHED_FIFO``, ..."""
    nice: int
    mhz: int | None = None
    """Frequency of the CPU on which the thread ran last; None if the host does not report it."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """One start of one switch on one topology. ``problem``: why something could not be read; empty if all could."""

    switch: str
    """Its label in this run."""
    scenario: ScenarioName
    chain_length: int
    wire: WireName
    start: int
    measured_at: Moment
    ports: tuple[PortConditions, ...] = ()
    threads: tuple[ThreadConditions, ...] | None = None
    """None where they could not be read; empty for a switch that has no thread of its own."""
    problem: str = ""
    chain: str = ""
    """The chain, as in points; empty for VNFs without a name."""
    af_xdp: str = ""
    """The mode of the AF_XDP sockets as the kernel reports it: ``copy, native, need-wakeup, busy-poll``; empty without
    any. ``tester ...; switch ...`` where the sides differ."""
    hosting: tuple[HostingFacts, ...] = ()
    """The facts of each hosted VNF, in path order."""
    vnf_hosting: HostingName = "process"
    """As ``hosting`` of points."""
    placement: Placing = NEAR
    cpu_clock: CpuClock = OWN
