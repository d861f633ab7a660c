# SPDX-License-Identifier: BSD-3-Clause
"""Wire veth: a pair of kernel interfaces in a network namespace, with packet sockets at the tester's end."""

from __future__ import annotations

from dataclasses import replace

from planebench.model.wire import register
from planebench.planed.document import Port
from planebench.wiring.links import LinkSettings
from planebench.wiring.request import SwitchPort
from planebench.wiring.wires.base import WireKind, af_packet_port


class Veth(WireKind):
    """Both ends are kernel interfaces; the tester has DPDK's af_packet driver."""

    name = "veth"
    order = 30
    title = "Veth (kernel interfaces)"
    help = "A veth pair of the kernel; the tester has DPDK's af_packet driver."
    standard_frames_driver = "af_packet"
    ceilings = "measured"
    kernel_interfaces = True

    def tester_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the tester's interface."""
        return af_packet_port(port, links.ends[cable].tester, links)

    def far_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the switch's interface."""
        return af_packet_port(port, links.ends[cable].switch, links)

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the switch's interface."""
        return replace(port, kind="af_packet", interface=links.ends[cable].switch)

    def makes_veth_pairs(self, arguments: str) -> bool:
        """Return True: the pairs are made for each topology."""
        return True


register(Veth())
