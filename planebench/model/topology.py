# SPDX-License-Identifier: BSD-3-Clause
"""A scenario as a graph: ports of the switch, cross-connects between them, VNFs behind them, and the two traffic ends.

Port names say the side: ``n*`` are wires (what stands in for a NIC), ``v*`` are interfaces of VNFs. The generator and
the monitor sit at the two ends; in p2v and v2v an end is inside a VNF, and that VNF is the generator or monitor itself.
Where it is hosted, it is one of the VNFs of the topology, of the kind ``end``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from planebench.model.dimensions import HostingName
from planebench.model.switch import Value

MONITOR_MAC = "02:00:00:00:03:01"
"""The destination of VNFs side by side: behind the last wire."""

END = "end"
"""Kind of a hosted VNF that is an end itself: its tasks are generator and monitor of its port."""

Side = Literal["wire", "vnf"]
"""A port that stands in for a NIC, or the interface of a VNF."""


@dataclass(frozen=True, slots=True)
class TopologyPort:
    """A port of the switch, and what is on its other side."""

    name: str
    side: Side


@dataclass(frozen=True, slots=True)
class Vnf:
    """A network function between two ports. The same port twice: it sends every frame back.

    ``kind`` and ``settings`` are those of its task in planed; ``memory_bytes`` is what it needs there at most. A VNF
    that is the user's own has no kind. ``files``: what its settings name.
    ``mac``: of VNFs side by side, by which frames find it. ``routes``: of its synthetic FIB (traffic.routes); 0 where
    it has none.
    """

    name: str = ""
    ports: tuple[str, str] = ("", "")
    kind: str = "l2fwd"
    settings: Mapping[str, Any] = field(default_factory=dict)
    sending: Mapping[str, Value] = field(default_factory=dict)
    """Its ``send_burst`` and ``drain_us``, where frames wait for each other; empty: as the plan says."""
    cores: int = 1
    """Its cores: each has a queue pair of the ports, and a worker."""
    memory_bytes: int = 0
    mac: str = ""
    routes: int = 0
    hosting: HostingName = "process"
    hosting_values: Mapping[str, Value] = field(default_factory=dict)
    """Options of its hosting, by key."""
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The topology to build. Traffic enters and leaves at ``ends``, the ports (a, b); a is the nearer one."""

    ports: tuple[TopologyPort, ...]
    cross_connects: tuple[tuple[str, str], ...]
    ends: tuple[str, str]
    vnfs: tuple[Vnf, ...] = ()
    scenario: str = ""
    chain_length: int = 0
    side_by_side: bool = False
    """True if its VNFs are side by side, each behind one port and in a separate process."""
    link: tuple[str, str] | None = None
    """The two ports by which a second switch is connected to the first. They are none of ``ports``; the cross-connects
    from the one with the second of them on are those of the second switch."""
    chain: str = ""
    """The functions of a chain as they were named, or the one of VNFs side by side; empty for l2fwd."""
    bare: Vnf | None = None
    """The function that is in the place of switch and VNFs, on the wires."""
    macs: tuple[str, ...] = ()
    """The addresses of the VNFs that it stands for."""

    @property
    def destinations(self) -> tuple[str, ...]:
        """Return the addresses to which the frames for VNFs side by side go, in turn."""
        return self.macs or tuple(vnf.mac for vnf in self.vnfs)

    @property
    def routes(self) -> int:
        """Return the number of routes from which destination IPs are drawn: those of one table, synthetic."""
        return self.bare.routes if self.bare is not None else self.vnfs[0].routes if self.vnfs else 0

    @property
    def cores_of_vnfs(self) -> tuple[int, ...]:
        """Return the number of cores of each VNF."""
        return tuple(vnf.cores for vnf in self.vnfs)

    @property
    def vnf_cores(self) -> int:
        """Return the largest number of cores of a VNF, which is the least number of queue pairs of its ports."""
        return max(self.cores_of_vnfs, default=1)

    @property
    def chained_vnfs(self) -> tuple[Vnf, ...]:
        """Return the VNFs that are tasks of the tester."""
        return () if self.side_by_side else tuple(vnf for vnf in self.vnfs if vnf.hosting == "process")

    @property
    def hosted_vnfs(self) -> tuple[Vnf, ...]:
        """Return the VNFs that are no tasks of the tester: each is one or more processes."""
        return self.vnfs if self.side_by_side else tuple(vnf for vnf in self.vnfs if vnf.hosting != "process")

    @property
    def hosted_numbers(self) -> tuple[int, ...]:
        """Return the positions of the hosted VNFs among all VNFs."""
        hosted = self.hosted_vnfs
        return tuple(number for number, vnf in enumerate(self.vnfs) if vnf in hosted)

    @property
    def hosted_ports(self) -> frozenset[str]:
        """Return the ports behind which these are."""
        return frozenset(port for vnf in self.hosted_vnfs for port in vnf.ports)

    @property
    def idle_tester(self) -> bool:
        """Return whether the tester has no task, because all ends are hosted."""
        return self.hosted_ends == self.ends

    @property
    def wire_ports(self) -> tuple[str, ...]:
        """Return the names of the ports that replace a NIC."""
        return tuple(port.name for port in self.ports if port.side == "wire")

    @property
    def vnf_ports(self) -> tuple[str, ...]:
        """Return the names of the ports that connect a VNF."""
        return tuple(port.name for port in self.ports if port.side == "vnf")

    @property
    def hosted_ends(self) -> tuple[str, ...]:
        """Return the ends whose generator and monitor are no tasks of the tester."""
        return tuple(end for end in self.ends if end in self.hosted_ports)


def topology_port(name: str) -> TopologyPort:
    """Return the port of a name, which tells its side."""
    return TopologyPort(name, "wire" if name.startswith("n") else "vnf")
