# SPDX-License-Identifier: BSD-3-Clause
"""Results of restarts under traffic (docs/hosting.md): frozen records, the JSON of ``planebench outage``."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

from planebench.model.dimensions import HostingFacts


@dataclass(frozen=True, slots=True)
class Silence:
    """The longest time in which no frame came, within a sending at a constant rate."""

    duration_ns: int
    begin_ns: int
    """Since the sending began."""
    end_ns: int


@dataclass(frozen=True, slots=True)
class Outage:
    """One restart under traffic. Every frame that was to be sent is in exactly one of the counts.

    intended = unsent_late + unsent_ring_full + forwarded + corrupt + drops + gone.
    """

    silence: Silence
    calm: Silence
    """The silence in the same traffic before the restart: the noise of the host."""
    calm_lost_packets: int
    restart_ns: int
    """From the order to end it until it had been asked to forward again."""
    intended_packets: int
    unsent_late_packets: int
    """The tester was late; they are not counted as lost."""
    unsent_ring_full_packets: int
    """Nobody took them from the wire."""
    forwarded_packets: int
    corrupt_packets: int
    duplicate_packets: int
    """Beyond the forwarded ones."""
    reordered_packets: int
    """Reordered packets among the forwarded ones."""
    drops: Mapping[str, int] = field(default_factory=dict)
    """Drops counted by switch and VNFs, by name."""

    @property
    def lost_packets(self) -> int:
        """Return all that were to be sent in time and did not arrive intact."""
        return self.intended_packets - self.unsent_late_packets - self.forwarded_packets

    @property
    def dropped_packets(self) -> int:
        """Return the lost packets that a drop counter explains."""
        return sum(self.drops.values())

    @property
    def gone_packets(self) -> int:
        """Return the lost packets without a drop counter: they were in the ended process or its rings."""
        return self.lost_packets - self.unsent_ring_full_packets - self.corrupt_packets - self.dropped_packets


@dataclass(frozen=True, slots=True)
class Restart:
    """The restart of a trial with the role ``outage``: the victim, and the measured outage."""

    victim: str
    """``switch``, ``vnf0``, ..."""
    killed: bool
    """True if ended by SIGKILL, false if by an orderly stop."""
    outage: Outage


@dataclass(frozen=True, slots=True)
class OutageReport:
    """Several restarts of the same thing."""

    switch: str
    version: str
    chain: str
    """For people."""
    victim: str
    """``switch``, ``vnf0``, ..."""
    killed: bool
    """True if ended by SIGKILL, false if by an orderly stop."""
    rate_pps: float
    frame_size_bytes: int
    functional: tuple[str, ...]
    """Why its times are no figures of performance; empty where they are."""
    outages: tuple[Outage, ...]
    hosted: tuple[HostingFacts, ...] = ()
    point: Mapping[str, str | int] = field(default_factory=dict)
    """The key of its test point."""

    @property
    def silence_median_ns(self) -> float:
        """Return median of the outages."""
        return statistics.median(it.silence.duration_ns for it in self.outages)

    @property
    def lost_median_packets(self) -> float:
        """Return median of the lost frames."""
        return statistics.median(it.lost_packets for it in self.outages)
