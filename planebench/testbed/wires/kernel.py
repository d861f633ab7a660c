# SPDX-License-Identifier: BSD-3-Clause
"""Wires veth and af_xdp: interfaces of the kernel, veth pairs that are made, or interfaces of the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from planebench.model.errors import UsageError
from planebench.model.wire import register
from planebench.planed.document import Port
from planebench.testbed.request import Ends, LinkSettings, LinkSide, SwitchPort
from planebench.testbed.wires.base import WireKind, af_packet_port

RING = 2048
"""Entries of a ring, as in libxdp and OvS. DPDK's driver gives as many buffers to the kernel, so that the receive ring
is never full before there is no buffer, which is the loss that the driver counts."""


class KernelWire(WireKind):
    """Both ends are interfaces of the kernel, which the user may name; between two hosts they have to be named."""

    arguments = "TESTER=SWITCH,..."
    arguments_optional = True
    ceilings = "measured"
    kernel_interfaces = True
    between_hosts = True
    by_af_xdp = False

    def check(self, arguments: str) -> None:
        """Raise UsageError for arguments that are no pairs of interfaces, each named once at its side."""
        if arguments and not all(device for ends in self.cables(arguments) for device in ends.of(None)):
            raise UsageError(f'wire "{self.name}:{arguments}": name pairs of interfaces, --wire {self.name}:eth1=eth2')
        self.devices(arguments, "tester")
        self.devices(arguments, "switch")

    def makes_veth_pairs(self, arguments: str) -> bool:
        """Return whether the user named no interfaces."""
        return not arguments

    def cables(self, arguments: str) -> tuple[Ends, ...]:
        """Return the pairs that the user named."""
        parts = (cable.partition("=") for cable in arguments.split(",") if cable)
        return tuple(Ends(tester.strip(), switch.strip()) for tester, _, switch in parts)

    @contextmanager
    def hold(self, arguments: str, side: LinkSide | None = None) -> Iterator[tuple[str, ...]]:
        """Check that kernel, user and interfaces can do it; sockets undo themselves when they close."""
        from planebench.host import af_xdp, interfaces  # pages know wires, but load nothing of the host

        missing = af_xdp.missing() if self.by_af_xdp else ""
        if reason := missing or interfaces.refusal(self.devices(arguments, side)):
            raise UsageError(f'wire "{self.name}": {reason}')
        yield ()


class AfXdp(KernelWire):
    """Both ends have AF_XDP sockets on kernel interfaces; the tester has DPDK's driver."""

    name = "af_xdp"
    order = 37
    title = "AF_XDP (kernel interfaces)"
    standard_frames_driver = "AF_XDP"
    needs_drivers = True
    by_af_xdp = True
    own_rings = True

    def planed_port(self, port: Port, cable: str, links: LinkSettings, side: LinkSide = "tester") -> Port:
        """Return a port of DPDK's driver for the first queue of the interface."""
        device = f"net_af_xdp_{port.name},iface={getattr(links.ends[cable], side)}"
        return replace(port, device=device, ring_size=max(port.ring_size or 0, RING))

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the switch's interface."""
        return replace(port, kind="af_xdp", interface=links.ends[cable].switch, ring_size=RING)


class Veth(KernelWire):
    """Both ends are kernel interfaces; the tester has DPDK's af_packet driver."""

    name = "veth"
    order = 30
    title = "Veth (kernel interfaces)"
    standard_frames_driver = "af_packet"

    def planed_port(self, port: Port, cable: str, links: LinkSettings, side: LinkSide = "tester") -> Port:
        """Return a port of DPDK's driver for packet sockets."""
        return af_packet_port(port, getattr(links.ends[cable], side), links)

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the switch's interface."""
        return replace(port, kind="af_packet", interface=links.ends[cable].switch)


register(AfXdp())
register(Veth())
