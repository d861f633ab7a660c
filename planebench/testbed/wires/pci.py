# SPDX-License-Identifier: BSD-3-Clause
"""Wire pci: a cable between two NICs, one of the tester and one of the switch, each driven by DPDK."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from planebench.model.dimensions import is_tester_port
from planebench.model.errors import UsageError
from planebench.model.wire import register
from planebench.planed.document import Port
from planebench.testbed.request import Ends, LinkSettings, LinkSide, SwitchPort
from planebench.testbed.wires.base import WireKind

if TYPE_CHECKING:
    from planebench.host.planed_program import RingLimits


class Pci(WireKind):
    """Each end is a NIC that is bound to vfio-pci (or has a bifurcated driver) as long as a command measures."""

    name = "pci"
    order = 40
    title = "PCI (real NICs)"
    arguments = "TESTER=SWITCH,TESTER=SWITCH"
    replaces_nics = False
    needs_drivers = True
    ceilings = "measured"
    between_hosts = True
    queues_differ = True

    def __init__(self) -> None:
        self._rings: dict[str, RingLimits] = {}
        """Of the NICs that were held so far, by address."""

    def check(self, arguments: str) -> None:
        """Raise UsageError for what is no list of cables between PCI addresses, each named once at its side."""
        super().check(arguments)
        self.devices(arguments, "tester")
        self.devices(arguments, "switch")

    def planed_port(self, port: Port, cable: str, links: LinkSettings, side: LinkSide = "tester") -> Port:
        """Return the NIC of a side."""
        address, size = getattr(links.ends[cable], side), port.ring_size
        return replace(port, device=address, ring_size=size and self._ring_size(address, size))

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the switch's NIC."""
        return self.fitted(replace(port, kind="pci", address=links.ends[cable].switch))

    def fitted(self, port: SwitchPort) -> SwitchPort:
        """Return a port of the switch with the ring that its NIC takes, once it is held."""
        return replace(port, ring_size=self._ring_size(port.address, port.ring_size))

    def cables(self, arguments: str) -> tuple[Ends, ...]:
        """Return the NICs at the ends of each cable. Raises UsageError for text of another form."""
        from planebench.host.pci import full_address

        found = []
        for text in arguments.split(","):
            tester, equals, switch = text.partition("=")
            if not equals:
                raise UsageError(
                    f'wire "pci": "{text}" is no cable; give TESTER=SWITCH, two PCI addresses such as '
                    "0000:3b:00.0=0000:af:00.0"
                )
            found.append(Ends(tester if is_tester_port(tester) else full_address(tester), full_address(switch)))
        return tuple(found)

    @contextmanager
    def hold(self, arguments: str, side: LinkSide | None = None) -> Iterator[tuple[str, ...]]:
        """Bind the NICs of a side, or of both, to vfio-pci as long as the context lasts; yield what the user has to
        know.

        From then on all ports have rings that their NICs take: see :class:`RingLimits`.
        """
        from planebench.host.pci import nic
        from planebench.host.pci_binding import bound
        from planebench.host.planed_program import ring_limits

        nics = self.devices(arguments, side)
        for cable in self.cables(arguments):
            # The kernel has the NICs until they are bound.
            ends = [nic(address) for address in cable.of(side)]
            for end in ends:
                if end.link is False:
                    raise UsageError(f"NIC {end.address} ({', '.join(end.interfaces)}) has no link; is the cable in?")
            if len({end.speed_mbps for end in ends if end.speed_mbps is not None}) > 1:
                told = " and ".join(f"{end.address} has {end.speed_mbps} Mb/s" for end in ends)
                raise UsageError(f"{told}: these are not the ends of one cable; is the cabling as --wire says?")
        with bound(nics) as taken:
            if missing := [address for address in nics if address not in self._rings]:
                self._rings |= ring_limits(missing)
            yield taken.warnings

    def _ring_size(self, address: str, wanted: int) -> int:
        limits = self._rings.get(address)
        return limits.nearest(wanted) if limits else wanted


register(Pci())
