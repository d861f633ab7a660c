# SPDX-License-Identifier: BSD-3-Clause
"""The answers of planed (docs/design/planed-protocol.md) as records, decoded once: a guest may answer anything.

Keys that nobody reads are passed over. A field with a default is one that planed leaves out, of some kinds or while it
sends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from planebench.model.errors import DiedError

R = TypeVar("R")


class AnswerError(DiedError):
    """A process answers as no planed does: it is as good as gone."""


Counter64 = Annotated[int, Field(strict=True, ge=0, lt=2**64)]
Integer = Annotated[int, Field(strict=True)]
BucketCounts = tuple[tuple[Counter64, Counter64], ...]
"""Pairs of a value and how often it was seen."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Latencies or their differences in ns."""

    counts: BucketCounts
    overflow: Counter64


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """Counters of one stream at a monitor."""

    stream: Counter64
    forwarded_packets: Counter64
    duplicate_packets: Counter64
    reordered_packets: Counter64
    corrupt_packets: Counter64
    probes_received: Counter64
    unchecked_packets: Counter64 = 0
    forwarded_bytes: Counter64 | None = None
    forwarded_by_tenth: tuple[Counter64, ...] = ()
    latency: Histogram | None = None
    latency_gap: Histogram | None = None
    latency_stall: Histogram | None = None
    """Each probe is in one of these three, by what it met."""
    stall_sum_ns: Counter64 | None = None
    ipdv: Histogram | None = None
    stamped_packets: Counter64 = 0
    burst_rises: Histogram | None = None
    burst_falls: Histogram | None = None
    elsewhere_packets: Counter64 = 0
    """Of those forwarded, the frames that a monitor of another queue of the port has counted, too."""
    longest_silence_ns: Counter64 = 0
    longest_silence_begin_ns: Counter64 | None = None
    longest_silence_end_ns: Counter64 | None = None

    @property
    def probes(self) -> tuple[Histogram, ...]:
        """Return the histograms of all its probes."""
        return tuple(filter(None, (self.latency, self.latency_gap, self.latency_stall)))


@dataclass(frozen=True, slots=True)
class Monitor:
    """Counters of a monitor; without streams while a generator of its process sends."""

    received_packets: Counter64
    foreign_packets: Counter64
    stale_packets: Counter64
    bursts: Counter64
    full_bursts: Counter64
    streams: tuple[StreamStatistics, ...] = ()


@dataclass(frozen=True, slots=True)
class SentPcap:
    """Counters of a capture at a generator."""

    frames: Counter64
    loops: Counter64
    enlarged: Counter64
    skipped: Mapping[str, Counter64]


@dataclass(frozen=True, slots=True)
class SentProfile:
    """Counters of a traffic profile at a generator."""

    bytes: Counter64
    sizes: BucketCounts
    flows_sent: Counter64 | None = None
    dst_macs: tuple[Counter64, ...] = ()
    dst_ips_sent: Counter64 | None = None
    entries: Counter64 | None = None
    entries_touched: Counter64 | None = None
    pcap: SentPcap | None = None


@dataclass(frozen=True, slots=True)
class Generator:
    """Counters of a generator: what it sent, and could not send."""

    intended_packets: Counter64 | None
    offered_packets: Counter64
    unsent_late_packets: Counter64
    unsent_ring_full_packets: Counter64
    attempted_packets: Counter64
    refused_packets: Counter64
    probes_sent: Counter64
    probes_stamped: Counter64
    duration_ns: Counter64
    offered_bytes: Counter64 | None = None
    profile: SentProfile | None = None


@dataclass(frozen=True, slots=True)
class FibSource:
    """Counters of the control plane of a VNF whose forwarding is offloaded to the switch."""

    control_received: Counter64
    up: bool = False
    sent: Counter64 = 0
    acknowledged: Counter64 = 0
    refused: Counter64 = 0
    expired_answered: Counter64 = 0


@dataclass(frozen=True, slots=True)
class FirewallRule:
    """Counters of one rule, by its place in the list from 1."""

    rule: Counter64
    action: Literal["drop", "permit"]
    packets: Counter64
    name: str = ""


