# SPDX-License-Identifier: BSD-3-Clause
"""Wire memif: rings in shared memory, of which the tester is the server, with a data path of planed's own."""

from __future__ import annotations

from dataclasses import replace

from planebench.model.wire import register
from planebench.planed.document import Port
from planebench.testbed.links import LinkSettings
from planebench.testbed.request import SwitchPort
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
