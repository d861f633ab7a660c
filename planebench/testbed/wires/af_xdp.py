# SPDX-License-Identifier: BSD-3-Clause
"""Wire af_xdp: kernel interfaces that both ends drive by AF_XDP sockets, a veth pair or interfaces of the user."""

from __future__ import annotations

from dataclasses import replace

from planebench.model.wire import register
from planebench.planed.document import Port
from planebench.testbed.links import LinkSettings
from planebench.testbed.request import SwitchPort, af_xdp_devargs
from planebench.testbed.wires.kernel import KernelWire

RING = 2048
"""Entries of a ring, as in libxdp and OvS. DPDK's driver gives as many buffers to the kernel, so that the receive ring
is never full before there is no buffer, which is the loss that the driver counts."""


class AfXdp(KernelWire):
    """Both ends have AF_XDP sockets on kernel interfaces; the tester has DPDK's driver."""

    name = "af_xdp"
    order = 37
    title = "AF_XDP (kernel interfaces)"
    help = "AF_XDP sockets on a veth pair, or on kernel interfaces of a NIC; the mode is what the kernel grants."
    standard_frames_driver = "AF_XDP"
    needs_drivers = True

    def tester_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the tester's interface."""
        return _planed_port(port, links.ends[cable].tester)

    def far_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the switch's interface."""
        return _planed_port(port, links.ends[cable].switch)

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the switch's interface."""
        return replace(port, kind="af_xdp", interface=links.ends[cable].switch, ring_size=RING)

    def interfaces_refusal(self, names: list[str]) -> str:
        """Return why AF_XDP sockets cannot take all frames of these interfaces; empty if they can."""
        from planebench.host.interfaces import xdp_refusal  # pages know wires, but load nothing of the host

        return xdp_refusal(names)


def _planed_port(port: Port, interface: str) -> Port:
    device = af_xdp_devargs(f"net_af_xdp_{port.name}", interface)
    return replace(port, device=device, ring_size=max(port.ring_size or 0, RING))


register(AfXdp())
