# SPDX-License-Identifier: BSD-3-Clause
"""Raw frames through every cross-connect at once: the tester sends those of a file into each port of the switch, and
writes to a file what comes out of each. So each port is told apart, and every byte is compared.

In place of generators, monitors and VNFs the tester has a patch between each of its ports and a pair of pcap files
(DPDK's net_pcap). A VNF does not see these frames; its port does.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from planebench.conformance.counting import TESTER_SILENT, read_until
from planebench.conformance.frames import PLAIN, RawFrame, bad_frames, difference, good_frames, read_pcap, write_pcap
from planebench.conformance.model import Failure
from planebench.conformance.rig import Rig
from planebench.planed.document import Document, Port, Task, Worker
from planebench.planed.requests import get_statistics
from planebench.wiring.wires.base import is_kernel_interface

SETTLE_S = 2.0
QUIET_S = 0.1
"""If nothing has come for so long, nothing more comes: a frame that should not come has no other sign of its end."""
LOSSY_SETTLE_S = 0.3
BAD_S = 0.2
TRIES = 3
_numbers = itertools.count()

Frames = Mapping[str, Sequence[RawFrame]]


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
        """Add the frames that came out of each port in one more try."""
        origin = {f.data: (port, n) for port, frames in self.sent.items() for n, f in enumerate(frames)}
        lost = set(origin.values())
        for port, datas in came.items():
            known = [origin[data] for data in datas if data in origin]
            lost.difference_update(known)
            self._judge(port, known)
            self.changed.update(difference(self._towards(port), data) for data in datas if data not in origin)
        self.lost = lost if self.tries == 0 else self.lost & lost
        self.tries += 1

    def _judge(self, port: str, known: Sequence[tuple[str, int]]) -> None:
        self.astray.update(f"{a} -> {port}" for a, _ in known if self.peers[a] != port)
        way = f"{self.peers[port]} -> {port}"
        numbers = [n for a, n in known if self.peers[a] == port]
        first = list(dict.fromkeys(numbers))
        self.doubled[way] += len(numbers) - len(first)
        for kind in {frame.kind for frame in self.sent[self.peers[port]]}:  # order is that of a flow
            flow = [n for n in first if self.sent[self.peers[port]][n].kind == kind]
            self.disorder[way] += sum(b < a for a, b in itertools.pairwise(flow))

    def _towards(self, port: str) -> list[RawFrame]:
        return [*self.sent[self.peers[port]], *(f for a, frames in self.sent.items() if a != port for f in frames)]

    def lost_kinds(self, *, plain: bool) -> list[str]:
        """Return what never came through: of the plain kind, or of all others."""
        frames = [(port, self.sent[port][n]) for port, n in sorted(self.lost)]
        return [f"{f.words} ({port} -> {self.peers[port]})" for port, f in frames if (f.kind == PLAIN) == plain]


def exchange_good(rig: Rig) -> PcapExchange:
    """Send every good frame through every cross-connect, both ways; up to TRIES times while one is missing."""
    names = [port.name for port in rig.topology.ports]
    peers = _peers(rig)
    kernel = any(is_kernel_interface(port, rig.live.links) for port in rig.topology.ports)
    sent = {name: good_frames(names.index(name), names.index(peers[name]), kernel=kernel) for name in names}
    found = PcapExchange(sent, peers)
    wanted = {name: len(sent[peers[name]]) for name in names}
    while found.tries < TRIES and (found.lost or found.tries == 0):
        settle_s = SETTLE_S if rig.lossless else LOSSY_SETTLE_S
        came = _pass_through(rig, sent, lambda came: all(len(came[name]) >= wanted[name] for name in names), settle_s)
        found.add(came)
    return found


def send_bad(rig: Rig) -> dict[str, list[bytes]]:
    """Send every bad frame into every port; return what came out of each."""
    names = [port.name for port in rig.topology.ports]
    peers = _peers(rig)
    sent = {name: bad_frames(names.index(name), names.index(peers[name])) for name in names}
    return _pass_through(rig, sent, lambda came: False, BAD_S)


def _peers(rig: Rig) -> dict[str, str]:
    pairs = rig.topology.cross_connects
    return dict(pairs) | {b: a for a, b in pairs}


def _pass_through(
    rig: Rig, sent: Frames, complete: Callable[[Mapping[str, Sequence[bytes]]], bool], settle_s: float
) -> dict[str, list[bytes]]:
    """Send, wait until it is complete and quiet, and put the tester's own tasks back."""
    rig.calm()
    number = next(_numbers)
    outs = {port: rig.live.links.workdir / f"out-{port}-{number}.pcap" for port in sent}
    ins = {port: rig.live.links.workdir / f"in-{port}-{number}.pcap" for port in sent}
    for port, frames in sent.items():
        write_pcap(ins[port], (frame.data for frame in frames))
    rig.live.apply(_document(rig, ins, outs))
    try:
        if unsent := read_until(lambda: _unsent(rig, sent), lambda ports: not ports, SETTLE_S):
            raise Failure(f"the tester to send at {', '.join(unsent)}", TESTER_SILENT)
        came = _collected(outs, complete, settle_s)
        rig.live.check()
    finally:
        rig.live.apply(rig.live.document())
    for path in (*ins.values(), *outs.values()):
        path.unlink(missing_ok=True)
    return came


def _unsent(rig: Rig, sent: Frames) -> list[str]:
    """Return the ports of whose file the tester has read nothing yet."""
    read = {port["name"]: port["rx_packets"] for port in get_statistics(rig.live.call)["ports"]}
    return [port for port in sent if not read[f"f{port}"]]


def _collected(
    outs: Mapping[str, Path], complete: Callable[[Mapping[str, Sequence[bytes]]], bool], settle_s: float
) -> dict[str, list[bytes]]:
    def came() -> dict[str, list[bytes]]:
        return {port: read_pcap(path) for port, path in outs.items()}

    read_until(came, complete, settle_s)
    time.sleep(QUIET_S)
    return came()


def _document(rig: Rig, ins: Mapping[str, Path], outs: Mapping[str, Path]) -> Document:
    """Return the document of the tester with a patch between each port and its files."""
    document = rig.live.document()
    files = (Port(f"f{port}", "ethdev", device=_device(port, ins, outs)) for port in ins)
    tasks = tuple(Task(f"raw-{port}", "patch", (port, f"f{port}")) for port in ins)
    worker = Worker("raw", rig.placement.tester_cpus[0], tuple(task.name for task in tasks))
    return replace(document, ports=(*document.ports, *files), tasks=tasks, workers=(worker,))


def _device(port: str, ins: Mapping[str, Path], outs: Mapping[str, Path]) -> str:
    return f"net_pcap_{port},rx_pcap={ins[port]},tx_pcap={outs[port]}"


def most(counter: Counter[str], limit: int = 4) -> str:
    """Return the most frequent texts: ``3 x n0 -> v1; 2 x ...``; empty if all are 0."""
    counter = +counter
    parts = [f"{count} x {text}" for text, count in counter.most_common(limit)]
    more = len(counter) - limit
    return "; ".join(parts) + (f"; and {more} more kinds" if more > 0 else "")
