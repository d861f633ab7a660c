# SPDX-License-Identifier: BSD-3-Clause
"""The wire netmap: ports of a VALE switch, which its clients open by /dev/netmap."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from dataclasses import replace

from planebench.model.wire import register
from planebench.planed.document import Port
from planebench.testbed.request import Ends, LinkSettings, LinkSide, SwitchPort
from planebench.testbed.wires.base import WireKind

_numbers = itertools.count()


def vale_name() -> str:
    """Return a name that no other VALE switch of this machine has. netmap takes at most 15 letters and digits."""
    return f"vale{os.getpid():x}x{next(_numbers):x}"


def vale_ports(cross_connects: Iterable[tuple[str, str]]) -> dict[str, Ends]:
    """Return the devices of the ports of these cross-connects: each is a VALE switch with two clients."""
    found: dict[str, Ends] = {}
    for pair in cross_connects:
        switch = vale_name()
        found |= {port: Ends(f"{switch}:{port}", f"{switch}:{port}") for port in pair}
    return found


class Netmap(WireKind):
    """The tester is a client of the switch itself: what stands in for a NIC is the port of a VNF.

    Of calibration both ends are those of a pipe, which has no switch.
    """

    name = "netmap"
    order = 39
    title = "Netmap (ports of VALE)"
    ceilings = "measured"
    vnf_ports = True

    def planed_port(self, port: Port, cable: str, links: LinkSettings, side: LinkSide = "tester") -> Port:
        """Return the port of a client."""
        return replace(port, kind="netmap", device=getattr(links.ends[cable], side))

    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the name of the port."""
        return replace(port, kind="netmap", interface=links.ends[cable].switch)

    def loop(self) -> Ends | None:
        """Return the ends of a pipe."""
        name = vale_name()
        return Ends(f"{name}:p{{0", f"{name}:p}}0")


register(Netmap())
