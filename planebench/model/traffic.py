# SPDX-License-Identifier: BSD-3-Clause
"""The frozen records of a traffic profile: what frames a generator makes, and when. Validated in schema.py.

Limits are those of planed's generator (docs/design/planed-protocol.md, ``profile`` of traffic.start).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Draw = Literal["round_robin", "uniform", "zipf"]
ArrivalProcess = Literal["constant", "poisson", "on_off"]
Transport = Literal["udp", "tcp"]
Timing = Literal["rate", "recorded"]
Updates = float | Literal["flat_out"]
Entries = int | Literal["all"]

FLOWS_MAX = 16_777_216
ADDRESSES_MAX = 16_777_216
ENTRIES_MAX = 2**32
MACS_MAX = 4096
SIZES_MAX = 256
WEIGHT_MAX = 1_000_000
CONTROL_MAX_PPS = 1000
"""A switch that forwards in place of a VNF passes it no more control packets per second."""

ETHERNET_BYTES, VLAN_BYTES, IPV4_BYTES, IPV6_BYTES, UDP_BYTES, TCP_BYTES, FCS_BYTES = 14, 4, 20, 40, 8, 20, 4
TESTER_BYTES = 18
"""Stream, sequence number and time stamp, behind the headers of every frame."""


@dataclass(frozen=True, slots=True)
class Flows:
    """Flows differ in source address and source port. ``exponent`` is that of Zipf's law."""

    count: int
    draw: Draw = "round_robin"
    exponent: float = 1.0


@dataclass(frozen=True, slots=True)
class Destinations:
    """Destination addresses, drawn uniformly.

    With ``fib``: so many, drawn from the routes in ``path``, or of the chain's first l3fwd where that is empty; ``all``
    is one of each route. Of a synthetic FIB they are the first so many routes of each VNF. Without: those in the file
    ``path``, one a line.
    """

    path: str = ""
    fib: Entries | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """The send times of frames at a given rate. ``on_off``: bursts of ``on_ns`` with ``off_ns`` between."""

    process: ArrivalProcess
    on_ns: int = 0
    off_ns: int = 0


@dataclass(frozen=True, slots=True)
class Pcap:
    """A capture to replay: at the rate of the trial, or at recorded times, divided by ``time_scale`` or such that their
    mean is ``rate_pps``.

    The figures behind ``frame_bytes_max``, the longest frame that the wire takes, are those of the frames that the
    generator sends on it (planebench.testbed.traffic_files); before it is asked there are none.
    """

    path: str
    timing: Timing
    time_scale: float
    frames: int = 0
    mean_frame_bytes: float = 0.0
    max_frame_bytes: int = 0
    rate_pps: float | None = None
    frame_bytes_max: int = 0
    frames_in_file: int = 0
    skipped: tuple[tuple[str, int], ...] = ()
    """(reason, frames) of those that it does not send."""
    times_fallen: int = 0
    times_impossible: int = 0


@dataclass(frozen=True, slots=True)
class TrafficProfile:
    """The traffic that replaces equal frames. Results show its ``name``, which is empty for plain frames."""

    name: str
    summary: str
    sizes: tuple[tuple[int, int], ...] = ()
    """(frame size in bytes, weight), exact over each round of the sum of the weights; empty: the size of the point."""
    ip: Literal[4, 6] = 4
    transport: Transport = "udp"
    vlan: int | None = None
    flows: Flows | None = None
    dst_macs: tuple[str, ...] = ()
    dst_mac_count: int | None = None
    dst_ips: Destinations | None = None
    arrival: Arrival | None = None
    pcap: Pcap | None = None
    seed: int = 1
    updates: Updates | None = None
    """Routes a second that the control of a VNF changes meanwhile; flat_out: as fast as they are acknowledged."""
    control_pps: float | None = None
    """Control packets a second to a VNF. It answers each with a reply, and with the change of one route."""
    closed_loop: bool = False
    """At maximum load plain frames as fast as the ring takes them: the plan's speed of links is not for them."""

    @property
    def has_control(self) -> bool:
        """Return whether the control of a VNF has something to do while this traffic is sent."""
        return self.updates is not None or self.control_pps is not None

    @property
    def plain(self) -> bool:
        """Return whether its frames are those of no profile: equal ones of the size of the point."""
        return not self.name or self.closed_loop

    @property
    def mean_frame_bytes(self) -> float | None:
        """Return the mean size of the profile's own mix; None if frames have the size of the point."""
        if self.pcap is not None:
            return self.pcap.mean_frame_bytes
        weights = sum(weight for _, weight in self.sizes)
        return sum(size * weight for size, weight in self.sizes) / weights if weights else None

    @property
    def smallest_frame_bytes(self) -> int:
        """Return the least that holds its headers and what the tester writes behind them: 64 for IPv4 and UDP."""
        ip = IPV4_BYTES if self.ip == 4 else IPV6_BYTES
        transport = UDP_BYTES if self.transport == "udp" else TCP_BYTES
        vlan = 0 if self.vlan is None else VLAN_BYTES
        return ETHERNET_BYTES + vlan + ip + transport + TESTER_BYTES + FCS_BYTES

    @property
    def headers(self) -> str:
        """Return text such as ``VLAN/IPv6/UDP``."""
        return "/".join((*(("VLAN",) if self.vlan is not None else ()), f"IPv{self.ip}", self.transport.upper()))

    @property
    def recorded(self) -> bool:
        """Return whether its times are those of a file: then no load can be set."""
        return self.pcap is not None and self.pcap.timing == "recorded"


PLAIN = TrafficProfile("", "frames of one size and one flow (no profile)")
PLAIN_NAME = "plain"
"""The name on the command line."""
