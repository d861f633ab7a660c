# SPDX-License-Identifier: BSD-3-Clause
"""The scenarios (METHODOLOGY sections 1 and 6) as abstract topologies: ports, cross-connects, VNFs. No I/O.

A scenario is what calls ``register``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import get_args

from planebench.model.chain_name import CHAIN_LENGTH_MAX
from planebench.model.dimensions import HostingName
from planebench.model.errors import UsageError, unknown
from planebench.model.scenario import (
    SCENARIOS,
    Direction,
    Scenario,
    ScenarioName,
    VnfLayout,
    register,
    scenario_named,
    scenarios_with,
    whole_number,
)
from planebench.model.topology import END, Topology, Vnf, topology_port

# Scenario parallel: VNFs side by side between two wires. The switch gives each what is sent to its MAC address, and
# they send everything to one monitor, so traffic goes one way.

VNF_COUNT_MAX = 63
"""The maximum number of VNFs side by side, as in ic16."""


def vnf_mac(number: int) -> str:
    """Return the MAC address of VNF 0, 1, ... side by side."""
    return f"02:00:00:00:02:{number + 1:02x}"


def _parallel(vnfs: tuple[Vnf, ...]) -> Topology:
    """Build n0, n1, and VNF k behind port vk."""
    return Topology(
        ports=tuple(map(topology_port, ("n0", "n1", *(f"v{k}" for k in range(len(vnfs)))))),
        cross_connects=(),
        vnfs=tuple(
            replace(
                vnf,
                name=f"vnf{k}",
                ports=(f"v{k}", f"v{k}"),
                mac=vnf_mac(k),
                routes=int(vnf.settings.get("synthetic", 0)),
            )
            for k, vnf in enumerate(vnfs)
        ),
        ends=("n0", "n1"),
    )


register(
    Scenario(
        name="parallel",
        order=50,
        path="NIC -> switch -> one of N VNFs, by MAC -> switch -> NIC",
        meaning=(
            "N independent VNFs, each with its own MAC address and process; shows many VNFs sharing few switch cores."
        ),
        build=_parallel,
        directions=("unidirectional",),
        vnfs="side-by-side",
        vnfs_max=VNF_COUNT_MAX,
        count_name="number of VNFs",
    )
)


# From a scenario to its topology.


def pair(a: str, b: str) -> Topology:
    """Return two ports with one cross-connect; both are ends."""
    return Topology(ports=(topology_port(a), topology_port(b)), cross_connects=((a, b),), ends=(a, b))


def build(
    scenario: ScenarioName,
    count: int = 0,
    vnfs: Sequence[Vnf] = (),
    *,
    chain: str = "",
    echo: bool = False,
    ends: HostingName = "process",
) -> Topology:
    """Return the topology of a scenario with ``count`` VNFs; those that ``vnfs`` does not define are l2fwd.

    ``vnfs`` have no names and no ports yet; where they are side by side it is the one that all of them are like.
    ``chain`` is their text (planebench.testbed.chain). With ``echo`` one of them is in the place of end b and sends
    every frame back, by which some scenarios measure latency. ``ends`` is the hosting of the ends that are in VNFs.
    Raises UsageError for a number or an echo that does not fit the scenario.
    """
    found = scenario_named(scenario)
    if echo and not found.latency_by_echo:
        echoing_ones = ", ".join(name for name, known in SCENARIOS.items() if known.latency_by_echo)
        raise UsageError(f"echo applies only to {echoing_ones}, not to {scenario}; remove it")
    if not found.has_vnfs and (count or (vnfs and not echo)):
        with_vnfs = " and ".join(name for name, known in SCENARIOS.items() if known.has_vnfs)
        raise UsageError(f"{count} VNFs do not fit {scenario}: only {with_vnfs} have a chain of network functions")
    number = found.parse_count(count) if found.has_vnfs else 0
    made = found.build(tuple(vnfs) if found.chained and vnfs else (*vnfs, Vnf())[:1] * number)
    if echo:  # what leaves v0 comes back to v3, in the same VNF
        back = (ECHO_PORTS[1], "v3")
        made = replace(
            made,
            ports=(*made.ports, *map(topology_port, back)),
            cross_connects=(*made.cross_connects, back),
            ends=(made.ends[0], back[1]),
        )
    ports = [port for port in made.ends if port in made.vnf_ports and ends != "process"]
    pairs = [(ports[0], ports[1])] if echo and ports else [(port, port) for port in ports]
    hosted = [Vnf(f"vnf{number}", pair, END, hosting=ends) for number, pair in enumerate(pairs)]
    if echo:
        hosted.append(replace(next(iter(vnfs), Vnf(hosting=ends)), name="echo", ports=ECHO_PORTS))
    return replace(
        made,
        scenario=scenario,
        chain_length=number,
        side_by_side=found.side_by_side,
        chain=chain,
        vnfs=(*made.vnfs, *hosted),
    )


ECHO_PORTS = ("v1", "v2")
"""The interfaces of the second VNF of v2v, where it sends back (conext19, Table 4)."""


# Scenario bare: one process straight on the two wires, in the place of switch and VNFs. It has the FIBs of all of the
# VNFs that it stands for, and gets their traffic.


def _bare(vnfs: tuple[Vnf, ...]) -> Topology:
    """Build n0, n1, and the function of the VNFs with as many routes as they have together."""
    count, function = len(vnfs), vnfs[0]
    routes = int(function.settings.get("synthetic", 0)) * count
    settings = {**function.settings, "synthetic": routes} if routes else function.settings
    whole = replace(
        function, name="function", settings=settings, memory_bytes=function.memory_bytes * count, routes=routes
    )
    return replace(pair("n0", "n1"), bare=whole, macs=tuple(vnf_mac(number) for number in range(count)))


register(
    Scenario(
        name="bare",
        order=45,
        path="NIC -> one process -> NIC",
        meaning="The function of N VNFs in one process on the wires, without a switch: the baseline of parallel.",
        use="one process on the wires",
        build=_bare,
        directions=("unidirectional",),
        vnfs="side-by-side",
        vnfs_max=VNF_COUNT_MAX,
        count_name="number of VNFs",
        bare=True,
    )
)


# Scenario bridged: a chain of VNFs over two servers (can17's bridging by NIC), here two switches of one machine.

LINK = ("m0", "m1")
"""The ports by which the two switches are connected."""


def _bridged(vnfs: tuple[Vnf, ...]) -> Topology:
    """Build the chain of loopback, with the link in the middle; of an odd number the first switch has one VNF more."""
    whole = build("loopback", len(vnfs), vnfs)
    half = -(-len(vnfs) // 2)
    near, far = whole.cross_connects[half]
    cross_connects = (
        *whole.cross_connects[:half],
        (near, LINK[0]),
        (LINK[1], far),
        *whole.cross_connects[half + 1 :],
    )
    return replace(whole, cross_connects=cross_connects, link=LINK)


register(
    Scenario(
        name="bridged",
        order=42,
        path="NIC -> switch -> VNF 1 -> ... -> switch -> second switch -> ... -> VNF N -> second switch -> NIC",
        meaning=(
            "Service chain of N VNFs over two servers, half of it on each. Here both switches are processes of one "
            "machine, and the cable between them is a virtio link or a veth pair."
        ),
        build=_bridged,
        vnfs="chain",
        vnfs_max=CHAIN_LENGTH_MAX,
        count_name="chain length",
        two_switches=True,
    )
)


# Which ends of a topology send in which direction mode, and which modes a scenario has.


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction of traffic. ``stream`` numbers the sending end: 0 for end a, 1 for end b."""

    sender_port: str
    receiver_port: str
    stream: int

    @property
    def name(self) -> str:
        """Return the name of the direction in a trial: ``n0->v0``."""
        return f"{self.sender_port}->{self.receiver_port}"