@dataclass(frozen=True, slots=True)
class Firewall:
    """Counters of the first rules of a firewall."""

    rules: tuple[FirewallRule, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskStatistics:
    """Counters of one task; what only its kind has is in the object of that name."""

    name: str
    kind: str
    busy_cycles: Counter64
    rx_packets: Counter64
    tx_packets: Counter64
    drops: Mapping[str, Counter64]
    drops_by_port: Mapping[str, Mapping[str, Counter64]]
    rx_bursts: Counter64 | None = None
    rx_full_bursts: Counter64 | None = None
    generator: Generator | None = None
    monitor: Monitor | None = None
    fib_source: FibSource | None = None
    firewall: Firewall = field(default_factory=Firewall)


@dataclass(frozen=True, slots=True)
class PortStatistics:
    """Counters of one port."""

    name: str
    rx_packets: Counter64
    tx_packets: Counter64
    rx_missed: Counter64
    rx_nombuf: Counter64
    rx_errors: Counter64
    tx_errors: Counter64

    @property
    def drops(self) -> Mapping[str, int]:
        """Return the frames that did not reach its task, or were taken and did not leave, by reason."""
        reasons = ("rx_missed", "rx_nombuf", "rx_errors", "tx_errors")
        return {reason: getattr(self, reason) for reason in reasons}


@dataclass(frozen=True, slots=True)
class WorkerStatistics:
    """One worker: its thread, its work, and the time that it did not get."""

    name: str
    tid: Counter64
    busy_cycles: Counter64
    gap_threshold_ns: Counter64
    gaps: Counter64
    gap_sum_ns: Counter64
    gap_max_ns: Counter64


@dataclass(frozen=True, slots=True)
class Statistics:
    """The answer to ``stats.get``."""

    tsc_hz: Annotated[int, Field(strict=True, gt=0)]
    ports: tuple[PortStatistics, ...]
    workers: tuple[WorkerStatistics, ...]
    tasks: tuple[TaskStatistics, ...]


@dataclass(frozen=True, slots=True)
class VirtioStatistics:
    """Features and rings that the two ends of a port have negotiated."""

    features: tuple[str, ...]
    ring_sizes: tuple[Counter64, ...]


@dataclass(frozen=True, slots=True)
class PortState:
    """One port of ``ports.get``."""

    name: str
    kind: str
    link_up: bool
    speed_mbps: Counter64 | None = None
    driver: str = ""
    clock: str = "software"
    clock_reading: tuple[Integer, Integer, Integer] | None = None
    """TSC, ns by the clock of the device, and the width of the TSC's interval."""
    queues: Counter64 | None = None
    virtio: VirtioStatistics | None = None
    xstats: Mapping[str, Integer] = field(default_factory=dict)
    """As the driver counts: some wrap below zero."""


@dataclass(frozen=True, slots=True)
class PortStates:
    """The answer to ``ports.get``."""

    ports: tuple[PortState, ...]


@dataclass(frozen=True, slots=True)
class Stamps:
    """One page of ``stamps.get``, and where the next one begins."""

    stamps: tuple[Annotated[tuple[Integer, ...], Field(min_length=4)], ...]
    """(stream, sequence, in_tsc, out_tsc, port_ns, empty_tsc, met) of each probe. An older planed in a guest has no
    stamps of ports and of empty polls."""
    next: Counter64 | None
    lost: Counter64


@dataclass(frozen=True, slots=True)
class TrafficState:
    """The answer to ``traffic.get``."""

    running: bool


_decoder = cache(TypeAdapter[Any])


def decoded(kind: type[R], method: str, answer: Mapping[str, object]) -> R:
    """Return the answer to a method as a record. Raises AnswerError with the first field that is missing or wrong."""
    try:
        found: R = _decoder(kind).validate_python(answer)  # type: ignore[arg-type] # a class is hashable
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"]))
        raise AnswerError(f"planed does not answer {method} as it should: {name}: {first['msg'].lower()}") from error
    return found
