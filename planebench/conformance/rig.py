# SPDX-License-Identifier: BSD-3-Clause
"""The rig of a check: a switch and the tester, up on one scenario, and the state of the machine before.

Counts are exact: so few frames at a time that no ring can overflow, and time enough for each of them to arrive.

Raw frames go through every cross-connect at once: the tester sends those of a file into each port of the switch, and
writes to a file what comes out of each. So each port is told apart, and every byte is compared. In place of
generators, monitors and VNFs the tester has a patch between each of its ports and a pair of pcap files (DPDK's
net_pcap). A VNF does not see these frames; its port does.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from planebench.conformance.frames import PLAIN, RawFrame, difference, good_frames, read_pcap, write_pcap
from planebench.conformance.leftovers import Leftovers
from planebench.conformance.model import Case, Failure
from planebench.host.process import Supervisor, stretched
from planebench.measure.counts import Sending, TesterCounts, tester_counts, untried
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.model.cpus import Cpus
from planebench.model.errors import DiedError
from planebench.model.scenarios import Flow, build, flows
from planebench.model.topology import Topology
from planebench.model.traffic import PLAIN as PLAIN_TRAFFIC
from planebench.model.traffic import TrafficProfile
from planebench.model.wire import wire_name
from planebench.planed.client import Call, get_statistics
from planebench.planed.document import Document, Port, Task, Worker
from planebench.planed.statistics import Statistics
from planebench.switches.adapter import WORKERS_OPTION, Adapter, Situation, refusal_of
from planebench.testbed.placement import Placement, place
from planebench.testbed.wires.base import is_kernel_interface

T = TypeVar("T")

SETTLE_S = 2.0
QUIET_S = 0.1
"""If nothing has come for so long, nothing more comes: a frame that should not come has no other sign of its end."""
LOSSY_SETTLE_S = 0.3
TRIES = 3
_numbers = itertools.count()

Frames = Mapping[str, Sequence[RawFrame]]
CALM_S = 0.03
UNCOUNTED_CALM_S = 0.2
CALM_DEADLINE_S = 3.0
FRAMES = 96
"""Of one direction in flight at once, at most; with both, fewer than the 256 entries of any ring."""
SENDING_S = FRAMES / 20_000
SENDING_MAX_S = 2.0
"""A worker of the tester has its CPU within that time, on however busy a machine."""
TESTER_SILENT = "nothing: a failure of the tester, which tells nothing of the switch"
ARRIVE_S = 2.0
"""A frame that has not come by then is lost, on however busy a machine."""
LOSSY_ARRIVE_S = 0.1
LOOK_S = 0.01


@dataclass
class FrameCounts:
    """Counts of frames sent and received, added up over rounds."""

    offered: int = 0
    """Taken by the port; or tried, of a sending of which it took none."""
    arrived: int = 0
    """Different ones, damaged or not, at the port where they belong."""
    corrupt: int = 0
    duplicate: int = 0
    reordered: int = 0
    misdirected: int = 0
    foreign: int = 0
    tester_drops: Counter[str] = field(default_factory=Counter)

    @property
    def lost(self) -> int:
        return self.offered - self.arrived

    def add(self, counts: TesterCounts) -> None:
        for way in counts.directions:
            self.offered += way.offered_packets or way.attempted_packets
            self.arrived += way.forwarded_packets + way.corrupt_packets
            self.corrupt += way.corrupt_packets
            self.duplicate += way.duplicate_packets
            self.reordered += way.reordered_packets
        self.misdirected += counts.misdirected_packets
        self.foreign += counts.evidence.foreign_packets
        self.tester_drops.update(counts.tester_drops)

    def words(self) -> str:
        found = [f"{getattr(self, count.name)} {count.name}" for count in fields(self) if count.name != "tester_drops"]
        drops = [f"{packets} {reason} in the tester" for reason, packets in self.tester_drops.items()]
        return ", ".join(text for text in (*found, *drops) if not text.startswith("0 "))


def send_exact(
    rig: Rig, flows: Sequence[Flow], size: int = 64, profile: TrafficProfile = PLAIN_TRAFFIC, rounds: int = 1
) -> FrameCounts:
    """Send up to ``FRAMES`` frames in each of the flows, each round once the one before has arrived.

    ``rounds`` times, or until one is lost.
    """
    tally, live = FrameCounts(), rig.live
    frames = live.profile(profile, live.topology.chain, flat_out=False)

    def send(duration_s: float) -> Statistics:
        stats = live.send(Sending(flows, size, duration_s, FRAMES / duration_s, profile=frames))
        tally.add(settled(live.call, flows, rig.lossless))
        return stats

    while rounds and not tally.lost:
        sent(rig, flows, SENDING_S, send)
        rounds -= 1
    return tally


def sent(rig: Rig, flows: Sequence[Flow], duration_s: float, send: Callable[[float], Statistics]) -> Statistics:
    """Call ``send`` with a duration, then with longer ones until the tester sends in each of the flows.

    A worker of the tester that a busy machine gives its CPU late begins when a short sending is over.
    Return the counters of the last sending. Raises Failure if the tester sends nothing in the longest one.
    """
    duration_s = max(duration_s, rig.sending_min_s)
    while silent := untried(stats := send(duration_s), flows):
        if duration_s >= stretched(SENDING_MAX_S):
            raise Failure(f"the tester to send in {' and '.join(silent)}", TESTER_SILENT)
        duration_s = rig.sending_min_s = min(2 * duration_s, stretched(SENDING_MAX_S))
    return stats


def settled(call: Call, flows: Sequence[Flow], lossless: bool = True) -> TesterCounts:
    """Return the counters of a sending once every frame has arrived, or a while later; ``lossless``: a longer one."""

    def arrived(counts: TesterCounts) -> bool:
        return all(way.forwarded_packets + way.corrupt_packets >= way.offered_packets for way in counts.directions)

    within_s = ARRIVE_S if lossless else LOSSY_ARRIVE_S
    return read_until(lambda: tester_counts(get_statistics(call), flows), arrived, within_s)


def read_until(read: Callable[[], T], good: Callable[[T], bool], within_s: float) -> T:
    """Return what ``read`` returns once it is ``good``, or after ``within_s`` seconds, stretched."""
    deadline = time.monotonic() + stretched(within_s)
    while not good(found := read()) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return found


@dataclass
class PcapExchange:
    """The frames sent into the ports, and how those that came out differ, over all tries."""

    sent: Frames
    peers: Mapping[str, str]
    astray: Counter[str] = field(default_factory=Counter)
    """Whole frames at a port that is not the other end of the cross-connect."""
    changed: Counter[str] = field(default_factory=Counter)
    disorder: Counter[str] = field(default_factory=Counter)
    """Frames that came after a later one of their kind: those of one kind are one flow."""
    doubled: Counter[str] = field(default_factory=Counter)
    lost: set[tuple[str, int]] = field(default_factory=set)
    """(port, number) of what did not come out anywhere in any of the tries."""
    tries: int = 0

    def add(self, came: Mapping[str, Sequence[bytes]]) -> None:
        origin = {f.data: (port, n) for port, frames in self.sent.items() for n, f in enumerate(frames)}
        lost = set(origin.values())
        for port, datas in came.items():
            known = [origin[data] for data in datas if data in origin]
            lost.difference_update(known)
            peer = self.peers[port]
            way = f"{peer} -> {port}"
            self.astray.update(f"{a} -> {port}" for a, _ in known if a != peer)
            numbers = [n for a, n in known if a == peer]
            first = list(dict.fromkeys(numbers))
            self.doubled[way] += len(numbers) - len(first)
            for kind in {frame.kind for frame in self.sent[peer]}:  # order is that of a flow
                flow = [n for n in first if self.sent[peer][n].kind == kind]
                self.disorder[way] += sum(b < a for a, b in itertools.pairwise(flow))
            others = [f for a, frames in self.sent.items() if a != port for f in frames]
            candidates = [*self.sent[peer], *others]
            self.changed.update(difference(candidates, data) for data in datas if data not in origin)
        self.lost = lost if self.tries == 0 else self.lost & lost
        self.tries += 1

    def lost_kinds(self, *, plain: bool) -> list[str]:
        """Return what never came through: of the plain kind, or of all others."""
        frames = [(port, self.sent[port][n]) for port, n in sorted(self.lost)]
        return [f"{f.words} ({port} -> {self.peers[port]})" for port, f in frames if (f.kind == PLAIN) == plain]


def exchange_good(rig: Rig) -> PcapExchange:
    """Send every good frame through every cross-connect, both ways; up to TRIES times while one is missing."""
    kernel = any(is_kernel_interface(port, rig.live.links) for port in rig.topology.ports)
    sent = frames_into_ports(rig, partial(good_frames, kernel=kernel))
    found = PcapExchange(sent, rig.peers)
    wanted = {name: len(sent[rig.peers[name]]) for name in sent}
    while found.tries < TRIES and (found.lost or found.tries == 0):
        settle_s = SETTLE_S if rig.lossless else LOSSY_SETTLE_S
        came = pass_through(rig, sent, lambda came: all(len(came[name]) >= wanted[name] for name in sent), settle_s)
        found.add(came)
    return found


def frames_into_ports(rig: Rig, frames: Callable[[int, int], list[RawFrame]]) -> Frames:
    """Return the frames to send into each port: those of its number and of the other end's."""
    names = [port.name for port in rig.topology.ports]
    return {name: frames(number, names.index(rig.peers[name])) for number, name in enumerate(names)}


