# SPDX-License-Identifier: BSD-3-Clause
"""The frozen records of planebench: what is measured, what one trial yields, what is derived from trials.

Counts are ints; units are in the names. A record knows nothing of files, processes or switches.
Terms are those of docs/terminology.md; the trial protocol is docs/design/trials.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from planebench.model.chain_name import chain_label, chain_slug, hostings, vnf_texts
from planebench.model.dimensions import WORDS, HostingName, LatencyClock
from planebench.model.outage import Restart
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.scenario import SCENARIOS, Direction, ScenarioName, scenario_named
from planebench.model.server import NEAR, OWN_CLOCK, CpuClock, Placing, clock_words
from planebench.model.text import Moment
from planebench.model.traffic import PLAIN_NAME
from planebench.model.wire import WireName

# How latency splits over the places of a path (docs/design/latency.md): frozen records.

PartKind = Literal["tester", "switch", "hosting", "vnf"]
"""``hosting``: a hop to or from a VNF that is no task of the tester, with all that its hosting puts in the way."""


@dataclass(frozen=True, slots=True)
class AnatomyPart:
    """One part of the way of the joined probes: how long they were in it (docs/design/latency.md).

    ``name``: ``generator``, ``hop 1``, ``vnf0``, ..., ``monitor``; ``hops 1 to 2`` around a VNF with a clock of its
    own, ``hops 1 to 2, vnf0`` where it tells no times. ``histogram`` as in LatencyRecord; the mean is exact.
    ``low_ns`` and ``high_ns`` bound the mean time that is this part's own: at the end of a hop a probe may have waited
    for the poll that found it, since the last poll that found nothing.
    """

    name: str
    kind: PartKind
    mean_ns: float
    p50_ns: float
    p99_ns: float
    histogram: str
    low_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True)
class Anatomy:
    """The latency of one direction of a trial, split along the path. The parts of a probe add up to its latency.

    ``not_joined``: probes that have no stamp at every task of the path, by reason. ``problem``: why the parts do not
    stand for the whole; empty if they do.
    """

    name: str
    joined: int
    not_joined: dict[str, int]
    parts: tuple[AnatomyPart, ...]
    reported_mean_ns: float | None
    """Mean latency of all probes of the direction, as the monitor reported it."""
    problem: str = ""

    @property
    def sum_ns(self) -> float:
        """Return the sum of the means of the parts."""
        return sum(part.mean_ns for part in self.parts)


TopologyKey = tuple[ScenarioName, int, str, HostingName, Placing, CpuClock, WireName]
"""Scenario, number of VNFs, chain, hosting, placement, CPU clock, wire."""
Role = Literal["warmup", "r_plus", "search", "latency", "outage"]

POINT_KEY = (
    *("switch", "scenario", "chain_length", "chain", "direction"),
    *("frame_size_bytes", "traffic", "wire", "hosting", "placement", "cpu_clock"),
)
"""What tells a test point from every other: all fields of Point, in the order of tables."""

L1_OVERHEAD_BYTES = 20
"""Preamble, start delimiter and inter-frame gap: 20 bytes a frame (METHODOLOGY section 1)."""


TENTHS = 10
"""Parts of the sending time that frames are counted by."""

SCHEDSTAT_MIN_NS = 9_990_000
"""10 ms, as a clock measures them. In a shorter trial the run-queue waits of threads are those of starting and reading
it: they tell nothing of it."""


class VerdictKind(StrEnum):
    """The verdict of a trial or a result (docs/design/trials.md)."""

    VALID = "valid"
    OVERLOAD = "overload"
    """A latency trial whose load the switch did not carry: its latency is that of full queues."""
    TESTER_LIMITED = "tester-limited"
    LINE_RATE = "line-rate"
    """The switch forwarded all that the links carry: the links, not the switch, are the limit."""
    FUNCTIONAL = "functional"
    """Frames were counted, and that holds; rates and latencies tell nothing: a VNF is emulated, or CPUs are shared."""
    INVALID = "invalid"

    @property
    def is_bound(self) -> bool:
        """Return whether a throughput with this verdict is a lower bound of what the switch can do."""
        return self in (VerdictKind.TESTER_LIMITED, VerdictKind.LINE_RATE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A kind and the evidence for it, one sentence each. Every kind but valid has at least one reason."""

    kind: VerdictKind
    reasons: tuple[Reason, ...] = ()

    def __post_init__(self) -> None:
        if self.kind is not VerdictKind.VALID and not self.reasons:
            raise ValueError(f"verdict {self.kind.value} needs a reason")

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the sentence of each reason."""
        return tuple(map(str, self.reasons))

    @property
    def codes(self) -> tuple[str, ...]:
        """Return the code of each reason."""
        return tuple(reason.code.value for reason in self.reasons)

    def has(self, code: ReasonCode) -> bool:
        """Return whether one of the reasons has this code."""
        return any(reason.code is code for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class Point:
    """One cell of the matrix: everything that must be equal for two trials to be repetitions of each other.

    ``switch`` is the label in this run: ``planed``, or ``planed#2`` for the second of two entries of the same switch.
    """

    switch: str
    scenario: ScenarioName
    direction: Direction
    chain_length: int
    """VNFs: in a row or side by side, as the scenario has them."""
    frame_size_bytes: int
    wire: WireName = "virtio"
    hosting: HostingName = "process"
    """The hosting of VNFs whose text in the chain names none, or of the ends that are in VNFs."""
    chain: str = ""
    """The network functions of a chain in path order, as the user wrote them, files by absolute paths; empty: every
    one is l2fwd. Of VNFs side by side the one function that each of them is."""
    traffic: str = ""
    """Name of the traffic profile; empty: frames of one size. With a mix, ``frame_size_bytes`` is its mean, rounded."""
    placement: Placing = NEAR
    """The NUMA nodes of its VNFs, relative to the switch."""
    cpu_clock: CpuClock = OWN_CLOCK
    """The clock of the CPUs of switch and VNFs."""

    def __post_init__(self) -> None:
        if scenario_named(self.scenario).has_vnfs != (self.chain_length > 0):
            raise ValueError(f"chain_length {self.chain_length} does not fit scenario {self.scenario}")
        if self.chain and len(vnf_texts(self.chain, 0)) != self.named_length:
            raise ValueError(f"chain {self.chain} does not fit chain_length {self.chain_length}")

    @property
    def chained(self) -> bool:
        """Return whether its VNFs are in a row."""
        return SCENARIOS[self.scenario].chained

    @property
    def side_by_side(self) -> bool:
        """Return whether its VNFs are side by side."""
        return SCENARIOS[self.scenario].vnfs == "side-by-side"

    @property
    def scenario_label(self) -> str:
        """Return the scenario for tables and plots: ``p2p``, ``loopback-3``, ``loopback firewall,l3fwd``,
        ``loopback-3 in VMs``, ``p2v in VMs``."""
        if not self.chain:
            return f"{self._shape}{self.where_words}"
        shape = self._shape if self.side_by_side else self.scenario
        return f"{shape} {chain_label(self.chain, self.named_length)}{self.where_words}"

    @property
    def _shape(self) -> str:
        """Return the scenario with the number of its VNFs, if it has any."""
        return f"{self.scenario}-{self.chain_length}" if self.chain_length else self.scenario

    @property
    def where_words(self) -> str:
        """Return hosting, placement and CPU clock where they are not the usual ones: `` in VMs, placed far``."""
        hosting = f" {WORDS[self.hosting]}" if self.hosting in WORDS else ""
        placed = f", placed {self.placement}" if self.placement != NEAR else ""
        return hosting + placed + (f" {words}" if (words := clock_words(self.cpu_clock)) else "")

    @property
    def named(self) -> bool:
        """Return whether the number of its VNFs does not tell it: VNFs or ends have names, a hosting, a placement, or
        the CPUs another clock."""
        return bool(self.chain or self.where_words)

    @property
    def hostings(self) -> tuple[HostingName, ...]:
        """Return the hosting of each VNF, or of each end in one; one for all VNFs side by side; empty without VNFs."""
        if not self.chain_length:
            return (self.hosting,) * SCENARIOS[self.scenario].ends.count("vnf")
        return hostings(self.chain, self.named_length, self.hosting)

    @property
    def hosted(self) -> tuple[int, ...]:
        """Return the numbers of the VNFs, or of the ends in VNFs, that are not tasks of the tester."""
        return tuple(number for number, hosting in enumerate(self.hostings) if hosting != "process")

    @property
    def idle_tester(self) -> bool:
        """Return whether both ends are hosted, so that the tester polls nothing."""
        return not self.chain_length and len(self.hosted) > 1

    def echoes(self, role: Role) -> bool:
        """Return whether a trial of this role has the topology in which the second VNF sends everything back."""
        return role == "latency" and SCENARIOS[self.scenario].latency_by_echo

    @property
    def two_clocks(self) -> bool:
        """Return whether probes leave and come by different clocks: an end is in a VM, whose clock is its own, and does
        not echo."""
        return "vm" in self.hostings and not self.chain_length and not self.echoes("latency")

    @property
    def scenario_slug(self) -> str:
        """Return the label in characters that are valid in a file name and an anchor."""
        if not self.chain:
            return f"{self._shape}{self.where_slug}"
        shape = self._shape if self.side_by_side else self.scenario
        return f"{shape}-{chain_slug(self.chain, self.chain_length)}{self.where_slug}"

    @property
    def where_slug(self) -> str:
        """Return hosting, placement and clock in such characters, where they are not usual: ``-vm-split-1``."""
        hosting = self.hosting if self.hosting in WORDS else ""
        placed = self.placement if self.placement != NEAR else ""
        return "".join(f"-{text.replace(':', '-')}" for text in (hosting, placed, self.cpu_clock) if text)

    @property
    def named_length(self) -> int:
        """Return the number of functions the name of its chain has: one where all VNFs are of one kind."""
        return 1 if self.side_by_side else self.chain_length

    @property
    def topology(self) -> TopologyKey:
        """Return the key of its topology. Points with the same key and switch are measured on the same start."""
        chain = self.chain_length, self.chain, self.hosting, self.placement, self.cpu_clock  # shorter ones sort first
        return self.scenario, *chain, self.wire

    @property
    def chain_text(self) -> str:
        """Return the functions of the chain with their options, named or not; empty where there is none."""
        return ",".join(vnf_texts(self.chain, self.named_length))

    @property
    def chain_label(self) -> str:
        """Return ``firewall,l3fwd``; ``l2fwd,l2fwd in VMs`` for a chain without a name; ``63 x l3fwd``; ``ends in
        VMs``; ``at 1200 MHz`` for other paths without a chain; empty if nothing is to be said."""
        if not self.chain_length:
            return f"{'ends' * (self.hosting in WORDS)}{self.where_words}".strip()
        text = f"{chain_label(self.chain, self.named_length)}{self.where_words}"
        return f"{self.chain_length} x {text}" if self.side_by_side else text

    @property
    def key(self) -> dict[str, str | int]:
        """Return what tells it from every other point, as tables, metrics and reports of restarts have it."""
        return {name: getattr(self, name) for name in POINT_KEY} | {"chain": self.chain_text}

    @property
    def point_id(self) -> str:
        """Return a stable readable id, derived, never parsed. What is usual is left out at its end."""
        where = f"{self._shape}:{self.chain}" if self.chain else self._shape
        parts = (self.switch, where, self.direction, str(self.frame_size_bytes), self.wire, self.hosting)
        tail = [(self.traffic, "", PLAIN_NAME), (self.placement, NEAR, NEAR), (self.cpu_clock, OWN_CLOCK, "own")]
        while tail and tail[-1][0] == tail[-1][1]:
            tail.pop()
        return "/".join((*parts, *(value or name for value, _, name in tail)))


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a trial: flat out (``pps_per_direction`` is None), or a rate for each sending direction.

    ``label`` is what tables group by: ``saturating``, ``0.10``, ``0.50``, ``0.99`` (shares of R+), ``1Mpps``.
    """

    label: str
    pps_per_direction: float | None = None


