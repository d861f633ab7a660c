# SPDX-License-Identifier: BSD-3-Clause
"""Wires virtio, vhost and memif: rings in shared memory behind a unix socket."""

from __future__ import annotations

from dataclasses import replace

from planebench.model.wire import register
from planebench.planed.document import Port
from planebench.testbed.request import LinkSettings, SwitchPort
from planebench.testbed.wires.base import WireKind


class Memif(WireKind):
    """The tester is the memif server; the switch is the client."""

    name = "memif"
    order = 20
    title = "Memif (shared memory)"
    help = "A memif of DPDK or VPP: rings in shared memory; the switch is the client."
    standard_frames_driver = "memif"
    ceilings = "wires"
    switch_memory = True  # the client makes the regions

    def tester_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the server, with the queue that the switch sends on."""
        queues = links.queues + links.memif_receive_queue
        return replace(port, kind="memif-server", path=links.socket(cable), queues=queues)

    def far_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the client."""
        return replace(port, kind="memif-client", path=links.socket(cable))

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the client in the switch."""
        return replace(port, kind="memif", path=links.socket(cable))

    def receive_queue(self, links: LinkSettings) -> int:
        """Return the queue that the forwarding thread of the switch sends on."""
        return links.memif_receive_queue


register(Memif())


# Wire vhost: a vhost-user device of the switch, which the tester drives as VNFs drive theirs.


class Vhost(WireKind):
    """The switch listens on a socket; the tester connects to it with its virtio driver."""

    name = "vhost"
    order = 25
    title = "Vhost (the interface of a VNF)"
    help = "A virtual NIC: the switch is the vhost-user device as on the ports of VNFs, the tester has the driver."
    ceilings = "drivers"
    vnf_ports = True
    switch_listens = True

    def tester_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the virtio driver, which connects."""
        return replace(port, kind="virtio-user", path=links.socket(cable))

    def far_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the vhost-user device."""
        return replace(port, kind="vhost-user", path=links.socket(cable))

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the vhost-user device of the switch."""
        return replace(port, kind="vhost-user", path=links.socket(cable))


register(Vhost())


# Wire virtio: a vhost-user device of the tester, which the switch drives as an emulated NIC.


class Virtio(WireKind):
    """The tester listens on a socket; the switch connects to it with its virtio driver."""

    name = "virtio"
    order = 10
    title = "virtio (shared memory)"
    help = "An emulated NIC: the tester is the vhost-user device, the switch has the virtio driver."
    ceilings = "all"

    def tester_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the vhost-user device."""
        return replace(port, kind="vhost-user", path=links.socket(cable))

    def far_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the virtio driver, which connects: planed opens ports in their order, so it comes second."""
        return replace(port, kind="virtio-user", path=links.socket(cable))

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the virtio driver of the switch."""
        return replace(port, kind="virtio-user", path=links.socket(cable))


register(Virtio())
