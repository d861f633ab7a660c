# SPDX-License-Identifier: BSD-3-Clause
"""A scenario as a graph: ports of the switch, cross-connects between them, VNFs behind them, and the two traffic ends.

Port names say the side: ``n*`` are wires (what stands in for a NIC), ``v*`` are interfaces of VNFs. The generator and
the monitor sit at the two ends; in p2v and v2v an end is inside a VNF, and that VNF is the generator or monitor itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from planebench.model.errors import UsageError
from planebench.model.hosting import Hosting
from planebench.model.option import Value
from planebench.model.records import ScenarioName
from planebench.scenarios.registry import parse_chain_length, parse_vnf_count
from planebench.vnfs.chain import ChainVnf, parse_chain
from planebench.vnfs.registry import VNFS

ONE_PORTED = ", ".join(name for name, kind in VNFS.items() if kind.one_port)
MONITOR_MAC = "02:00:00:00:03:01"
"""Where VNFs side by side send everything: behind the last wire."""

Side = Literal["wire", "vnf"]


@dataclass(frozen=True, slots=True)
class TopologyPort:
    """A port of the switch, and what is on its other side."""

    name: str
    side: Side


@dataclass(frozen=True, slots=True)
class Vnf:
    """A network function between two ports. The same port twice is an echo: it sends every frame back.

    ``kind`` and ``settings`` are those of its task in planed; ``memory_bytes`` is what it needs there at most. A VNF
    that is the user's own has no kind. ``files``: what its settings name.
    ``mac``: of VNFs side by side, by which frames find it. ``routes``: of its synthetic FIB (traffic.routes); 0 where
    it has none.
    """

    name: str
    ports: tuple[str, str]
    kind: str = "l2fwd"
    settings: Mapping[str, Any] = field(default_factory=dict)
    memory_bytes: int = 0
    mac: str = ""
    routes: int = 0
    hosting: Hosting = "process"
    hosting_values: Mapping[str, Value] = field(default_factory=dict)
    """Options of its hosting, by key."""
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Topology:
    """What has to be built. ``ends`` are the ports (a, b) where traffic enters and leaves; a is the nearer one."""

    scenario: ScenarioName
    chain_length: int
    ports: tuple[TopologyPort, ...]
    cross_connects: tuple[tuple[str, str], ...]
    vnfs: tuple[Vnf, ...]
    ends: tuple[str, str]
    chain: str = ""
    """The functions of a loopback as they were named, or the one of VNFs side by side; empty for l2fwd."""

    @property
    def parallel(self) -> bool:
        """Whether its VNFs are side by side, each behind one port and in a process of its own."""
        return self.scenario == "parallel"

    @property
    def chained_vnfs(self) -> tuple[Vnf, ...]:
        """The VNFs that are tasks of the tester."""
        return () if self.parallel else tuple(vnf for vnf in self.vnfs if vnf.hosting == "process")

    @property
    def hosted_vnfs(self) -> tuple[Vnf, ...]:
        """Those that are not: each is a process, or more, of its own."""
        return self.vnfs if self.parallel else tuple(vnf for vnf in self.vnfs if vnf.hosting != "process")

    @property
    def hosted_numbers(self) -> tuple[int, ...]:
        """Their places among all VNFs."""
        hosted = self.hosted_vnfs
        return tuple(number for number, vnf in enumerate(self.vnfs) if vnf in hosted)

    @property
    def hosted_ports(self) -> frozenset[str]:
        """The ports behind which these are."""
        return frozenset(port for vnf in self.hosted_vnfs for port in vnf.ports)

    @property
    def wire_ports(self) -> tuple[str, ...]:
        """Names of the ports that stand in for a NIC."""
        return tuple(port.name for port in self.ports if port.side == "wire")

    @property
    def vnf_ports(self) -> tuple[str, ...]:
        """Names of the ports whose other side is a VNF."""
        return tuple(port.name for port in self.ports if port.side == "vnf")

    @property
    def echo(self) -> bool:
        """Whether end b sends everything back to end a, where it is both generated and monitored."""
        return any(vnf.ports == (self.ends[1], self.ends[1]) for vnf in self.vnfs)


def build(
    scenario: ScenarioName,
    chain_length: int = 0,
    *,
    chain: str = "",
    echo: bool = False,
    hosting: Hosting = "process",
) -> Topology:
    """The topology of a scenario. ``chain_length`` is 1..5 for loopback, 1..63 VNFs for parallel and 0 for the others.

    ``chain`` names the functions of a loopback chain (planebench.vnfs), or what each VNF of parallel is; without it
    they are l2fwd. Reads the files of settings that it names: leave it out where only ports and flows matter.
    ``hosting``: what those of them run in that say nothing else.

    ``echo`` (v2v only) is how v2v latency is measured: the second VNF runs l2fwd and sends the packet back
    (METHODOLOGY section 2). Raises UsageError for a chain length or an echo that does not fit the scenario.
    """
    if echo and scenario != "v2v":
        raise UsageError(f"echo is only for v2v, not for {scenario}: leave it out")
    if scenario == "loopback":
        return _loopback(parse_chain_length(chain_length), chain, hosting)
    if scenario == "parallel":
        return _parallel(parse_vnf_count(chain_length), chain, hosting)
    if chain:
        raise UsageError(f"chain {chain} does not fit {scenario}: only loopback and parallel have network functions")
    if chain_length != 0:
        raise UsageError(f"chain length {chain_length} does not fit {scenario}: only loopback has a chain")
    if scenario == "p2p":
        return _pair(scenario, "n0", "n1")
    if scenario == "p2v":
        return _pair(scenario, "n0", "v0")
    return _pair(scenario, "v0", "v1", (Vnf("echo", ("v1", "v1")),) if echo else ())


def _port(name: str) -> TopologyPort:
    return TopologyPort(name, "wire" if name.startswith("n") else "vnf")


def _pair(scenario: ScenarioName, a: str, b: str, vnfs: tuple[Vnf, ...] = ()) -> Topology:
    """Two ports, one cross-connect."""
    return Topology(scenario, 0, (_port(a), _port(b)), ((a, b),), vnfs, (a, b))


def _loopback(length: int, chain: str, hosting: Hosting) -> Topology:
    """n0-v0 [VNF 0] v1-v2 [VNF 1] v3- ... -n1: the list of ports in path order, cross-connected two by two."""
    functions = parse_chain(chain or ",".join(["l2fwd"] * length))
    if len(functions) != length:
        raise UsageError(f"chain {chain} has {len(functions)} functions, not {length}")
    inner = tuple(f"v{i}" for i in range(2 * length))
    path = ("n0", *inner, "n1")
    return Topology(
        scenario="loopback",
        chain_length=length,
        ports=tuple(map(_port, path)),
        cross_connects=tuple(zip(path[::2], path[1::2], strict=True)),
        vnfs=tuple(_vnf(k, function, hosting) for k, function in enumerate(functions)),
        ends=("n0", "n1"),
        chain=chain,
    )


def _parallel(count: int, chain: str, hosting: Hosting) -> Topology:
    """n0, n1, and VNF k behind port vk: the switch gives it what is sent to its MAC; it sends all to the monitor's."""
    functions = parse_chain(chain or "l2fwd")
    if len(functions) != 1:
        raise UsageError(f"chain {chain} has {len(functions)} functions; VNFs side by side are all of one kind")
    function, settings = functions[0], functions[0].settings()
    if function.own:
        raise UsageError(f"{function.text}: VNFs side by side are functions of planed. Valid: {ONE_PORTED}")
    if not function.kind.one_port:
        raise UsageError(f"{function.kind.name} takes two ports; VNFs side by side have one. Valid: {ONE_PORTED}")
    routes = int(settings.get("synthetic", 0))
    return Topology(
        scenario="parallel",
        chain_length=count,
        ports=tuple(map(_port, ("n0", "n1", *(f"v{k}" for k in range(count))))),
        cross_connects=(),
        vnfs=tuple(
            replace(
                _made(function, hosting, settings),
                name=f"vnf{k}",
                ports=(f"v{k}", f"v{k}"),
                mac=vnf_mac(k),
                routes=routes,
            )
            for k in range(count)
        ),
        ends=("n0", "n1"),
        chain=chain,
    )


def vnf_mac(number: int) -> str:
    """Of VNF 0, 1, ... side by side."""
    return f"02:00:00:00:02:{number + 1:02x}"


def _vnf(number: int, function: ChainVnf, hosting: Hosting) -> Vnf:
    made = _made(function, hosting, function.settings())
    return replace(made, name=f"vnf{number}", ports=(f"v{2 * number}", f"v{2 * number + 1}"))


def _made(function: ChainVnf, hosting: Hosting, settings: Mapping[str, Any]) -> Vnf:
    """A VNF that has no place yet."""
    return Vnf(
        "",
        ("", ""),
        function.kind.kind,
        settings,
        function.kind.memory_bytes(settings),
        hosting=function.hosting or hosting,
        hosting_values=function.hosting_values(),
        files=function.named_files(),
    )