@dataclass(frozen=True, slots=True)
class DirectionCounts:
    """The packet ledger of one direction of one trial, e.g. ``n0->v0``.

    ``intended_packets`` equals ``offered_packets`` flat out: a saturating generator intends what it can.
    ``refused_packets`` of ``attempted_packets`` were not accepted by the tester's own port (ring full).
    """

    name: str
    intended_packets: int
    offered_packets: int
    forwarded_packets: int
    duplicate_packets: int = 0
    reordered_packets: int = 0
    corrupt_packets: int = 0
    unsent_late_packets: int = 0
    unsent_ring_full_packets: int = 0
    attempted_packets: int = 0
    refused_packets: int = 0
    monitor_bursts: int = 0
    monitor_full_bursts: int = 0
    forwarded_by_tenth: tuple[int, ...] = ()
    """What came within each tenth of the sending; empty where it was not counted. What rings gave back later is in
    ``forwarded_packets`` only."""
    offered_bytes: int | None = None
    """With FCS; None for a tester that does not count them."""
    forwarded_bytes: int | None = None
    unchecked_packets: int = 0
    """Of the forwarded packets, those of which the tester saw number and length only (``check`` of the plan)."""

    def __post_init__(self) -> None:
        if len(self.forwarded_by_tenth) not in (0, TENTHS):
            raise ValueError(f"forwarded_by_tenth has {len(self.forwarded_by_tenth)} counts, not {TENTHS}")

    @property
    def untried(self) -> bool:
        """Return whether the tester did not try to send at all, which tells nothing of the switch."""
        return not (self.offered_packets or self.attempted_packets)

    @property
    def lost_packets(self) -> int:
        """Return the offered packets that were not received intact; below 0 only if counting is broken (invalid)."""
        return self.offered_packets - self.forwarded_packets

    @property
    def unsent_packets(self) -> int:
        """Return the packets that were intended but not offered."""
        return self.intended_packets - self.offered_packets

    @property
    def tried_packets(self) -> int:
        """Return the packets that were due while the generator was in time: the load of the switch."""
        return self.offered_packets + self.unsent_ring_full_packets

    @property
    def missing_packets(self) -> int:
        """Return what the switch lost: frames that did not come back intact, and those its full ring did not take."""
        return self.lost_packets + self.unsent_ring_full_packets

    @property
    def loss_ratio(self) -> float:
        """Return the loss ratio of the direction."""
        return loss_ratio((self,))

    @property
    def ring_full_share(self) -> float:
        """Return the share of send attempts that the port of the tester rejected."""
        return self.refused_packets / self.attempted_packets if self.attempted_packets else 0.0