def flows(topology: Topology, direction: Direction) -> tuple[Flow, ...]:
    """Return the flows of a direction mode. Raises UsageError with the valid modes."""
    valid = scenario_named(topology.scenario).directions
    if direction not in valid:
        raise UsageError(f"direction {direction} is not valid for {topology.scenario}. Valid: {', '.join(valid)}")
    a, b = topology.ends
    there, back = Flow(a, b, 0), Flow(b, a, 1)
    return {"unidirectional": (there,), "reversed": (back,), "bidirectional": (there, back)}[direction]


layout = cache(build)
"""The topology of a scenario with plain VNFs, made once: for its ports."""


@cache
def flows_of(scenario: ScenarioName, count: int, direction: Direction, echo: bool = False) -> tuple[Flow, ...]:
    """Return the flows of a scenario with ``count`` VNFs in a direction mode."""
    return flows(layout(scenario, count, echo=echo), direction)


def all_flows(topology: Topology) -> tuple[Flow, ...]:
    """Return every flow that a topology can have at once."""
    both_ways = "bidirectional" in scenario_named(topology.scenario).directions
    return flows(topology, "bidirectional" if both_ways else "unidirectional")


# Scenario loopback: a chain of VNFs between two wires.


def _loopback(vnfs: tuple[Vnf, ...]) -> Topology:
    """Build n0-v0 [VNF 0] v1-v2 [VNF 1] v3- ... -n1: ports in path order, cross-connected two by two."""
    path = ("n0", *(f"v{k}" for k in range(2 * len(vnfs))), "n1")
    return Topology(
        ports=tuple(map(topology_port, path)),
        cross_connects=tuple(zip(path[::2], path[1::2], strict=True)),
        vnfs=tuple(replace(vnf, name=f"vnf{k}", ports=(f"v{2 * k}", f"v{2 * k + 1}")) for k, vnf in enumerate(vnfs)),
        ends=("n0", "n1"),
    )


