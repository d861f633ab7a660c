# SPDX-License-Identifier: BSD-3-Clause
"""Wires virtio, vhost and memif: rings in shared memory behind a unix socket."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from planebench.model.wire import register
from planebench.planed.document import Port, PortKind
from planebench.testbed.request import LinkSettings, LinkSide, SwitchPort
from planebench.testbed.wires.base import WireKind


class SocketWire(WireKind):
    """Both ends are ports with the path of a socket; planed opens ports in their order, so the far one comes second."""

    tester_kind: PortKind
    far_kind: PortKind
    switch_kind: Literal["virtio-user", "memif", "vhost-user"]

    def planed_port(self, port: Port, cable: str, links: LinkSettings, side: LinkSide = "tester") -> Port:
        """Return the port of the tester; at the side of the switch one as the switch has it."""
        kind = self.tester_kind if side == "tester" else self.far_kind
        return replace(port, kind=kind, path=links.socket(cable))

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the port of the switch."""
        return replace(port, kind=self.switch_kind, path=links.socket(cable))


class Memif(SocketWire):
    """The tester is the memif server; the switch is the client."""

    name = "memif"
    order = 20
    title = "Memif (shared memory)"
    standard_frames_driver = "memif"
    ceilings = "wires"
    switch_memory = True  # the client makes the regions
    tester_kind = "memif-server"
    far_kind = "memif-client"
    switch_kind = "memif"

    def planed_port(self, port: Port, cable: str, links: LinkSettings, side: LinkSide = "tester") -> Port:
        """Return the port; the server has the queue that the switch sends on, too."""
        made = super().planed_port(port, cable, links, side)
        queues = links.queues + links.memif_receive_queue
        return replace(made, queues=queues) if side == "tester" else made

    def receive_queue(self, links: LinkSettings) -> int:
        """Return the queue that the forwarding thread of the switch sends on."""
        return links.memif_receive_queue


class Vhost(SocketWire):
    """The switch listens on a socket as on the ports of VNFs; the tester connects to it with its virtio driver."""

    name = "vhost"
    order = 25
    title = "Vhost (the interface of a VNF)"
    ceilings = "drivers"
    vnf_ports = True
    switch_listens = True
    tester_kind = "virtio-user"
    far_kind = "vhost-user"
    switch_kind = "vhost-user"


class Virtio(SocketWire):
    """An emulated NIC: the tester listens on a socket; the switch connects to it with its virtio driver."""

    name = "virtio"
    order = 10
    title = "virtio (shared memory)"
    ceilings = "all"
    tester_kind = "vhost-user"
    far_kind = "virtio-user"
    switch_kind = "virtio-user"


for _wire in (Memif(), Vhost(), Virtio()):
    register(_wire)