def loss_ratio(directions: Iterable[DirectionCounts]) -> float:
    """Return missing / tried, 0 to 1. Slots for which the generator was late are neither lost nor load."""
    every = tuple(directions)
    tried = sum(d.tried_packets for d in every)
    return sum(d.missing_packets for d in every) / tried if tried else 0.0


@dataclass(frozen=True, slots=True)
class LatencyRecord:
    """Latency of the probes of one trial, all directions: the histogram whole, nothing averaged away.

    ``histogram`` is the standard HDR V2 compressed encoding in base64 (values in ns, 1 ns to 10 s, 3 digits), as are
    the others; figures are derived from it by :mod:`planebench.analysis`. Probes that met what the host did are in
    ``host`` instead; jitter is of all.
    """

    probes_sent: int
    probes_received: int
    histogram: str
    overflow: int = 0
    probes_stamped: int = 0
    """Probes that went out with a time stamp. Stamped but not received: lost, or late by more than the trial."""
    clock: LatencyClock = "software"
    """The clock of ``histogram`` and ``ipdv``; bursts are always of the software clock."""
    ipdv: str = ""
    """Histogram of the difference in delay of successive probes of a stream, its size (RFC 3393); empty if unknown."""
    software: str = ""
    """Histogram of the same probes, those that met no gap of the tester, by the software clock; empty where that is the
    clock."""
    unstamped: dict[str, int] = field(default_factory=dict)
    """Received probes that are not in ``histogram``, by why the clock has no latency of them."""
    floor_ns: float | None = None
    """The least latency that this clock shows of the tester alone; None where it was not calibrated."""
    stamped_packets: int = 0
    """Received frames of a load whose frames all have a time stamp; 0 where only probes have."""
    burst_rises: str = ""
    """Histogram of the rises of the mean delay of all frames from one receive burst to the next (ic16), by the software
    clock; empty if unknown."""
    burst_falls: str = ""
    """Histogram of its falls: with ``burst_rises`` the signed differences."""
    least_ns: float | None = None
    """What a tester reports that has no ``histogram``, which is empty then: the least, mean and largest latency."""
    mean_ns: float | None = None
    most_ns: float | None = None
    host: str = ""
    """Histogram of the probes that were on their way while the tester did not poll, or while the host kept the switch
    from it; empty if there were none."""
    stalled: str = ""
    """Histogram of the probes that met a stall: the tester polled, and no frame of their stream came. All are in
    ``host`` or all in ``histogram``, by whose the stalls were."""
    stalled_ns: int = 0
    """The time of the stalls of the stream that had most."""


