# SPDX-License-Identifier: BSD-3-Clause
"""A kind of wire as plans and pages know it, and the registry of all wires by name.

The wires themselves are the modules of planebench.testbed.wires, which register when planebench is imported. Nobody
else compares names of wires: ask a property of the wire.
"""

from __future__ import annotations

from typing import Annotated

from planebench.model.dimensions import RegisteredName, Registry
from planebench.model.errors import UsageError


class Wire:
    """A kind of wire: what stands in for the cable between a port of the tester and a NIC of the switch.

    ``order`` is its place in lists. A wire with ``arguments`` is written ``NAME:ARGUMENTS``; they are optional where
    ``arguments_optional`` says so.
    """

    name: str
    order: int
    title: str
    """For people; its first word begins a sentence: ``Memif (shared memory)``."""
    arguments: str = ""
    """The form of its arguments, e.g. ``TESTER=SWITCH,...``; empty for a wire without any."""
    arguments_optional: bool = False
    standard_frames_driver: str = ""
    """The driver that refuses frames over 1518 B; empty if it takes jumbo frames."""
    own_rings: bool = False
    """Whether its rings have a size of their own, whatever the plan says."""
    replaces_nics: bool = True
    """Whether it stands in for a NIC; False for a NIC."""
    vnf_ports: bool = False
    """True if both kinds of ports of the switch are the same: what stands in for a NIC is the port of a VNF."""
    needs_drivers: bool = False
    """True if its ports need drivers that planed-static does not have."""

    switch_memory: bool = False
    """True if the switch owns the memory of the rings, False if the tester or the kernel owns it."""

    @property
    def needs_arguments(self) -> bool:
        """Return whether its name alone is not enough."""
        return bool(self.arguments) and not self.arguments_optional

    def check(self, arguments: str) -> None:
        """Raise UsageError for arguments that this wire cannot have."""
        if arguments and not self.arguments:
            raise UsageError(f'wire "{self.name}:{arguments}": {self.name} has no arguments; use --wire {self.name}')
        if self.needs_arguments and not arguments:
            raise UsageError(f'wire "{self.name}" needs arguments: --wire {self.name}:{self.arguments}')


WIRES = Registry[Wire]("wire")
"""Every wire by name, in their order."""
register = WIRES.register
WireName = Annotated[str, RegisteredName(WIRES)]
WireChoice = Annotated[str, RegisteredName(WIRES, arguments=True)]
"""The wire of a plan: ``NAME`` or ``NAME:ARGUMENTS``."""


def wire_name(wire: str) -> str:
    """Return the name in ``NAME`` or ``NAME:ARGUMENTS``."""
    return wire.partition(":")[0]


def wire_arguments(wire: str) -> str:
    """Return the arguments in ``NAME:ARGUMENTS``; empty for a name alone."""
    return wire.partition(":")[2]


def wire_named(wire: str) -> Wire:
    """Return the wire of a name, with or without arguments; raise UsageError for an unknown one."""
    return WIRES.named(wire_name(wire))


def parse_wire(text: str) -> str:
    """Return a wire that a user named, ``NAME`` or ``NAME:ARGUMENTS``; raise UsageError for one that is not valid."""
    wire_named(text).check(wire_arguments(text))
    return text


def split_wires(text: str) -> list[str]:
    """Return the wires in a list with commas; what begins with no name of a wire belongs to the arguments before it."""
    found: list[str] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        if found and wire_arguments(found[-1]) and wire_name(item) not in WIRES:
            found[-1] += f",{item}"
        else:
            found.append(item)
    return found