def pass_through(
    rig: Rig, sent: Frames, complete: Callable[[Mapping[str, Sequence[bytes]]], bool], settle_s: float
) -> dict[str, list[bytes]]:
    """Send, wait until it is complete and quiet, and put the tester's own tasks back."""
    rig.calm()
    number = next(_numbers)
    outs = {port: rig.live.links.workdir / f"out-{port}-{number}.pcap" for port in sent}
    ins = {port: rig.live.links.workdir / f"in-{port}-{number}.pcap" for port in sent}
    for port, frames in sent.items():
        write_pcap(ins[port], (frame.data for frame in frames))

    def unread() -> list[str]:
        """Return the ports of whose file the tester has read nothing yet."""
        read = {port.name: port.rx_packets for port in get_statistics(rig.live.call).ports}
        return [port for port in sent if not read[f"f{port}"]]

    def written() -> dict[str, list[bytes]]:
        return {port: read_pcap(path) for port, path in outs.items()}

    rig.live.apply(_document(rig, ins, outs))
    try:
        if unsent := read_until(unread, lambda ports: not ports, SETTLE_S):
            raise Failure(f"the tester to send at {', '.join(unsent)}", TESTER_SILENT)
        read_until(written, complete, settle_s)
        time.sleep(QUIET_S)
        came = written()
        rig.live.check()
    finally:
        rig.live.apply(rig.live.document())
    for path in (*ins.values(), *outs.values()):
        path.unlink(missing_ok=True)
    return came