@dataclass(frozen=True, slots=True)
class TrafficSent:
    """The traffic that the generators of one direction sent, counted as their port accepted the frames.

    ``flows_sent``, ``dst_ips_sent``: so many different ones; None where the profile has none. ``dst_macs``: frames by
    destination address. ``pcap_skipped``: frames of the file that cannot be sent, by reason.
    """

    name: str
    packets: int
    bytes: int
    sizes: tuple[tuple[int, int], ...] = ()
    """(frame size in bytes, frames) of every size that was sent."""
    flows_sent: int | None = None
    dst_macs: tuple[int, ...] = ()
    dst_ips_sent: int | None = None
    entries: int | None = None
    """Of a synthetic FIB, those from which destinations are drawn: of each VNF its own; ``dst_ips_sent`` is None."""
    entries_touched: int | None = None
    """So many of them were drawn, counted; of the first 134 million frames where there are more."""
    pcap_frames: int | None = None
    """Frames of the file that can be sent."""
    pcap_loops: int | None = None
    pcap_enlarged: int = 0
    pcap_skipped: dict[str, int] = field(default_factory=dict)

    @property
    def mean_frame_bytes(self) -> float | None:
        """Return the mean frame size with FCS; None if nothing was sent."""
        return self.bytes / self.packets if self.packets else None