register(
    Scenario(
        name="loopback",
        order=40,
        path="NIC -> switch -> VNF 1 -> switch -> ... -> VNF N -> switch -> NIC",
        meaning="Service chain of N VNFs: every packet crosses the switch N + 1 times.",
        build=_loopback,
        vnfs="chain",
        vnfs_max=CHAIN_LENGTH_MAX,
        count_name="chain length",
    )
)


# Scenario p2p: two wires.

register(
    Scenario(
        name="p2p",
        order=10,
        path="NIC -> switch -> NIC",
        meaning="Forwarding between two NICs: the baseline.",
        use="between NICs",
        build=lambda _: pair("n0", "n1"),
    )
)


# Scenario p2v: a wire and a VNF, which is the far end itself. Its ends differ, so it has a reversed direction.

register(
    Scenario(
        name="p2v",
        order=20,
        path="NIC -> switch -> VNF",
        meaning="First or last hop of a service chain; shows the cost of virtual I/O.",
        use="between NIC and VNF",
        build=lambda _: pair("n0", "v0"),
        directions=("unidirectional", "bidirectional", "reversed"),
        ends=("wire", "vnf"),
    )
)


# Several queue pairs on every port of a topology: what a task of each queue is called, and the stream that it sends.
#
# Queue 0 is as if there were no other. The switch chooses the queue by which a frame leaves: it belongs to the port.

QUEUES_MAX = 4
"""The tester has eight streams, and a topology two ends."""
_ENDS = 2


def queue_name(name: str, queue: int) -> str:
    """Return the name of a task or port on a queue: ``gen-n0``, ``gen-n0-q1``."""
    return f"{name}-q{queue}" if queue else name


def queue_stream(stream: int, queue: int) -> int:
    """Return the number of an end's stream on a queue."""
    return stream + _ENDS * queue


# Valid scenarios, directions and frame sizes, and the parsers of what a user typed.

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

FRAME_SIZE_MIN_BYTES = 64
FRAME_SIZE_MAX_BYTES = 1518
FRAME_SIZE_JUMBO_BYTES = 9000


ALIASES = {"pvp": "loopback-1", "pvvp": "loopback-2"}
"""Scenarios by the names that others give them."""


def chain_in(text: str) -> tuple[ScenarioName, int] | None:
    """Return the scenario and the number of VNFs of ``loopback-2``, ``pvp`` or ``pvvp``; None for another text."""
    name, _, number = ALIASES.get(text, text).rpartition("-")
    if name not in scenarios_with("chain") or whole_number(number) is None:
        return None
    return name, scenario_named(name).parse_count(number)


def parse_scenario(text: str) -> ScenarioName:
    """Return the name of a scenario; raise UsageError for another. The number of its VNFs is not part of the name."""
    if text in SCENARIOS:
        return text
    for name, scenario in SCENARIOS.items():
        if scenario.has_vnfs and ALIASES.get(text, text).startswith(f"{name}-"):
            count = f"its {scenario.count_name} (1..{scenario.vnfs_max})"
            raise UsageError(f'scenario "{text}": use {name}, and give {count}')
    raise unknown("scenario", text, SCENARIOS)


def parse_direction(text: str) -> Direction:
    """Return a direction; raise UsageError for another."""
    for name in DIRECTIONS:
        if text == name:
            return name
    raise unknown("direction", text, DIRECTIONS)


def parse_frame_size(value: object) -> int:
    """Return a frame size in bytes, FCS included, 64..1518 or 9000; raise UsageError for another."""
    size = whole_number(value)
    if size is None or not (FRAME_SIZE_MIN_BYTES <= size <= FRAME_SIZE_MAX_BYTES or size == FRAME_SIZE_JUMBO_BYTES):
        raise UsageError(
            f'frame size "{value}" is not valid. Valid: {FRAME_SIZE_MIN_BYTES}..{FRAME_SIZE_MAX_BYTES} '
            f"and {FRAME_SIZE_JUMBO_BYTES} bytes, FCS included"
        )
    return size


def parse_chain_length(value: object) -> int:
    """Return the number of VNFs of a chain; raise UsageError for another."""
    return _largest("chain").parse_count(value)


def parse_vnf_count(value: object) -> int:
    """Return the number of VNFs side by side; raise UsageError for another."""
    return _largest("side-by-side").parse_count(value)


def _largest(layout: VnfLayout) -> Scenario:
    return max((SCENARIOS[name] for name in scenarios_with(layout)), key=lambda scenario: scenario.vnfs_max)


# Scenario v2v: two VNFs, which are the ends themselves.

register(
    Scenario(
        name="v2v",
        order=30,
        path="VNF -> switch -> VNF",
        meaning="One hop between two VNFs; limited by memory bandwidth, not by a NIC.",
        use="between VNFs",
        build=lambda _: pair("v0", "v1"),
        ends=("vnf", "vnf"),
        latency_by_echo=True,
    )
)