def _document(rig: Rig, ins: Mapping[str, Path], outs: Mapping[str, Path]) -> Document:
    """Return the document of the tester with a patch between each port and its files."""
    document = rig.live.document()
    devices = {port: f"net_pcap_{port},rx_pcap={ins[port]},tx_pcap={outs[port]}" for port in ins}
    files = (Port(f"f{port}", "ethdev", device=device) for port, device in devices.items())
    tasks = tuple(Task(f"raw-{port}", "patch", (port, f"f{port}")) for port in ins)
    worker = Worker("raw", rig.placement.tester_cpus[0], tuple(task.name for task in tasks))
    return replace(document, ports=(*document.ports, *files), tasks=tasks, workers=(worker,))


def most(counter: Counter[str], limit: int = 4) -> str:
    """Return the most frequent texts: ``3 x n0 -> v1; 2 x ...``; empty if all are 0."""
    counter = +counter
    parts = [f"{count} x {text}" for text, count in counter.most_common(limit)]
    more = len(counter) - limit
    return "; ".join(parts) + (f"; and {more} more kinds" if more > 0 else "")


@dataclass
class Rig:
    """One scenario on one wire. Not paused while a check has it."""

    adapter: Adapter
    case: Case
    cpus: Cpus
    settings: LiveSettings
    supervisor: Supervisor
    before: Leftovers = field(default_factory=Leftovers.take)
    """The state of the machine before anything of this scenario was started."""
    logs: tuple[Path, ...] = ()
    """Of the switch that was started last."""
    lossless: bool = True
    """False once the switch was seen to lose frames: other checks then only ask whether frames come at all."""
    sending_min_s: float = 0.0
    """Shorter sendings may be over before the tester has its CPU, as was seen."""
    exchange: PcapExchange | None = None
    """Raw frames through every cross-connect, once it was done: several checks look at it."""
    _live: LiveTopology | None = None

    def __post_init__(self) -> None:
        self.topology: Topology = build(self.case.scenario, self.case.chain_length)
        cpus = replace(self.cpus, switch_cores=max(self.case.workers, self.cpus.switch_cores))
        self.placement: Placement = place(cpus, len(self.topology.vnfs))
        pairs = self.topology.cross_connects
        self.peers = dict(pairs) | {b: a for a, b in pairs}
        """Port -> the other end of its cross-connect."""
        self.hops = len(pairs)
        """How often a frame passes the switch on its way."""
        self.ways: tuple[Flow, ...] = flows(self.topology, "bidirectional")
        self.starts = 0

    def refusal(self) -> str:
        """Return why the adapter cannot be checked here; empty if it can. It then has the workers of the case.

        Where there are fewer cores, a second worker shares the one of the tester: only frames are counted.
        """
        case, how = self.case, self.settings
        if case.workers > 1:
            if not self.adapter.has_workers:
                return f"{self.adapter.name} forwards with one worker"
            self.adapter = self.adapter.with_options({WORKERS_OPTION.name: str(case.workers)})
        cores = len(self.placement.switch_cpus)
        if cores < case.workers:
            self.placement = replace(self.placement, more_switch_cpus=self.placement.tester_cpus[:1])
        situation = Situation(
            case.scenario,
            wire_name(how.wire),
            case.chain_length,
            how.hugepages,
            how.max_frame_bytes,
            switch_cores=cores,
        )
        return refusal_of(self.adapter, situation)

    @property
    def live(self) -> LiveTopology:
        """Return the topology that is up. Raises DiedError if there is none."""
        if self._live is None:
            raise DiedError("the topology is not up")
        return self._live

    def start(self) -> None:
        """Start tester and switch, and wait until frames cross. Raises StartError."""
        known = len(self.supervisor.processes)
        self.starts += 1
        try:
            self._live = LiveTopology.start(
                f"{self.adapter.name}-{self.starts}",
                self.adapter,
                self.topology,
                self.placement,
                self.settings,
                self.supervisor,
            )
            self._live.resume()
        finally:
            self.note_logs(known)

    def note_logs(self, known: int) -> None:
        """Keep the log paths of the processes that were started after the first ``known`` ones."""
        started = [process for process in self.supervisor.processes[known:] if process.name not in ("tester", "netns")]
        self.logs = tuple(process.log_path for process in started if process.name != "veth-setup") or self.logs

    def calm(self) -> None:
        """Wait until the switch has processed all frames that it has received, as far as its counters show."""
        deadline = time.monotonic() + stretched(CALM_DEADLINE_S)
        before = self.live.switch.counters().packets
        time.sleep(UNCOUNTED_CALM_S if before is None else CALM_S)
        while time.monotonic() < deadline and (now := self.live.switch.counters().packets) != before:
            before = now
            time.sleep(CALM_S)

    def stop(self) -> None:
        """End everything. Never raises; safe to call twice."""
        if self._live is not None:
            self._live.stop()
            self._live = None
