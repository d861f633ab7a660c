# SPDX-License-Identifier: BSD-3-Clause
"""A sending through a planed, and what its ``stats.get`` reports afterwards, as records."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from planebench.analysis.ledger import sum_of
from planebench.host.process import stretched
from planebench.measure.latency import histogram_of
from planebench.model.errors import DiedError, StartError
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import TENTHS, DirectionCounts, Evidence, LatencyRecord, TrafficSent
from planebench.model.scenarios import QUEUES_MAX, Flow, queue_name, queue_stream
from planebench.model.traffic import TrafficProfile
from planebench.planed.client import Call, GeneratorLoad, Profile, get_statistics, is_sending, start_traffic
from planebench.planed.statistics import Generator, Monitor, Statistics, StreamStatistics, TaskStatistics

# Record of what generators sent of a traffic profile, and its check against the plan. Pure.

TOLERANCE = 0.01
"""The mix that was sent may differ from the one intended by this share."""
FRAMES_MIN = 10_000
"""With fewer frames of a mix, or fewer of each of what varies than FRAMES_EACH, chance differs by as much."""
FRAMES_EACH = 100
LOOPS_MIN = 100
"""So often a capture is sent before its last, partial round does not change the mean."""


def traffic_sent(name: str, generators: Sequence[Generator]) -> TrafficSent:
    """Return the sum over the queues of a sending end whose generators had a profile.

    Flows and addresses of several queues may be the same ones: the largest number of one of them is kept.
    """
    by_queue = []
    for generator in generators:
        if (report := generator.profile) is not None:
            pcap = report.pcap
            by_queue.append(
                TrafficSent(
                    name=name,
                    packets=generator.offered_packets,
                    bytes=report.bytes,
                    sizes=report.sizes,
                    flows_sent=report.flows_sent,
                    dst_macs=report.dst_macs,
                    dst_ips_sent=report.dst_ips_sent,
                    entries=report.entries,
                    entries_touched=report.entries_touched,
                    pcap_frames=None if pcap is None else pcap.frames,
                    pcap_loops=None if pcap is None else pcap.loops,
                    pcap_enlarged=0 if pcap is None else pcap.enlarged,
                    pcap_skipped={} if pcap is None else {why: count for why, count in pcap.skipped.items() if count},
                )
            )
    return sum_of(by_queue)


def not_as_intended(profile: TrafficProfile, sent: TrafficSent) -> Iterator[Reason]:
    """Yield a sentence for each way in which what was sent differs from the profile by more than TOLERANCE.

    Nothing is said where too few frames were sent to tell.
    """
    mean, intended, pcap = sent.mean_frame_bytes, profile.mean_frame_bytes, profile.pcap
    if pcap is not None:
        if sent.pcap_frames != pcap.frames:
            yield _differs(
                f"{sent.name}: the capture has {sent.pcap_frames} frames to send, and had {pcap.frames} before"
            )
        elif (
            mean is not None
            and (sent.pcap_loops or 0) >= LOOPS_MIN
            and abs(mean - pcap.mean_frame_bytes) > TOLERANCE * pcap.mean_frame_bytes
        ):
            yield _differs(
                f"{sent.name}: the mean frame sent had {mean:.1f} B, not {pcap.mean_frame_bytes:.1f} B as before"
            )
        return
    if profile.sizes and mean is not None and intended is not None and sent.packets >= FRAMES_MIN:
        weights: Counter[int] = Counter()
        for size, weight in profile.sizes:
            weights[size] += weight
        counts = dict(sent.sizes)
        off = max(abs(counts.get(size, 0) / sent.packets - w / weights.total()) for size, w in weights.items())
        if abs(mean - intended) > TOLERANCE * intended:
            yield _differs(f"{sent.name}: the mean frame sent had {mean:.1f} B, not {intended:.1f} B as in the profile")
        elif off > TOLERANCE or set(counts) - set(weights):
            yield _differs(f"{sent.name}: the mix of frame sizes that was sent is not that of the profile")
    wanted = len(profile.dst_macs) or profile.dst_mac_count
    if wanted and sent.packets >= FRAMES_EACH * wanted:
        even = sent.packets / wanted
        off = max((abs(count - even) / even for count in sent.dst_macs), default=1.0)
        if len(sent.dst_macs) != wanted or off > TOLERANCE:
            yield _differs(f"{sent.name}: frames were not spread evenly over {wanted} destination MACs")
    flows = profile.flows
    if flows is not None and flows.draw != "zipf" and sent.flows_sent is not None:
        expected = float(min(flows.count, sent.packets))
        if flows.draw != "round_robin":  # with replacement
            expected = flows.count * (1 - (1 - 1 / flows.count) ** sent.packets)
        if sent.packets >= FRAMES_MIN and abs(sent.flows_sent - expected) > TOLERANCE * expected:
            yield _differs(f"{sent.name}: {sent.flows_sent} flows were sent, not about {expected:.0f}")


def _differs(text: str) -> Reason:
    return Reason(ReasonCode.TRAFFIC_DIFFERS, text)


REMEMBERED_PACKETS = 1 << 23
"""The last numbers of a stream of which a monitor knows whether they came: ``SEQUENCE_WINDOW`` of planed."""

_ENDS = frozenset({"generator", "monitor"})
"""Kinds of task at the ends of a path: they drop nothing. All others are VNFs."""


@dataclass(frozen=True, slots=True)
class TesterCounts:
    """Counts of one trial as the tester reports them."""

    directions: tuple[DirectionCounts, ...]
    latency: LatencyRecord | None
    duration_ns: int
    cycles: int
    """TSC cycles of the sending time."""
    evidence: Evidence
    """What the tester tells of itself: its poll gaps, stalls, busy share, and frames that are not of this trial."""
    misdirected_packets: int
    """Intact frames of this trial that came out at a port where they do not belong."""
    tester_drops: dict[str, int]
    """Frames that VNFs (``v1:tx_full``: the ring of port v1 was full; ``vnf0:runt``) and the tester's own ports
    (``n1:rx_missed``) dropped. Only what is not zero; damaged and misplaced frames are not in it."""
    sent: tuple[TrafficSent, ...] = ()
    """The traffic sent, if a generator had a traffic profile."""
    elsewhere_packets: int = 0
    """Frames of sendings longer than a monitor remembers that came on several queues: of older ones it is not known."""


@dataclass(frozen=True, slots=True)
class Way:
    """What the tasks at both ends of a flow counted, on every queue that they are on."""

    sent: Sequence[Generator]
    monitors: Sequence[Monitor]
    came: Sequence[StreamStatistics]
    """The flow alone. The switch chooses the queue on which a frame leaves: a stream may arrive on several."""


def ends_of(stats: Statistics, flow: Flow) -> tuple[list[TaskStatistics], list[TaskStatistics]]:
    """Return the tasks that send and that receive a flow, on every queue."""
    queues = range(QUEUES_MAX)
    senders = {queue_name(f"gen-{flow.sender_port}", queue) for queue in queues}
    receivers = {queue_name(f"mon-{flow.receiver_port}", queue) for queue in queues}
    senders_of = [task for task in stats.tasks if task.name in senders]
    return senders_of, [task for task in stats.tasks if task.name in receivers]


def way_of(stats: Statistics, flow: Flow) -> Way:
    """Return what the tester says of a flow: its senders, its receivers and its streams there."""
    senders, receivers = ends_of(stats, flow)
    streams = {queue_stream(flow.stream, queue) for queue in range(QUEUES_MAX)}
    sent = [task.generator for task in senders if task.generator is not None]
    monitors = [task.monitor for task in receivers if task.monitor is not None]
    return Way(sent, monitors, [seen for it in monitors for seen in it.streams if seen.stream in streams])


def tester_counts(stats: Statistics, flows: Sequence[Flow], others: Sequence[Flow] = ()) -> TesterCounts:
    """Return the counts of a trial from ``stats.get`` of the tester. ``flows`` are the directions that sent, beside
    ``others`` that are not counted."""
    ways, workers = [way_of(stats, flow) for flow in flows], stats.workers
    duration_ns = max((generator.duration_ns for way in ways for generator in way.sent), default=0)
    cycles = duration_ns * stats.tsc_hz // 1_000_000_000
    expected: set[tuple[str, int]] = set()
    for flow in (*flows, *others):
        streams = [queue_stream(flow.stream, queue) for queue in range(QUEUES_MAX)]
        for queue in range(QUEUES_MAX):
            name = queue_name(f"mon-{flow.receiver_port}", queue)
            expected.update((name, stream) for stream in streams)
    monitors = [(task.name, task.monitor) for task in stats.tasks if task.monitor is not None]
    worst = max(workers, key=lambda worker: worker.gap_sum_ns, default=None)
    # While the switch has no CPU, all streams stand: the least stall is that of all.
    stalls = [stream.stall_sum_ns for way in ways for stream in way.came]
    known = [stall for stall in stalls if stall is not None]
    busy_cycles = max((worker.busy_cycles for worker in workers), default=0)
    evidence = Evidence(
        poll_gaps=0 if worst is None else worst.gaps,
        poll_gap_sum_ns=0 if worst is None else worst.gap_sum_ns,
        poll_gap_max_ns=0 if worst is None else worst.gap_max_ns,
        poll_gap_threshold_ns=max((worker.gap_threshold_ns for worker in workers), default=0),
        stall_ns=min(known) if known and known == stalls and all(way.came for way in ways) else None,
        tester_busy_share=min(busy_cycles / cycles, 1.0) if duration_ns else None,
        foreign_packets=sum(monitor.foreign_packets for _, monitor in monitors),
        stale_packets=sum(monitor.stale_packets for _, monitor in monitors),
    )
    return TesterCounts(
        directions=tuple(map(_direction, flows, ways)),
        latency=_latency(ways),
        duration_ns=duration_ns,
        cycles=cycles,
        evidence=evidence,
        misdirected_packets=sum(
            seen.forwarded_packets
            for name, monitor in monitors
            for seen in monitor.streams
            if (name, seen.stream) not in expected
        ),
        tester_drops=dropped(stats),
        sent=tuple(
            traffic_sent(flow.name, way.sent)
            for flow, way in zip(flows, ways, strict=True)
            if any(generator.profile for generator in way.sent)
        ),
        elsewhere_packets=sum(
            sum(seen.elsewhere_packets for seen in way.came)
            for way in ways
            if any(generator.offered_packets > REMEMBERED_PACKETS for generator in way.sent)
        ),
    )


def received_total(stats: Statistics) -> int:
    """Return the number of all frames received by the monitors: it grows as long as late frames arrive."""
    return sum(task.monitor.received_packets for task in stats.tasks if task.monitor is not None)


def arrived(stats: Statistics, flow: Flow) -> bool:
    """Return whether frames of every queue of the sending port arrived, on whatever queues of the receiving port."""
    way = way_of(stats, flow)
    if len(way.monitors) == 1:
        return bool(way.monitors[0].received_packets)
    came = {seen.stream for seen in way.came if seen.forwarded_packets}
    return bool(came) and len(came) == len(way.monitors)


def untried(stats: Statistics, flows: Sequence[Flow]) -> list[str]:
    """Return the names of the flows in which the tester did not try to send at all: that tells nothing of a switch."""
    return [flow.name for flow in flows if not any(it.attempted_packets for it in way_of(stats, flow).sent)]


def lost(stats: Statistics, flow: Flow) -> int:
    """Return the number of frames of a flow that were sent and did not arrive."""
    return _direction(flow, way_of(stats, flow)).lost_packets


def vnf_drops(stats: Statistics) -> dict[str, dict[str, int]]:
    """Return what each network function dropped by policy, by reason. Full rings and zeros are left out."""
    found = {
        task.name: {reason: count for reason, count in _policy(task).items() if count}
        for task in stats.tasks
        if task.kind not in _ENDS
    }
    return {name: reasons for name, reasons in found.items() if reasons}


def _direction(flow: Flow, way: Way) -> DirectionCounts:
    sent, came = way.sent, way.came
    elsewhere = sum(it.elsewhere_packets for it in came)
    intended = [it.offered_packets if it.intended_packets is None else it.intended_packets for it in sent]
    offered_bytes, forwarded_bytes = [it.offered_bytes for it in sent], [it.forwarded_bytes for it in came]
    tenths = [it.forwarded_by_tenth for it in came]
    return DirectionCounts(
        name=flow.name,
        intended_packets=sum(intended),
        offered_packets=sum(it.offered_packets for it in sent),
        forwarded_packets=sum(it.forwarded_packets for it in came) - elsewhere,
        duplicate_packets=sum(it.duplicate_packets for it in came) + elsewhere,
        reordered_packets=sum(it.reordered_packets for it in came),
        corrupt_packets=sum(it.corrupt_packets for it in came),
        unchecked_packets=sum(it.unchecked_packets for it in came),
        unsent_late_packets=sum(it.unsent_late_packets for it in sent),
        unsent_ring_full_packets=sum(it.unsent_ring_full_packets for it in sent),
        attempted_packets=sum(it.attempted_packets for it in sent),
        refused_packets=sum(it.refused_packets for it in sent),
        monitor_bursts=sum(it.bursts for it in way.monitors),
        monitor_full_bursts=sum(it.full_bursts for it in way.monitors),
        # None if one of them does not count bytes, or counts some frames that others count, too.
        offered_bytes=None if None in offered_bytes else sum(filter(None, offered_bytes)),
        forwarded_bytes=None if elsewhere or None in forwarded_bytes else sum(filter(None, forwarded_bytes)),
        # Empty where one of the queues did not count the whole sending.
        forwarded_by_tenth=(
            tuple(map(sum, zip(*tenths, strict=True)))
            if all(len(each) == TENTHS for each in tenths) and not elsewhere
            else ()
        ),
    )


def _latency(ways: Sequence[Way]) -> LatencyRecord | None:
    """Return the probes of all directions, each kind of histogram added up; None if no probe was sent."""
    generators = [generator for way in ways for generator in way.sent]
    sent = sum(generator.probes_sent for generator in generators)
    if sent == 0:
        return None
    streams = [stream for way in ways for stream in way.came]
    stamped = sum(stream.stamped_packets for stream in streams)
    gaps = [stream.latency_gap for stream in streams if stream.latency_gap is not None]
    stalls = [stream.latency_stall for stream in streams if stream.latency_stall is not None]
    shown = [stream.latency for stream in streams] + stalls
    return LatencyRecord(
        probes_sent=sent,
        probes_received=sum(stream.probes_received for stream in streams),
        histogram=histogram_of(shown),
        overflow=sum(histogram.overflow for histogram in (*shown, *gaps) if histogram is not None),
        probes_stamped=sum(generator.probes_stamped for generator in generators),
        clock="software",
        ipdv=histogram_of(stream.ipdv for stream in streams),
        stamped_packets=stamped,
        burst_rises=histogram_of(stream.burst_rises for stream in streams) if stamped else "",
        burst_falls=histogram_of(stream.burst_falls for stream in streams) if stamped else "",
        host=histogram_of(gaps) if gaps else "",
        stalled=histogram_of(stalls) if stalls else "",
        stalled_ns=max((stream.stall_sum_ns or 0 for stream in streams), default=0),
    )


def dropped(stats: Statistics) -> dict[str, int]:
    """Return what ports and network functions of a planed dropped, as in :attr:`TesterCounts.tester_drops`."""
    drops: Counter[str] = Counter()
    for port in stats.ports:
        drops.update({f"{port.name}:{reason}": count for reason, count in port.drops.items()})
    for task in stats.tasks:
        if task.kind in _ENDS:
            continue
        for name, reasons in (*task.drops_by_port.items(), (task.name, _policy(task))):  # full rings by port
            drops.update({f"{name}:{why}": count for why, count in reasons.items()})
    return {key: count for key, count in drops.items() if count}


def _policy(task: TaskStatistics) -> dict[str, int]:
    """Return what a network function dropped by policy, by reason; a firewall's drops by each rule: ``rule 2 web``.

    planed reports the first 64 rules; what the others dropped stays with the reason ``rule``.
    """
    reasons = {reason: count for reason, count in task.drops.items() if reason != "tx_full"}
    rules: dict[str, int] = {}
    for it in task.firewall.rules:
        if it.action == "drop":  # its place in the list and its name, if it has one; a colon separates the VNF
            rules[f"rule {it.rule} {it.name.replace(':', '.')}".rstrip()] = it.packets
    others = reasons.get("rule", 0) - sum(rules.values())
    return {**reasons, **rules, "rule": others} if rules and others >= 0 else reasons


# Sending through a planed: start, wait, let late frames arrive, read every counter once.

STRAGGLER_DEADLINE_S = 1.0
STRAGGLER_STEP_S = 0.005
STRAGGLER_STEPS = 8
MAX_STILL_STEPS = 8
"""How long late frames are waited for while a poller that may hold them is not given a CPU."""
SLICE_S = 0.008
"""Twice what the kernel gives a thread on a busy core before the next one has its turn (CFS: 3 to 4 ms)."""
STILL_SENDING_S = 60.0
START_DELAY_S = 0.002
"""planed starts sending a moment after it is told to; nothing of ours may run on its core before the end."""
LOOK_S = 1.0
NONCE_MAX = 2**63 - 1
READY_FRAME_BYTES = 64
READY_RATE_PPS = 20_000
READY_DURATION_S = 0.01


@dataclass(frozen=True, slots=True)
class Sending:
    """Frames to send in each of ``flows`` for ``duration_s``; ``pps`` None is the maximum offered load.

    ``profile`` as planed takes it (traffic.document); sizes of its own replace the frame size. With ``stamps`` every
    task of the path notes when it had each probe; with ``clocks`` only its two ends do, by the clocks
    of their ports too. With ``stamp_all`` every frame has a time stamp, not the probes alone. ``sampled``, without any
    of these: monitors look into one burst in 16.
    """

    flows: Sequence[Flow]
    frame_size_bytes: int
    duration_s: float
    pps: float | None
    probe_rate_pps: float = 0
    profile: Profile | None = None
    stamps: bool = False
    clocks: bool = False
    stamp_all: bool = False
    more: tuple[GeneratorLoad, ...] = ()
    """Loads of further generators."""
    sampled: bool = False


class Sender:
    """Sends through one planed, or several that answer as one, and numbers its sendings.

    ``check`` raises if a process has died. ``ran`` says whether all pollers had a CPU since it was last asked, without
    which silence says nothing of late frames. ``epoch`` is the number of the last sending, 1 to 65535 in a cycle; 0
    before the first. ``nonce`` is the secret in all its frames: a frame without it is foreign, whoever made it.
    """

    def __init__(
        self,
        call: Call,
        *,
        queues: int = 1,
        check: Callable[[], None] = lambda: None,
        ran: Callable[[], bool] = lambda: True,
    ) -> None:
        self.call, self.queues, self.epoch = call, queues, 0
        self.nonce = 1 + secrets.randbelow(NONCE_MAX)
        self._check, self._ran = check, ran

    @property
    def next_epoch(self) -> int:
        """Return the number that marks the frames of the next sending."""
        return self.epoch % 0xFFFF + 1

    def send(
        self,
        sending: Sending,
        *,
        pollers_on_core: int = 1,
        watch: Callable[[], None] | None = None,
        counted: bool = True,
    ) -> Statistics:
        """Clear the counters, send, wait for late frames, and return ``stats.get``.

        Without ``counted``, for a warm-up, late frames have the shortest wait. ``watch`` is called just before and
        just after the sending. ``pollers_on_core`` as in :meth:`end`.
        """
        if watch is not None:
            watch()
        self.start(sending)
        deadline = time.monotonic() + sending.duration_s + START_DELAY_S
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(left if left < 1.5 * LOOK_S else LOOK_S)
            self._check()  # in a long sending every second
        if watch is not None:
            watch()
        return self.end(pollers_on_core, counted=counted)

    def start(self, sending: Sending) -> None:
        """Clear the counters and begin to send: the rate of a flow is spread evenly over the queues of its port."""
        self.epoch = self.next_epoch
        profile = sending.profile or {}
        pcap = profile.get("pcap")
        loads = [
            GeneratorLoad(
                task=queue_name(f"gen-{flow.sender_port}", queue),
                rate_pps=None if sending.pps is None else sending.pps / self.queues,
                frame_size_bytes=None if pcap or "sizes" in profile else sending.frame_size_bytes,
                probe_rate_pps=sending.probe_rate_pps / self.queues,
                profile=sending.profile,
                recorded=isinstance(pcap, dict) and pcap.get("timing") == "recorded",
                stamp_all=sending.stamp_all,
            )
            for flow in sending.flows
            for queue in range(self.queues)
        ]
        start_traffic(
            self.call,
            self.epoch,
            sending.duration_s,
            [*loads, *sending.more],
            stamps=sending.stamps,
            clocks=sending.clocks,
            nonce=self.nonce,
            sampled=sending.sampled,
        )

    def end(self, pollers_on_core: int = 1, *, counted: bool = True) -> Statistics:
        """Return the counters once nothing is sent and, if they are ``counted``, no late frame arrives any more.

        ``pollers_on_core``: how many pollers share a core on the way. A frame waits for the slices of all of them.
        """
        deadline = time.monotonic() + stretched(STILL_SENDING_S)
        while is_sending(self.call):
            if time.monotonic() > deadline:  # it says so itself, and may be a guest
                raise DiedError(f"a tester still sends {STILL_SENDING_S:g} s after the end of the trial")
            time.sleep(0.001)
        step_s = STRAGGLER_STEP_S if pollers_on_core == 1 else pollers_on_core * SLICE_S
        deadline = time.monotonic() + max(STRAGGLER_DEADLINE_S, STRAGGLER_STEPS * step_s)
        time.sleep(2 * step_s)
        stats = get_statistics(self.call)
        self._ran()
        still = 0
        while counted and time.monotonic() < deadline and still < MAX_STILL_STEPS:
            time.sleep(step_s)
            later = get_statistics(self.call)
            if received_total(later) != received_total(stats):
                still = 0
            elif self._ran():
                still = MAX_STILL_STEPS
            else:
                still += 1
            stats = later
        return stats

    def wait_until_forwarding(self, flows: Sequence[Flow], within_s: float) -> None:
        """Wait until a few frames of each flow arrive. Raises StartError after ``within_s`` seconds, stretched."""
        within_s = stretched(within_s)
        deadline, missing = time.monotonic() + within_s, list(flows)
        while True:
            late = time.monotonic() > deadline  # also after the harness was stopped a last try is made
            self._check()
            tried = {
                flow: self.send(Sending((flow,), READY_FRAME_BYTES, READY_DURATION_S, READY_RATE_PPS))
                for flow in missing
            }
            missing = [flow for flow, stats in tried.items() if not arrived(stats, flow)]
            if not missing:
                return
            if late:
                names = ", ".join(flow.name for flow in missing)
                raise StartError(f"no frame came through {names} within {within_s:g} s")
