# SPDX-License-Identifier: BSD-3-Clause
"""Wire virtio: a vhost-user device of the tester, which the switch drives as an emulated NIC."""

from __future__ import annotations

from dataclasses import replace

from planebench.model.wire import register
from planebench.planed.document import Port
from planebench.testbed.links import LinkSettings
from planebench.testbed.request import SwitchPort
from planebench.testbed.wires.base import WireKind


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