@dataclass(frozen=True, slots=True)
class ThreadEvidence:
    """The scheduling of one polling thread during the trial (from /proc schedstat and status)."""

    owner: Literal["switch", "tester", "vnf"]
    """``vnf``: of a VNF that is a process of its own."""
    thread: str
    cpu: int
    run_ns: int
    wait_ns: int
    involuntary_switches: int


@dataclass(frozen=True, slots=True)
class MemoryEvidence:
    """The NUMA nodes of the memory that a process has filled, programs and libraries apart (/proc/PID/numa_maps)."""

    owner: Literal["switch", "tester", "vnf"]
    name: str
    node: int | None
    """The node for all of it; None where there was none planned."""
    bytes_by_node: tuple[tuple[int, int], ...]

    @property
    def misplaced_share(self) -> float:
        """Return the share of the bytes that is on other nodes than planned."""
        total = sum(count for _, count in self.bytes_by_node)
        elsewhere = sum(count for node, count in self.bytes_by_node if self.node not in (node, None))
        return elsewhere / total if total else 0.0


@dataclass(frozen=True, slots=True)
class CoreDistance:
    """Median round trip of a cache line between two CPUs (docs/methodology.md, near and far)."""

    median_ns: float
    band: Literal["near", "far", "same"]
    additions_per_cycle: tuple[float, ...] = ()
    """Independent additions per core cycle of a loop on the CPU of the switch and on that of the tester.

    Empty if unknown. A lower value than at other times means that another hyperthread uses the core.
    """


