# SPDX-License-Identifier: BSD-3-Clause
"""A sending through a planed, and what its ``stats.get`` reports afterwards, as records."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from planebench.host.process import stretched
from planebench.measure.latency import PROBES, histogram_of
from planebench.measure.updates import ControlTraffic, control_packets, fib_updates
from planebench.model.errors import StartError
from planebench.model.reasons import Reason, ReasonCode
from planebench.model.records import TENTHS, ControlPackets, DirectionCounts, FibUpdates, LatencyRecord, TrafficSent
from planebench.model.scenarios import QUEUES_MAX, Flow, queue_name, queue_stream
from planebench.model.traffic import TrafficProfile
from planebench.planed.client import Call, GeneratorLoad, Profile, get_statistics, is_sending, start_traffic
from planebench.planed.statistics import (
    PORT_DROPS,
    Firewall,
    Generator,
    Monitor,
    Statistics,
    StreamStatistics,
    TaskStatistics,
)
from planebench.testbed.tester_config import SOURCE

# Record of what generators sent of a traffic profile, and its check against the plan. Pure.

TOLERANCE = 0.01
"""The mix that was sent may differ from the one intended by this share."""
FRAMES_MIN = 10_000
"""With fewer frames of a mix, or fewer of each of what varies than FRAMES_EACH, chance differs by as much."""
FRAMES_EACH = 100
LOOPS_MIN = 100
"""So often a capture is sent before its last, partial round does not change the mean."""


def traffic_sent(name: str, generators: Sequence[Generator]) -> TrafficSent | None:
    """Return the sum over the queues of a sending end; None if no generator had a profile.

    Flows and addresses of several queues may be the same ones: the largest number of one of them is kept.
    """
    reports = [report for generator in generators if (report := generator.get("profile"))]
    if not reports:
        return None
    sizes: Counter[int] = Counter()
    for report in reports:
        sizes.update(dict(report.get("sizes", ())))
    macs = [report.get("dst_macs") or () for report in reports]
    pcaps = [pcap for report in reports if (pcap := report.get("pcap"))]
    skipped = (pcaps[0].get("skipped") or {}) if pcaps else {}
    return TrafficSent(
        name=name,
        packets=sum(generator["offered_packets"] for generator in generators),
        bytes=sum(report.get("bytes", 0) for report in reports),
        sizes=tuple(sorted(sizes.items())),
        flows_sent=_most(report.get("flows_sent") for report in reports),
        dst_macs=tuple(map(sum, zip_longest(*macs, fillvalue=0))),
        dst_ips_sent=_most(report.get("dst_ips_sent") for report in reports),
        pcap_frames=_most(pcap.get("frames") for pcap in pcaps),
        pcap_loops=_most(pcap.get("loops") for pcap in pcaps),
        pcap_enlarged=_most(pcap.get("enlarged") for pcap in pcaps) or 0,
        pcap_skipped={reason: count for reason, count in skipped.items() if count},
    )


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


def _most(numbers: Iterable[int | None]) -> int | None:
    return max((number for number in numbers if number is not None), default=None)


_NO_RULES: Firewall = {"rules": []}
_ENDS = frozenset({"generator", "monitor", SOURCE})
"""Kinds of task at the ends of a path: they drop nothing. All others are VNFs."""


@dataclass(frozen=True, slots=True)
class TesterCounts:
    """Counts of one trial as the tester reports them."""

    directions: tuple[DirectionCounts, ...]
    latency: LatencyRecord | None
    duration_ns: int
    poll_gaps: int
    """Gaps are those of the worker that lost most time: one such worker is enough to disturb a trial."""
    poll_gap_sum_ns: int
    poll_gap_max_ns: int
    poll_gap_threshold_ns: int
    busy_cycles: int
    foreign_packets: int
    stale_packets: int
    misdirected_packets: int
    """Intact frames of this trial that came out at a port where they do not belong."""
    tester_drops: dict[str, int]
    """Frames that VNFs (``v1:tx_full``: the ring of port v1 was full; ``vnf0:runt``) and the tester's own ports
    (``n1:rx_missed``) dropped. Only what is not zero; damaged and misplaced frames are not in it."""
    tsc_hz: int
    sent: tuple[TrafficSent, ...] = ()
    """The traffic sent, if a generator had a traffic profile."""
    updates: FibUpdates | None = None
    """The updates sent by the control of a VNF; None without one."""
    control: ControlPackets | None = None
    """The control packets to a VNF; None without any."""
    stall_ns: int | None = None
    """For how long the tester polled and no frame came, of the stream that stood least; None if one was not seen."""

    @property
    def cycles(self) -> int:
        """Return the TSC cycles of the sending time."""
        return self.duration_ns * self.tsc_hz // 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Way:
    """What the tasks at both ends of a flow counted, on every queue that they are on."""

    sent: Sequence[Generator]
    monitors: Sequence[Monitor]
    came: Sequence[StreamStatistics]
    """The flow alone. The switch chooses the queue on which a frame leaves: a stream may arrive on several."""


def _ways(stats: Statistics, flows: Sequence[Flow]) -> list[_Way]:
    tasks, found = {task["name"]: task for task in stats["tasks"]}, []
    for flow in flows:
        sender, receiver = f"gen-{flow.sender_port}", f"mon-{flow.receiver_port}"
        sent, monitors, streams = [tasks[sender]["generator"]], [tasks[receiver]["monitor"]], {flow.stream}
        for queue in range(1, QUEUES_MAX):
            streams.add(queue_stream(flow.stream, queue))
            if (task := tasks.get(queue_name(sender, queue))) is not None:
                sent.append(task["generator"])
            if (task := tasks.get(queue_name(receiver, queue))) is not None:
                monitors.append(task["monitor"])
        came = [seen for monitor in monitors for seen in monitor["streams"] if seen["stream"] in streams]
        found.append(_Way(sent, monitors, came))
    return found


def tester_counts(stats: Statistics, flows: Sequence[Flow], control: ControlTraffic | None = None) -> TesterCounts:
    """Return the counts of a trial from ``stats.get`` of the tester. ``flows`` are the directions that sent, beside
    ``control``."""
    ways, workers = _ways(stats, flows), stats["workers"]
    foreign = stale = misdirected = 0
    expected: set[tuple[str, int]] = set()
    for flow in flows if control is None else (*flows, control.flow):
        streams = [queue_stream(flow.stream, queue) for queue in range(QUEUES_MAX)]
        for queue in range(QUEUES_MAX):
            name = queue_name(f"mon-{flow.receiver_port}", queue)
            expected.update((name, stream) for stream in streams)
    for task in stats["tasks"]:
        if "monitor" in task:
            foreign += task["monitor"]["foreign_packets"]
            stale += task["monitor"]["stale_packets"]
            for seen in task["monitor"]["streams"]:
                if (task["name"], seen["stream"]) not in expected:
                    misdirected += seen["forwarded_packets"]
    worst = max(workers, key=lambda worker: worker["gap_sum_ns"], default=None)
    # While the switch has no CPU, all streams stand: the least stall is that of all.
    stalls = [stream.get("stall_sum_ns") for way in ways for stream in way.came]
    known = [stall for stall in stalls if stall is not None]
    stall_ns = min(known) if known and known == stalls and all(way.came for way in ways) else None
    return TesterCounts(
        directions=tuple(map(_direction, flows, ways)),
        latency=_latency(ways),
        duration_ns=max((generator["duration_ns"] for way in ways for generator in way.sent), default=0),
        poll_gaps=0 if worst is None else worst["gaps"],
        poll_gap_sum_ns=0 if worst is None else worst["gap_sum_ns"],
        poll_gap_max_ns=0 if worst is None else worst["gap_max_ns"],
        poll_gap_threshold_ns=max((worker["gap_threshold_ns"] for worker in workers), default=0),
        busy_cycles=max((worker["busy_cycles"] for worker in workers), default=0),
        foreign_packets=foreign,
        stale_packets=stale,
        misdirected_packets=misdirected,
        tester_drops=dropped(stats),
        tsc_hz=stats["tsc_hz"],
        sent=tuple(filter(None, (traffic_sent(flow.name, way.sent) for flow, way in zip(flows, ways, strict=True)))),
        updates=fib_updates(stats, control),
        control=None if control is None else control_packets(stats, control),
        stall_ns=stall_ns,
    )


def received_total(stats: Statistics) -> int:
    """Return the number of all frames received by the monitors: it grows as long as late frames arrive."""
    return sum(task["monitor"]["received_packets"] for task in stats["tasks"] if "monitor" in task)


def arrived(stats: Statistics, flow: Flow) -> bool:
    """Return whether frames of every queue of the sending port arrived, on whatever queues of the receiving port."""
    [way] = _ways(stats, (flow,))
    if len(way.monitors) == 1:
        return bool(way.monitors[0]["received_packets"])
    came = {seen["stream"] for seen in way.came if seen["forwarded_packets"]}
    return len(came) == len(way.monitors)


def untried(stats: Statistics, flows: Sequence[Flow]) -> list[str]:
    """Return the names of the flows in which the tester did not try to send at all: that tells nothing of a switch."""
    ways = zip(flows, _ways(stats, flows), strict=True)
    return [flow.name for flow, way in ways if not _totals(way.sent)["attempted_packets"]]


def lost(stats: Statistics, flow: Flow) -> int:
    """Return the number of frames of a flow that were sent and did not arrive."""
    return _direction(flow, *_ways(stats, (flow,))).lost_packets


def vnf_drops(stats: Statistics) -> dict[str, dict[str, int]]:
    """Return what each network function dropped by policy, by reason. Full rings and zeros are left out."""
    found = {
        task["name"]: {reason: count for reason, count in _policy(task).items() if count}
        for task in stats["tasks"]
        if task["kind"] not in _ENDS
    }
    return {name: reasons for name, reasons in found.items() if reasons}


def _totals(parts: Iterable[Mapping[str, object]]) -> Counter[str]:
    """Return the sum of each whole number that parts have, by its name."""
    found: Counter[str] = Counter()
    for part in parts:
        for name, value in part.items():
            if isinstance(value, int):
                found[name] += value
    return found


def _direction(flow: Flow, way: _Way) -> DirectionCounts:
    sent, came, monitors = _totals(way.sent), _totals(way.came), _totals(way.monitors)
    paced = all(generator["intended_packets"] is not None for generator in way.sent)
    return DirectionCounts(
        name=flow.name,
        intended_packets=sent["intended_packets"] if paced else sent["offered_packets"],
        offered_packets=sent["offered_packets"],
        forwarded_packets=came["forwarded_packets"],
        duplicate_packets=came["duplicate_packets"],
        reordered_packets=came["reordered_packets"],
        corrupt_packets=came["corrupt_packets"],
        unsent_late_packets=sent["unsent_late_packets"],
        unsent_ring_full_packets=sent["unsent_ring_full_packets"],
        attempted_packets=sent["attempted_packets"],
        refused_packets=sent["refused_packets"],
        monitor_bursts=monitors["bursts"],
        monitor_full_bursts=monitors["full_bursts"],
        # None if one of them does not count bytes.
        offered_bytes=sent["offered_bytes"] if all("offered_bytes" in it for it in way.sent) else None,
        forwarded_bytes=came["forwarded_bytes"] if all("forwarded_bytes" in it for it in way.came) else None,
        forwarded_by_tenth=_by_tenth(way.came),
    )


def _by_tenth(streams: Sequence[StreamStatistics]) -> tuple[int, ...]:
    """Return the sum over the queues; empty where one of them did not count the whole sending."""
    tenths = [stream.get("forwarded_by_tenth", ()) for stream in streams]
    return tuple(map(sum, zip(*tenths, strict=True))) if all(len(each) == TENTHS for each in tenths) else ()


def _latency(ways: Sequence[_Way]) -> LatencyRecord | None:
    """Return the probes of all directions, each kind of histogram added up; None if no probe was sent."""
    generators = [generator for way in ways for generator in way.sent]
    sent = sum(generator["probes_sent"] for generator in generators)
    if sent == 0:
        return None
    streams = [stream for way in ways for stream in way.came]
    told = {key for stream in streams for key in stream}
    totals = _totals(streams)
    stamped = totals["stamped_packets"]
    return LatencyRecord(
        probes_sent=sent,
        probes_received=totals["probes_received"],
        histogram=histogram_of(streams, "latency", "latency_stall"),
        overflow=sum(stream[kind]["overflow"] for stream in streams for kind in PROBES if kind in stream),
        probes_stamped=sum(generator["probes_stamped"] for generator in generators),
        clock="software",
        ipdv=histogram_of(streams, "ipdv"),
        stamped_packets=stamped,
        burst_rises=histogram_of(streams, "burst_rises") if stamped else "",
        burst_falls=histogram_of(streams, "burst_falls") if stamped else "",
        host=histogram_of(streams, "latency_gap") if "latency_gap" in told else "",
        stalled=histogram_of(streams, "latency_stall") if "latency_stall" in told else "",
        stalled_ns=max((stream.get("stall_sum_ns", 0) for stream in streams), default=0),
    )


def dropped(stats: Statistics) -> dict[str, int]:
    """Return what ports and network functions of a planed dropped, as in :attr:`TesterCounts.tester_drops`."""
    drops: Counter[str] = Counter()
    for port in stats.get("ports", ()):
        for reason in PORT_DROPS:
            drops[f"{port['name']}:{reason}"] = port[reason]
    for task in stats["tasks"]:
        if task["kind"] in _ENDS:
            continue
        for name, reasons in (*task["drops_by_port"].items(), (task["name"], _policy(task))):  # full rings by port
            for why, count in reasons.items():
                drops[f"{name}:{why}"] += count
    return {key: count for key, count in drops.items() if count}


def _policy(task: TaskStatistics) -> dict[str, int]:
    """Return what a network function dropped by policy, by reason; a firewall's drops by each rule: ``rule 2 web``.

    planed reports the first 64 rules; what the others dropped stays with the reason ``rule``.
    """
    reasons = {reason: count for reason, count in task["drops"].items() if reason != "tx_full"}
    rules: dict[str, int] = {}
    for it in task.get("firewall", _NO_RULES)["rules"]:
        if it["action"] == "drop":  # its place in the list and its name, if it has one; a colon separates the VNF
            rules[f"rule {it['rule']} {it.get('name', '').replace(':', '.')}".rstrip()] = it["packets"]
    others = reasons.get("rule", 0) - sum(rules.values())
    return {**reasons, **rules, "rule": others} if rules and others >= 0 else reasons


# Sending through a planed: start, wait, let late frames arrive, read every counter once.

STRAGGLER_DEADLINE_S = 1.0
STRAGGLER_STEP_S = 0.005
STRAGGLER_STEPS = 8
SLICE_S = 0.008
"""Twice what the kernel gives a thread on a busy core before the next one has its turn (CFS: 3 to 4 ms)."""
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
    of their ports too. With ``stamp_all`` every frame has a time stamp, not the probes alone.
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


class Sender:
    """Sends through one planed, or several that answer as one, and numbers its sendings.

    ``check`` raises if a process has died. ``epoch`` is the number of the last sending, 1 to 65535 in a cycle; 0 marks
    no sending. ``nonce`` is the secret in all its frames: a frame without it is foreign, whoever made it.
    """

    def __init__(
        self, call: Call, *, queues: int = 1, epoch: int = 0, check: Callable[[], None] = lambda: None
    ) -> None:
        self.call, self.queues, self.epoch = call, queues, epoch
        self.nonce = 1 + secrets.randbelow(NONCE_MAX)
        self._check = check

    @property
    def next_epoch(self) -> int:
        """Return the number that marks the frames of the next sending."""
        return self.epoch % 0xFFFF + 1

    def send(
        self, sending: Sending, *, pollers_on_core: int = 1, watch: Callable[[], None] = lambda: None
    ) -> Statistics:
        """Clear the counters, send, wait for late frames, and return ``stats.get``.

        ``watch`` is called just before and just after the sending. ``pollers_on_core`` as in :meth:`end`.
        """
        watch()
        self.start(sending)
        deadline = time.monotonic() + sending.duration_s + START_DELAY_S
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(left if left < 1.5 * LOOK_S else LOOK_S)
            self._check()  # in a long sending every second
        watch()
        return self.end(pollers_on_core)

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
        )

    def end(self, pollers_on_core: int = 1) -> Statistics:
        """Return the counters once nothing is sent and no late frame arrives any more.

        ``pollers_on_core``: how many pollers share a core on the way. A frame waits for the slices of all of them.
        """
        while is_sending(self.call):
            time.sleep(0.001)
        step_s = STRAGGLER_STEP_S if pollers_on_core == 1 else pollers_on_core * SLICE_S
        deadline = time.monotonic() + max(STRAGGLER_DEADLINE_S, STRAGGLER_STEPS * step_s)
        time.sleep(2 * step_s)
        stats = get_statistics(self.call)
        while time.monotonic() < deadline:
            time.sleep(step_s)
            later = get_statistics(self.call)
            if received_total(later) == received_total(stats):
                return later
            stats = later
        return stats

    def wait_until_forwarding(self, flows: Sequence[Flow], within_s: float) -> None:
        """Wait until a few frames of each flow arrive. Raises StartError after ``within_s`` seconds, stretched."""
        within_s = stretched(within_s)
        deadline, missing = time.monotonic() + within_s, list(flows)
        while True:
            self._check()
            tried = {
                flow: self.send(Sending((flow,), READY_FRAME_BYTES, READY_DURATION_S, READY_RATE_PPS))
                for flow in missing
            }
            missing = [flow for flow, stats in tried.items() if not arrived(stats, flow)]
            if not missing:
                return
            if time.monotonic() > deadline:
                names = ", ".join(flow.name for flow in missing)
                raise StartError(f"no frame came through {names} within {within_s:g} s")
