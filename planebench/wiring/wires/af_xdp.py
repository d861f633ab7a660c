# SPDX-License-Identifier: BSD-3-Clause
"""Wire af_xdp: kernel interfaces that both ends drive by AF_XDP sockets, a veth pair or interfaces of the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from planebench.model.errors import UsageError
from planebench.model.wire import register
from planebench.planed.document import Port
from planebench.wiring.devargs import af_xdp_devargs
from planebench.wiring.links import Ends, LinkSettings
from planebench.wiring.request import SwitchPort
from planebench.wiring.wires.base import WireKind

RING = 2048
"""Entries of a ring, as in libxdp and OvS. DPDK's driver gives as many buffers to the kernel, so that the receive ring
is never full before there is no buffer, which is the loss that the driver counts."""


class AfXdp(WireKind):
    """Both ends have AF_XDP sockets on kernel interfaces; the tester has DPDK's driver."""

    name = "af_xdp"
    order = 37
    title = "AF_XDP (kernel interfaces)"
    help = "AF_XDP sockets on a veth pair, or on kernel interfaces of a NIC; the mode is what the kernel grants."
    arguments = "TESTER=SWITCH,..."
    arguments_optional = True
    standard_frames_driver = "AF_XDP"
    ceilings = "measured"
    kernel_interfaces = True

    def check(self, arguments: str) -> None:
        """Raise UsageError for arguments that are no pairs of different interfaces."""
        ends = self.cables(arguments)
        names = [name for end in ends for name in (end.tester, end.switch)]
        if arguments and not all(names):
            raise UsageError(f'wire "{self.name}:{arguments}": name pairs of interfaces, --wire {self.name}:eth1=eth2')
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise UsageError(f'wire "{self.name}:{arguments}": interface {twice} is named twice')

    def tester_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the tester's interface."""
        return _planed_port(port, links.ends[cable].tester)

    def far_port(self, port: Port, cable: str, links: LinkSettings) -> Port:
        """Return the switch's interface."""
        return _planed_port(port, links.ends[cable].switch)

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the switch's interface."""
        return replace(port, kind="af_xdp", interface=links.ends[cable].switch, ring_size=RING)

    def makes_veth_pairs(self, arguments: str) -> bool:
        """Return whether the user named no interfaces."""
        return not arguments

    def cables(self, arguments: str) -> tuple[Ends, ...]:
        """Return the pairs that the user named."""
        parts = (cable.partition("=") for cable in arguments.split(",") if cable)
        return tuple(Ends(tester.strip(), switch.strip()) for tester, _, switch in parts)

    @contextmanager
    def hold(self, arguments: str) -> Iterator[tuple[str, ...]]:
        """Check that the kernel, this user and the interfaces can do it; sockets undo themselves when they close."""
        from planebench.host.interfaces import xdp_refusal  # pages know wires, but load nothing of the host

        if reason := xdp_refusal([name for end in self.cables(arguments) for name in (end.tester, end.switch)]):
            raise UsageError(f'wire "{self.name}": {reason}')
        yield ()


def _planed_port(port: Port, interface: str) -> Port:
    device = af_xdp_devargs(f"net_af_xdp_{port.name}", interface)
    return replace(port, device=device, ring_size=max(port.ring_size or 0, RING))


register(AfXdp())
