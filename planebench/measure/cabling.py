# SPDX-License-Identifier: BSD-3-Clause
"""Find the cabling of ports: a few frames leave each port, and whichever port receives them is at the other end.

All ports are those of one planed, so a cable between two NICs, two ends of a veth pair, and two ends of a memif are
found alike.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planebench.host.planed_program import require_planed
from planebench.host.process import Supervisor, stretched
from planebench.measure.counts import Sender, Sending
from planebench.model.errors import UsageError
from planebench.model.scenarios import Flow
from planebench.model.words import listed
from planebench.planed.client import get_ports
from planebench.planed.document import Document, Port, Task, Worker
from planebench.planed.process import PlanedProcess
from planebench.testbed.placement import Placement
from planebench.testbed.request import Ends, memory

RING_SIZE = 256
PORTS_MAX = 32
STREAMS = 8
"""Streams of the tester. Ports send one after the other, so several may have the same."""
FRAME_BYTES = 64
RATE_PPS, SEND_S = 1000, 0.02
WITHIN_S = 8.0
"""A link of copper needs up to five seconds to come up once its driver has started."""


@dataclass(frozen=True, slots=True)
class FoundPort:
    """A port as planed has it open: ``device`` as it was asked for. None: not known."""

    device: str
    driver: str
    link: bool
    speed_mbps: int | None = None


@dataclass(frozen=True, slots=True)
class Cabling:
    """The ports, and for each, by device, the ports that received its frames."""

    ports: tuple[FoundPort, ...]
    receivers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def cables(self) -> tuple[Ends, ...]:
        """Return the pairs of ports that hear each other and nobody else; the one that was named first comes first."""
        heard = self.receivers
        return tuple(
            Ends(a, others[0])
            for a, others in heard.items()
            if len(others) == 1 and heard[others[0]] == (a,) and list(heard).index(a) < list(heard).index(others[0])
        )

    @property
    def problems(self) -> tuple[str, ...]:
        """Return a sentence for each port that is no end of a cable between two of the ports."""
        cabled = {device for cable in self.cables for device in (cable.tester, cable.switch)}
        found = []
        for port in self.ports:
            device, heard = port.device, self.receivers[port.device]
            if device in cabled:
                continue
            if not port.link:
                found.append(f"{device} has no link")
            elif not heard:
                found.append(f"{device} has a link, but none of the other ports receives its frames")
            elif heard == (device,):
                found.append(f"{device} receives its own frames: a loopback plug, or a switch that sends them back")
            else:
                found.append(f"{device} is heard by {listed(heard)}, so something is between them that is no cable")
        return tuple(found)

    def differences(self, wanted: Sequence[Ends]) -> tuple[str, ...]:
        """Return a sentence for each wanted cable whose ends are not connected with each other."""
        other = {a: b for cable in self.cables for a, b in ((cable.tester, cable.switch), (cable.switch, cable.tester))}
        return tuple(
            f"{cable.tester} is cabled to {other.get(cable.tester, 'none of these ports')}, not to {cable.switch}"
            for cable in wanted
            if other.get(cable.tester) != cable.switch
        )


def find_cabling(
    devices: Sequence[str],
    placement: Placement,
    supervisor: Supervisor,
    *,
    hugepages: bool = False,
) -> Cabling:
    """Return the cabling of devices (PCI addresses or devargs of DPDK). Ends what it starts.

    Returns at once when every port has found another one, else after WITHIN_S, stretched: links take time.
    Raises UsageError for less than two devices, StartError if planed cannot open one.
    """
    if not 2 <= len(devices) <= PORTS_MAX:
        raise UsageError(f"a cabling has 2 to {PORTS_MAX} ports, not {len(devices)}; name them by --device")
    names = [f"p{number}" for number in range(len(devices))]
    ports = (Port(name, "ethdev", RING_SIZE, device=device) for name, device in zip(names, devices, strict=True))
    tasks = (
        *(Task(f"mon-{name}", "monitor", (name,)) for name in names),
        *(Task(f"gen-{name}", "generator", (name,), number % STREAMS) for number, name in enumerate(names)),
    )
    needed = memory(
        ports=len(devices), ring_size=RING_SIZE, max_frame_bytes=1518, hugepages=hugepages, pools=len(devices) + 1
    )
    worker = Worker("w", placement.tester_cpus[0], tuple(task.name for task in tasks))
    own = f"{supervisor.root.name}-wires".lower().replace(".", "-")[-31:]
    planed = PlanedProcess.start(
        Document(own, needed, tuple(ports), tasks, (worker,)),
        supervisor,
        planed=require_planed(drivers=True),
        name="wires",
        title="planed",
        file="wires",
        workdir=supervisor.workdir("wires"),
        cpus=placement.control_cpus | {placement.tester_cpus[0]},
    )
    try:
        return _found(planed, devices, stretched(WITHIN_S))
    finally:
        planed.stop()


def _found(planed: PlanedProcess, devices: Sequence[str], within_s: float) -> Cabling:
    """Return the cabling once each port is at a cable. What was heard stays: a tester may send nothing in a try."""
    sender, deadline = Sender(planed.call, check=planed.check), time.monotonic() + within_s
    receivers: dict[str, tuple[str, ...]] = {}
    while True:
        for number, device in enumerate(devices):
            receivers[device] = receivers.get(device) or _receivers(sender, number, devices)
        found = Cabling(_ports(planed, devices), receivers)
        if not found.problems or time.monotonic() > deadline:
            return found


def _ports(planed: PlanedProcess, devices: Sequence[str]) -> tuple[FoundPort, ...]:
    told = {port.name: port for port in get_ports(planed.call)}
    return tuple(
        FoundPort(device, port.driver, port.link_up, port.speed_mbps)
        for device, port in ((device, told[f"p{number}"]) for number, device in enumerate(devices))
    )


def _receivers(sender: Sender, number: int, devices: Sequence[str]) -> tuple[str, ...]:
    """Return the ports that received frames of one port."""
    name = f"p{number}"
    stats = sender.send(Sending((Flow(name, name, number % STREAMS),), FRAME_BYTES, SEND_S, RATE_PPS))
    monitors = {task.name: task.monitor for task in stats.tasks if task.monitor is not None}
    return tuple(
        device
        for n, device in enumerate(devices)
        if any(stream.forwarded_packets for stream in monitors[f"mon-p{n}"].streams)
    )
