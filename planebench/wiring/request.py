# SPDX-License-Identifier: BSD-3-Clause
"""The request to start a switch: its ports, their connections, and its CPUs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from planebench.model.topology import Vnf, topology_port

VnfInterface = Literal["vhost-user", "veth", "vf"]
"""The interface of VNFs; ``vf`` is a virtual function of the NIC, which is the switch."""


@dataclass(frozen=True, slots=True)
class SwitchPort:
    """A port that the switch has to open.

    ``virtio-user``: the switch is the virtio driver and connects to ``path`` (the emulated NIC: the tester listens).
    ``memif``: the switch is the memif client (slave), interface id 0, and connects to the socket ``path``.
    ``vhost-user``: the switch is the device and listens on ``path`` (a VNF's interface, or a vhost wire).
    ``pci``: the NIC with the PCI address ``address``, which no other process may probe.
    ``af_packet``: the kernel interface ``interface``: a veth wire, or a VNF's interface of a switch in the kernel.
    ``af_xdp``: the same by an AF_XDP socket.
    ``vf``: a virtual function of the NIC.
    """

    name: str
    kind: Literal["virtio-user", "memif", "vhost-user", "af_packet", "af_xdp", "pci", "vf"]
    path: Path | None = None
    interface: str | None = None
    address: str | None = None
    ring_size: int = 256

    @property
    def of_vnf(self) -> bool:
        """Return whether it is the vhost-user interface of a VNF; on a vhost wire a wire has one, too."""
        return self.kind == "vhost-user" and topology_port(self.name).side == "vnf"


@dataclass(frozen=True, slots=True)
class Station:
    """A VNF behind one port: frames to its ``mac`` from the first wire are for it.

    ``routes``: number of routes of its synthetic FIB (docs/design/fib-offload.md), for a switch that forwards in its
    place.
    """

    port: str
    mac: str
    routes: int = 0


@dataclass(frozen=True, slots=True)
class SwitchRequest:
    """The request to start a switch. ``cross_connects`` pairs port names; traffic flows both ways.

    With ``stations`` there are no cross-connects: a frame goes to the station with its destination MAC, and a frame to
    ``monitor_mac`` leaves by the last wire.
    """

    ports: tuple[SwitchPort, ...]
    cross_connects: tuple[tuple[str, str], ...]
    cpu: int
    """The core the switch forwards on; the first of them, if it has several."""
    control_cpus: frozenset[int]
    """CPUs for all threads of the switch that do not forward."""
    workdir: Path
    """Private, short (sockets live here), removed by the harness."""
    hugepages: bool
    max_frame_bytes: int = 1518
    netns_pid: int | None = None
    """Process whose network namespace the switch must live in (kernel interfaces)."""
    queues: int = 1
    """Queue pairs of each port: as many as the switch has workers, or a VNF cores."""
    more_cpus: tuple[int, ...] = ()
    """Further cores to forward on, for a switch that has queues for them."""
    tsc_hz: int | None = None
    """TSC frequency as the tester measured it, for a switch that counts in ns; None where there is no tester yet."""
    stations: tuple[Station, ...] = ()
    monitor_mac: str = ""
    bare: Vnf | None = None
    """The network function that is to run between the two wires, in the place of a switch and its VNFs."""
    macs: tuple[str, ...] = ()
    """The MAC addresses of these VNFs."""
    updates: str = ""
    """The port of a station whose control sends FIB messages; empty: nobody does."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """Return all cores that forward."""
        return (self.cpu, *self.more_cpus)

    @property
    def worker_cpus(self) -> tuple[int, ...]:
        """Return the core of each worker: one worker per queue while there are cores, as two would share its time."""
        return self.cpus[: self.queues]
