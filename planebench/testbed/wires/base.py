# SPDX-License-Identifier: BSD-3-Clause
"""The interface of a wire: the ports at its two ends, what has to exist before, and how it is calibrated."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Literal

from planebench.model.errors import UsageError
from planebench.model.topology import Topology, TopologyPort
from planebench.model.wire import Wire, wire_arguments, wire_named
from planebench.planed.document import Port
from planebench.testbed.request import Ends, LinkSettings, LinkSide, SwitchPort, VnfInterface, af_packet_devargs


class WireKind(Wire, ABC):
    """A wire with everything that brings it up.

    ``cable`` is the name of one wire of a topology, ``n0``: ``links.ends[cable]`` are its devices, and
    ``links.socket(cable)`` is its socket.
    """

    ceilings: Literal["all", "wires", "drivers", "measured"]
    """What a tester that is connected to itself by this wire tells of its ceilings.

    ``all``: the far end is driven as a VNF drives its interface, so the cycles of both ends give every pair of ends.
    ``wires``: they give the ceiling from wire to wire only. ``drivers``: the tester's end is driven as a VNF drives its
    interface, so the ceiling from wire to wire is that of every pair. ``measured``: both ends are of the same driver,
    and the rate from one to the other is the ceiling from wire to wire."""
    switch_listens: bool = False
    """Whether the tester's end connects to the switch's: it comes up after it."""
    between_hosts: bool = False
    """Whether it can connect two hosts, by devices that the user names."""
    queues_differ: bool = False
    """Whether its ends may have different numbers of queue pairs, as NICs that spread what they receive by flows."""
    kernel_interfaces: bool = False
    """Whether both ends are interfaces of the kernel: it may send frames of its own, and takes frames in its queues."""

    @abstractmethod
    def planed_port(self, port: Port, cable: str, links: LinkSettings, side: LinkSide = "tester") -> Port:
        """Return the tester's port at its end; ``port`` has the name, queues and the rest.

        For calibration, which has both ends, it is also asked for a port of the tester at the ``side`` of the switch.
        """

    @abstractmethod
    def switch_port(self, port: SwitchPort, cable: str, links: LinkSettings) -> SwitchPort:
        """Return the switch's port; ``port`` has the name and the ring size."""

    def receive_queue(self, links: LinkSettings) -> int:
        """Return the queue on which the tester receives, if it is not that on which it sends."""
        return 0

    def makes_veth_pairs(self, arguments: str) -> bool:
        """Return whether planebench makes a veth pair for each wire, in a network namespace of its own."""
        return False

    def cables(self, arguments: str) -> tuple[Ends, ...]:
        """Return the devices that the user named, in the order of the wires of a topology; none if they are made."""
        return ()

    def loop(self) -> Ends | None:
        """Return the two devices by which a tester is connected to itself, if they come to be as they are opened."""
        return None

    def hold(self, arguments: str, side: LinkSide | None = None) -> AbstractContextManager[tuple[str, ...]]:
        """Return what keeps the named devices ready as long as a command measures, and then gives them back.

        ``side``: the one whose devices are on this host; None for both. It yields what the user has to know. Raises
        UsageError, with nothing changed, for devices that cannot be used.
        """
        return nullcontext(())

    def devices(self, arguments: str, side: LinkSide | None) -> list[str]:
        """Return the named devices of a side, or of both. Raises UsageError if one is named twice."""
        found = [device for ends in self.cables(arguments) for device in ends.of(side)]
        if twice := sorted({device for device in found if found.count(device) > 1}):
            raise UsageError(
                f'wire "{self.name}:{arguments}": {twice[0]} is named twice; each end of a cable is a port of its own'
            )
        return found

    def fitted(self, port: SwitchPort) -> SwitchPort:
        """Return a port of the switch with the ring that its device takes, once it is held."""
        return port


def wire_kind(wire: str) -> WireKind:
    """Return the wire of ``NAME`` or ``NAME:ARGUMENTS``. Raises UsageError for an unknown one."""
    found = wire_named(wire)
    if not isinstance(found, WireKind):
        raise UsageError(f"wire {found.name} is described, but cannot be brought up: it is no WireKind")
    return found


def cabled(topology: Topology, interface: VnfInterface) -> tuple[str, ...]:
    """Return the wires of a topology that need a cable: only the first if VNFs have virtual functions."""
    return topology.wire_ports[:1] if interface == "vf" else topology.wire_ports


def named_ends(cables: Sequence[str], wire: str) -> dict[str, Ends]:
    """Return the devices that the user named for each wire of a topology; empty for a wire without named devices.

    Raises UsageError if there are fewer than wires."""
    found = wire_kind(wire).cables(wire_arguments(wire))
    if found and len(found) < len(cables):
        named = f"{len(found)} cable{'s' if len(found) > 1 else ''}"
        raise UsageError(f'wire "{wire}" names {named}, but {len(cables)} are needed')
    return dict(zip(cables, found, strict=False))


def is_kernel_interface(port: TopologyPort, links: LinkSettings) -> bool:
    """Return whether a port of a topology is an interface of the kernel."""
    return wire_kind(links.wire).kernel_interfaces if port.side == "wire" else links.vnf_interface == "veth"


def veth_pairs(topology: Topology, links: LinkSettings) -> list[str]:
    """Return the ports that are ends of a veth pair that planebench makes, and the link between two switches that is
    one: by the first of its ports."""
    made = wire_kind(links.wire).makes_veth_pairs(wire_arguments(links.wire))
    ports = [port.name for port in topology.ports if (made if port.side == "wire" else links.vnf_interface == "veth")]
    return [*ports, *(topology.link[:1] if topology.link and made else ())]


def af_packet_port(port: Port, interface: str, links: LinkSettings) -> Port:
    """Return a port of DPDK's af_packet driver on a kernel interface."""
    arguments = af_packet_devargs(interface, port.ring_size or links.ring_size, links.max_frame_bytes)
    return replace(port, device=f"net_af_packet_{port.name},{arguments}")
