# SPDX-License-Identifier: BSD-3-Clause
"""The base of wires whose ends are interfaces of the kernel: veth pairs that are made, or interfaces of the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from planebench.model.errors import UsageError
from planebench.testbed.links import Ends, LinkSide
from planebench.testbed.wires.base import WireKind


class KernelWire(WireKind):
    """Both ends are interfaces of the kernel, which the user may name; between two hosts they have to be named."""

    arguments = "TESTER=SWITCH,..."
    arguments_optional = True
    ceilings = "measured"
    kernel_interfaces = True
    between_hosts = True

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
        if reason := self.interfaces_refusal(self.devices(arguments, side)):
            raise UsageError(f'wire "{self.name}": {reason}')
        yield ()

    def interfaces_refusal(self, names: list[str]) -> str:
        """Return why sockets cannot take all frames of these interfaces, as a sentence; empty if they can."""
        from planebench.host.interfaces import refusal  # pages know wires, but load nothing of the host

        return refusal(names)
