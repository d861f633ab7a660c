# SPDX-License-Identifier: BSD-3-Clause
"""Wire vhost: a vhost-user device of the switch, which the tester drives as VNFs drive theirs."""

from __future__ import annotations

from dataclasses import replace

from planebench.model.wire import register
from planebench.planed.document import Port
from planebench.testbed.links import LinkSettings
from planebench.testbed.request import SwitchPort
from planebench.testbed.wires.base import WireKind


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
