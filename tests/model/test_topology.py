# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.model.errors import UsageError
from planebench.model.scenario import SCENARIOS, Direction, ScenarioName
from planebench.model.scenarios import Flow, build, flows
from planebench.model.topology import Topology, Vnf
from planebench.testbed.chain import build_chain


@pytest.mark.parametrize(
    ("scenario", "wires", "vnf_ports"),
    [("p2p", ("n0", "n1"), ()), ("p2v", ("n0",), ("v0",)), ("v2v", (), ("v0", "v1"))],
)
def test_scenarios_without_a_chain(scenario: ScenarioName, wires: tuple[str, ...], vnf_ports: tuple[str, ...]) -> None:
    topology = build(scenario)
    assert topology.wire_ports == wires
    assert topology.vnf_ports == vnf_ports
    assert topology.ends == wires + vnf_ports
    assert topology.cross_connects == (topology.ends,)
    assert topology.vnfs == ()


def test_loopback_of_two() -> None:
    topology = build("loopback", 2)
    assert topology.cross_connects == (("n0", "v0"), ("v1", "v2"), ("v3", "n1"))
    assert topology.vnfs == (Vnf("vnf0", ("v0", "v1")), Vnf("vnf1", ("v2", "v3")))
    assert topology.ends == ("n0", "n1")
    assert topology.chain_length == 2


def walk(topology: Topology) -> list[str]:
    """Ports in the order in which a packet from end a meets them."""
    switch = {**dict(topology.cross_connects), **{b: a for a, b in topology.cross_connects}}
    through = dict(vnf.ports for vnf in topology.vnfs)
    port, path = topology.ends[0], []
    while port is not None:
        path += [port, switch[port]]
        port = through.get(switch[port])  # type: ignore[assignment]
    return path


@given(st.integers(1, 5))
def test_a_packet_meets_every_port_of_a_chain_once(length: int) -> None:
    topology = build("loopback", length)
    names = [port.name for port in topology.ports]
    assert walk(topology) == names
    assert names[-1] == topology.ends[1]
    assert len(set(names)) == 2 * length + 2
    assert sorted(name for pair in topology.cross_connects for name in pair) == sorted(names)


def test_the_second_vnf_of_v2v_sends_back_by_a_second_pair_of_ports() -> None:
    topology = build("v2v", echo=True)
    assert topology.vnfs == (Vnf("echo", ("v1", "v2")),)
    assert topology.cross_connects == (*build("v2v").cross_connects, ("v2", "v3"))
    assert walk(topology) == ["v0", "v1", "v2", "v3"] == [port.name for port in topology.ports]
    assert flows(topology, "unidirectional") == (Flow("v0", "v3", 0),)


@pytest.mark.parametrize("scenario", ["p2p", "p2v", "loopback"])
def test_echo_is_for_v2v(scenario: ScenarioName) -> None:
    with pytest.raises(UsageError, match=f"not to {scenario}"):
        build(scenario, echo=True)


@pytest.mark.parametrize(("scenario", "length"), [("p2p", 1), ("v2v", 5), ("loopback", 0), ("loopback", 6)])
def test_chain_length_that_does_not_fit(scenario: ScenarioName, length: int) -> None:
    with pytest.raises(UsageError, match=f"{length}"):
        build(scenario, length)


@pytest.mark.parametrize(
    ("direction", "names"),
    [
        ("unidirectional", [("n0->v0", 0)]),
        ("reversed", [("v0->n0", 1)]),
        ("bidirectional", [("n0->v0", 0), ("v0->n0", 1)]),
    ],
)
def test_flows_of_p2v(direction: Direction, names: list[tuple[str, int]]) -> None:
    assert [(flow.name, flow.stream) for flow in flows(build("p2v"), direction)] == names


def test_reversed_is_for_p2v_only() -> None:
    assert [name for name in SCENARIOS if "reversed" in SCENARIOS[name].directions] == ["p2v"]
    with pytest.raises(UsageError, match=r"reversed is not valid for p2p\. Valid: unidirectional, bidirectional"):
        flows(build("p2p"), "reversed")


def test_a_chain_by_name() -> None:
    topology = build_chain("loopback", 2, chain="firewall:default=permit,l2fwd")
    assert topology.vnfs[0].kind == "firewall" and topology.vnfs[0].settings == {"default": "permit"}
    assert topology.vnfs[0].memory_bytes > 0
    assert topology.vnfs[1] == Vnf("vnf1", ("v2", "v3"))
    assert (topology.ports, topology.ends) == (build("loopback", 2).ports, ("n0", "n1"))


@pytest.mark.parametrize(
    ("scenario", "length", "chain"), [("p2p", 0, "l2fwd"), ("loopback", 1, "l2fwd,l3fwd"), ("loopback", 1, "x")]
)
def test_a_chain_that_does_not_fit(scenario: ScenarioName, length: int, chain: str) -> None:
    with pytest.raises(UsageError, match="chain"):
        build_chain(scenario, length, chain=chain)
