# SPDX-License-Identifier: BSD-3-Clause
"""Wire veth: pairs of kernel interfaces with packet sockets at the tester's end; made in a network namespace, or
named by the user."""

from __future__ import annotations

from dataclasses import replace

from planebench.model.wire import register
from planebench.planed.document import Port
from planebench.testbed.links import LinkSettings
from planebench.testbed.request import SwitchPort
from planebench.testbed.wires.base import af_packet_port
from planebench.testbed.wires.kernel import KernelWire


class Veth(KernelWire):
    """Both ends are kernel interfaces; the tester has DPDK's af_packet driver."""

    name = "veth"
    order = 30
    title = "Veth (kernel interfaces)"
    help = "A veth pair of the kernel, or kernel interfaces of the user; the tester has DPDK's af_packet driver."
    standard_frames_driver = "af_packet"

    def tester_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the tester's interface."""
        return af_packet_port(port, links.ends[cable].tester, links)

    def far_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the switch's interface."""
        return af_packet_port(port, links.ends[cable].switch, links)

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the switch's interface."""
        return replace(port, kind="af_packet", interface=links.ends[cable].switch)


register(Veth())