@dataclass(frozen=True, slots=True)
class SwitchCycles:
    """The switch's own account of the trial, where it has one; None is "unknown", never zero.

    Keys of ``drops`` are ``PORT:REASON`` (``v0:tx_full``: the ring of port v0 did not take it) or a bare reason.
    """

    busy_cycles: int | None = None
    idle_cycles: int | None = None
    packets: int | None = None
    """Frames that it received."""
    drops: dict[str, int] = field(default_factory=dict)
    forwarded_packets: int | None = None
    """Frames that it sent: its ports took them."""
    bursts: int | None = None
    """Polls of a port that found frames."""
    counters: dict[str, int] = field(default_factory=dict)
    """Further counters by name: those of ``planebench.model.results`` that the switch has, and, as
    ``n0:rx_crc_errors``, extended statistics of its NICs that speak of lost frames."""

    def ratio(self, part: str, whole: str) -> float | None:
        """Return one of the further counters divided by another; None where one is not known or the other is 0."""
        if part not in self.counters or not self.counters.get(whole):
            return None
        return self.counters[part] / self.counters[whole]

    @property
    def batch_size(self) -> float | None:
        """Return mean number of frames that a poll found, of those that found any."""
        return self.packets / self.bursts if self.packets is not None and self.bursts else None

    @property
    def cycles_per_packet(self) -> float | None:
        """Return the busy TSC cycles per packet that the switch received."""
        if self.busy_cycles is None or not self.packets:
            return None
        return self.busy_cycles / self.packets

    @property
    def busy_share(self) -> float | None:
        """Return busy / (busy + idle) cycles of the switch core, 0 to 1."""
        if self.busy_cycles is None or self.idle_cycles is None or self.busy_cycles + self.idle_cycles <= 0:
            return None
        return self.busy_cycles / (self.busy_cycles + self.idle_cycles)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence for the verdict of a trial."""

    threads: tuple[ThreadEvidence, ...] = ()
    poll_gaps: int = 0
    poll_gap_sum_ns: int = 0
    poll_gap_max_ns: int = 0
    poll_gap_threshold_ns: int = 0
    stall_ns: int | None = None
    """For how long the tester polled and no frame came, in silences longer than a gap; None if unknown."""
    steal_ns: int = 0
    distance_before: CoreDistance | None = None
    distance_after: CoreDistance | None = None
    tester_busy_share: float | None = None
    foreign_packets: int = 0
    stale_packets: int = 0
    shared_cpu: bool = False
    """Switch and tester had to share a CPU: the numbers do not count."""
    interrupts: dict[str, int] | None = None
    """Interrupts of the CPUs that polled, by name; None if unknown."""
    nic_counters: dict[str, int] = field(default_factory=dict)
    """Extended statistics of the tester's NICs that speak of lost frames and grew, as ``n0:rx_crc_errors``; those of
    the switch are in ``SwitchCycles.counters``."""
    smis: int | None = None
    """System management interrupts, of older runs: no longer read."""
    memory: tuple[MemoryEvidence, ...] = ()
    """The memory of switch, tester and VNFs since this start; empty on a machine with one NUMA node."""

    @property
    def interrupt_count(self) -> int | None:
        """Return the number of interrupts of the CPUs that polled; None if unknown."""
        return None if self.interrupts is None else sum(self.interrupts.values())


@dataclass(frozen=True, slots=True)
class FibUpdates:
    """FIB messages of a VNF's control during a trial, in routes (a message has many).

    ``intended_per_s``: None where it sent as fast as it was acknowledged. ``refused``: acknowledged as not applied.
    """

    intended_per_s: float | None
    duration_ns: int
    sent: int
    acknowledged: int
    refused: int = 0

    @property
    def per_s(self) -> float:
        """Return the number of applied updates per second."""
        return self.acknowledged * 1e9 / self.duration_ns if self.duration_ns else 0.0


@dataclass(frozen=True, slots=True)
class ControlPackets:
    """Control packets to a VNF behind a switch that forwards in its place, during a trial.

    The switch passes them to the VNF, which answers each with a reply and an update of one route.
    """

    intended_per_s: float
    sent: int
    received: int
    """By the VNF."""
    replies: int
    """That came back to the wire of the sender."""
    histogram: str
    """Times from a control packet to its reply, as in LatencyRecord."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One load, one duration, one set of counts: a line of trials.jsonl."""

    index: int
    point: Point
    role: Role
    load: Load
    intended_duration_ns: int
    offered_duration_ns: int
    started_at: Moment
    directions: tuple[DirectionCounts, ...]
    verdict: Verdict
    evidence: Evidence = field(default_factory=Evidence)
    switch: SwitchCycles = field(default_factory=SwitchCycles)
    latency: LatencyRecord | None = None
    repetition: int = 0
    start: int = 0
    """How often the switch had been started again before this trial: R+ is taken over several starts."""
    search: str = ""
    """The search that asked for this trial (role ``search``): ``ndr``, ``b2b``, ... Others may use it too."""
    tester_drops: dict[str, int] = field(default_factory=dict)
    """Frames that tester and VNFs dropped, by ``task or port:reason``, as ``vnf0:tx_full``, ``n1:rx_missed``."""
    sent: tuple[TrafficSent, ...] = ()
    """The traffic sent by direction, in a trial with a traffic profile."""
    anatomy: tuple[Anatomy, ...] = ()
    """The latency breakdown by direction, in a latency trial with stamped probes."""
    updates: FibUpdates | None = None
    """The FIB updates of a VNF's control, if there were any."""
    control: ControlPackets | None = None
    """The control packets to a VNF, if there were any."""
    restart: Restart | None = None
    """The restart of a trial with the role ``outage``."""
    line_rate_pps: float | None = None
    """The rate of a direction that fills the slowest link of the NICs; None on wires without a speed, and where the
    user gave the highest rate."""

    @property
    def forwarded_packets(self) -> int:
        """Return all directions together."""
        return sum(d.forwarded_packets for d in self.directions)

    @property
    def by_tenth(self) -> tuple[int, ...]:
        """Return what came within each tenth of the sending, all directions; empty where it was not counted."""
        tenths = [d.forwarded_by_tenth for d in self.directions]
        return tuple(map(sum, zip(*tenths, strict=True))) if all(tenths) else ()

    @property
    def throughput_pps(self) -> float:
        """Return the aggregate forwarding rate.

        At maximum offered load, closed loop or line rate, it is that of the last nine tenths of the sending,
        where they were counted: in the first one the rings fill, and what they give back later was not forwarded in the
        time.
        """
        packets, duration_ns = self.forwarded_packets, self.offered_duration_ns
        if self.by_tenth and self.load.pps_per_direction in (None, self.line_rate_pps):
            packets, duration_ns = sum(self.by_tenth[1:]), duration_ns * (TENTHS - 1) // TENTHS
        return packets * 1e9 / duration_ns if duration_ns else 0.0

    @property
    def offered_pps(self) -> float:
        """Return the aggregate offered rate over the send duration."""
        total = sum(d.offered_packets for d in self.directions)
        return total * 1e9 / self.offered_duration_ns if self.offered_duration_ns else 0.0

    @property
    def loss_ratio(self) -> float:
        """Return the loss ratio of all directions together."""
        return loss_ratio(self.directions)

    @property
    def band(self) -> str | None:
        """Return the core-distance band this trial belongs to; None when unknown or when it changed."""
        before, after = self.evidence.distance_before, self.evidence.distance_after
        if before is None or after is None or before.band != after.band:
            return None
        return before.band
