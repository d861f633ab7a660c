# SPDX-License-Identifier: BSD-3-Clause
"""Two switches one after the other, connected by a link: can17's bridging of two servers by their NICs.

Here both are processes of one machine. The link is a veth pair where the wires are, else virtio: the first switch
drives a vhost-user port of the second, as it would a NIC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from planebench.host.evidence import ThreadRef
from planebench.host.process import Supervisor, on_failure
from planebench.model.records import SwitchCycles
from planebench.model.topology import Topology
from planebench.model.wire import wire_arguments
from planebench.switches.adapter import Adapter, RunningSwitch
from planebench.switches.common import total
from planebench.testbed.request import LinkSettings, SwitchPort, SwitchRequest
from planebench.testbed.wires.base import wire_kind

FOLDER = "second"
"""The working folder of the second switch, in that of the first."""


def requests_of(request: SwitchRequest, topology: Topology, links: LinkSettings) -> tuple[SwitchRequest, ...]:
    """Return the request to each switch of a topology, in path order; with one switch it is ``request``.

    Of several cores the first switch has the first half.
    """
    if topology.link is None:
        return (request,)
    pairs = request.cross_connects
    begin = next(number for number, pair in enumerate(pairs) if topology.link[1] in pair)
    half = -(-len(request.cpus) // 2)
    first, second = request.cpus[:half], request.cpus[half:] or request.cpus
    ring = links.wire_ring_size or links.ring_size
    near, far = (SwitchPort(name, "virtio-user", ring_size=ring) for name in topology.link)
    if wire_kind(links.wire).makes_veth_pairs(wire_arguments(links.wire)):
        ends = links.ends[near.name]
        near = replace(near, kind="af_packet", interface=ends.tester)
        far = replace(far, kind="af_packet", interface=ends.switch)
    else:
        socket = links.socket(near.name)
        near, far = replace(near, path=socket), replace(far, kind="vhost-user", path=socket)
    ports = {port.name: port for port in (*request.ports, near, far)}

    def part(own: Sequence[tuple[str, str]], cpus: tuple[int, ...]) -> SwitchRequest:
        names = {name for pair in own for name in pair}
        return replace(
            request,
            ports=tuple(port for name, port in ports.items() if name in names),
            cross_connects=tuple(own),
            cpu=cpus[0],
            more_cpus=cpus[1:],
        )

    return part(pairs[:begin], first), replace(part(pairs[begin:], second), workdir=request.workdir / FOLDER)


def start_switches(adapter: Adapter, requests: Sequence[SwitchRequest], supervisor: Supervisor) -> RunningSwitch:
    """Start the switches, the last one first, as it listens on the link. Raises what ``adapter.start`` raises."""
    running: list[RunningSwitch] = []
    with on_failure(lambda: LinkedSwitches(running).stop()):
        for request in reversed(requests):
            request.workdir.mkdir(mode=0o700, exist_ok=True)
            running.insert(0, adapter.start(request, supervisor))
    return running[0] if len(running) == 1 else LinkedSwitches(running)


class LinkedSwitches(RunningSwitch):
    """Switches one after the other, as one: their processes, threads and counters together."""

    def __init__(self, switches: Sequence[RunningSwitch]) -> None:
        self._switches = tuple(switches)

    def pids(self) -> tuple[int, ...]:
        return tuple(pid for switch in self._switches for pid in switch.pids())

    def polling_threads(self) -> tuple[ThreadRef, ...]:
        return tuple(thread for switch in self._switches for thread in switch.polling_threads())

    def counters(self) -> SwitchCycles:
        """Return the sums; a figure that one of the switches does not know is unknown. Drops are by port and reason."""
        parts = [switch.counters() for switch in self._switches]
        drops, counters = Counter[str](), Counter[str]()
        for part in parts:
            drops.update(part.drops)
            counters.update(part.counters)
        return SwitchCycles(
            busy_cycles=total(part.busy_cycles for part in parts),
            packets=total(part.packets for part in parts),
            drops=dict(drops),
            forwarded_packets=total(part.forwarded_packets for part in parts),
            bursts=total(part.bursts for part in parts),
            counters=dict(counters),
        )

    def check(self) -> None:
        for switch in self._switches:
            switch.check()

    def stop(self) -> None:
        for switch in self._switches:
            switch.stop()
