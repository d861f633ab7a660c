# SPDX-License-Identifier: BSD-3-Clause
"""The realization of the ports of one topology: on which wire, with which rings, and the devices at their ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from planebench.model.dimensions import ClockChoice, is_tester_port
from planebench.planed.document import Document
from planebench.testbed.request import VnfInterface

LinkSide = Literal["tester", "switch"]
"""One end of a wire."""


@dataclass(frozen=True, slots=True)
class Ends:
    """The two devices of one wire: names of kernel interfaces, PCI addresses, or a port of an external tester."""

    tester: str
    switch: str

    def of(self, side: LinkSide | None) -> tuple[str, ...]:
        """Return the device of one side; both for None. A port of an external tester is no device."""
        found = (self.tester, self.switch) if side is None else (self.tester if side == "tester" else self.switch,)
        return tuple(device for device in found if not is_tester_port(device))


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """The realization of the ports of one topology; equal for every switch of a comparison.

    ``workdir`` is private to the topology and short: sockets live in it (107 characters at most, with their name).
    ``name`` is the tester's EAL file prefix and must differ between testers that live at the same time.
    ``ends`` has the devices of each port that is no socket.
    """

    workdir: Path
    wire: str = "virtio"
    """``NAME`` or ``NAME:ARGUMENTS``."""
    ring_size: int = 256
    hugepages: bool = False
    max_frame_bytes: int = 1518
    name: str = "tester"
    nice: int | None = None
    queues: int = 1
    """Queue pairs of every port (``Adapter.queued_wires``)."""
    memif_receive_queue: int = 0
    """The queue on which a tester with a memif wire receives (``Adapter.memif_send_queue``); it sends on queue 0."""
    ends: Mapping[str, Ends] = field(default_factory=dict)
    vnf_interface: VnfInterface = "vhost-user"
    updates: str = ""
    """The port of a VNF side by side with others at which the tester is its control, and sends its FIB messages."""
    clock: ClockChoice = "auto"
    """The clock of the ports of the tester."""
    inside: Document | None = None
    """Ports and tasks of a switch that is part of the tester: an emulated NIC, on the first wire alone."""

    @property
    def one_wire(self) -> bool:
        """Return whether frames come back by the first wire, as of a NIC that switches: it does not join its ports."""
        return self.vnf_interface == "vf" or self.inside is not None

    def socket(self, port: str) -> Path:
        """Return the unix socket of a port, the same path on both sides."""
        return self.workdir / f"{port}.sock"
