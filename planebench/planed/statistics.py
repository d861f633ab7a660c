# SPDX-License-Identifier: BSD-3-Clause
"""Types of the answers to ``stats.get``, ``ports.get`` and ``stamps.get`` (docs/design/planed-protocol.md).

Answers are not validated: a guest may answer anything, and a caller that asks one must expect KeyError and TypeError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NotRequired, TypedDict, get_args

BucketCounts = Sequence[tuple[int, int]]
"""Pairs of a value and how often it was seen."""


class Histogram(TypedDict):
    """Latencies or their differences in ns."""

    counts: BucketCounts
    overflow: int


class StreamStatistics(TypedDict):
    """Counters of one stream at a monitor."""

    stream: int
    forwarded_packets: int
    forwarded_bytes: NotRequired[int]
    forwarded_by_tenth: NotRequired[Sequence[int]]
    duplicate_packets: int
    reordered_packets: int
    corrupt_packets: int
    probes_received: int
    latency: NotRequired[Histogram]
    latency_gap: NotRequired[Histogram]
    latency_stall: NotRequired[Histogram]
    stall_sum_ns: NotRequired[int]
    ipdv: NotRequired[Histogram]
    stamped_packets: NotRequired[int]
    burst_rises: NotRequired[Histogram]
    burst_falls: NotRequired[Histogram]
    sizes: NotRequired[BucketCounts]
    longest_silence_ns: int
    longest_silence_begin_ns: int | None
    longest_silence_end_ns: int | None
    first_ns: int | None
    last_ns: int | None


class Monitor(TypedDict):
    """Counters of a monitor."""

    received_packets: int
    foreign_packets: int
    stale_packets: int
    bursts: int
    full_bursts: int
    streams: list[StreamStatistics]


class SentPcap(TypedDict, total=False):
    """Counters of a capture at a generator."""

    frames: int
    loops: int
    enlarged: int
    skipped: dict[str, int]


class SentProfile(TypedDict, total=False):
    """Counters of a traffic profile at a generator."""

    bytes: int
    sizes: BucketCounts
    flows_sent: int
    dst_macs: Sequence[int]
    dst_ips_sent: int
    pcap: SentPcap


class Generator(TypedDict):
    """Counters of a generator: what it sent, and could not send."""

    intended_packets: int | None
    offered_packets: int
    offered_bytes: NotRequired[int]
    unsent_late_packets: int
    unsent_ring_full_packets: int
    attempted_packets: int
    refused_packets: int
    probes_sent: int
    probes_stamped: int
    duration_ns: int
    profile: NotRequired[SentProfile]


class FibSource(TypedDict):
    """Counters of the control of a VNF whose forwarding is offloaded to the switch."""

    up: bool
    updates_per_s: float | None
    duration_ns: int
    sent: int
    acknowledged: int
    refused: int
    control_received: int
    control_answered: int


class FirewallRule(TypedDict):
    """Counters of one rule, by its place in the list from 1."""

    rule: int
    name: NotRequired[str]
    action: Literal["drop", "permit"]
    packets: int


class Firewall(TypedDict):
    """Counters of the first rules of a firewall."""

    rules: list[FirewallRule]


class TaskStatistics(TypedDict):
    """Counters of one task; what only its kind has is in the object of that name."""

    name: str
    kind: str
    busy_cycles: int
    idle_cycles: int
    rx_packets: int
    tx_packets: int
    rx_bursts: NotRequired[int]
    drops: dict[str, int]
    drops_by_port: dict[str, dict[str, int]]
    generator: NotRequired[Generator]
    monitor: NotRequired[Monitor]
    fib_source: NotRequired[FibSource]
    firewall: NotRequired[Firewall]


PortDrop = Literal["rx_missed", "rx_nombuf", "rx_errors", "tx_errors"]
PORT_DROPS: tuple[PortDrop, ...] = get_args(PortDrop)
"""What a port counts when a frame does not reach its task, or was taken and does not leave."""


class PortStatistics(TypedDict):
    """Counters of one port."""

    name: str
    rx_packets: int
    tx_packets: int
    rx_missed: int
    rx_nombuf: int
    rx_errors: int
    tx_errors: int


class WorkerStatistics(TypedDict):
    """One worker: its thread, its work, and the time that it did not get."""

    name: str
    tid: int
    busy_cycles: int
    gap_threshold_ns: int
    gaps: int
    gap_sum_ns: int
    gap_max_ns: int


class Statistics(TypedDict):
    """The answer to ``stats.get``."""

    tsc_hz: int
    ports: list[PortStatistics]
    workers: list[WorkerStatistics]
    tasks: list[TaskStatistics]


class VirtioStatistics(TypedDict):
    """Features and rings that the two ends of a port have negotiated."""

    features: list[str]
    ring_sizes: list[int]


class PortState(TypedDict):
    """One port of ``ports.get``."""

    name: str
    kind: str
    link_up: bool
    speed_mbps: NotRequired[int | None]
    driver: NotRequired[str]
    clock: NotRequired[str]
    clock_reading: NotRequired[tuple[int, int, int] | None]
    queues: NotRequired[int]
    virtio: NotRequired[VirtioStatistics | None]
    xstats: NotRequired[Mapping[str, int]]


class Stamps(TypedDict):
    """One page of ``stamps.get``: (stream, sequence, in_tsc, out_tsc, port_ns, empty_tsc, met) of each probe, and where
    the next page begins."""

    stamps: list[tuple[int, int, int, int, int, int, int]]
    next: int | None
    lost: int
