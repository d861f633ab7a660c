# SPDX-License-Identifier: BSD-3-Clause
"""A router with a VLAN interface: routes of its kernel by it are forwarded with its tag, both ways and of both IP
versions, in the network of docs/fib-agent.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fib_example import EXAMPLE, Example, missing, no_vlans
from planed_rig import until

from planebench.host.process import Supervisor

pytestmark = [pytest.mark.dataplane, pytest.mark.root, pytest.mark.slow]

COUNT = 120
VLAN, FOREIGN = 10, 30
SIX = "2001:db8:5::"
PEER, HOST = "wire0 02:00:00:00:01:01", "wire1 02:00:00:00:09:02"


@pytest.fixture
def example() -> Iterator[Example]:
    if reason := missing() or no_vlans():
        pytest.skip(reason)
    vnfs = json.loads((EXAMPLE / "switch.json").read_text())["tasks"][0]["settings"]["vnfs"]
    with Supervisor(Path("/tmp")) as supervisor:
        small = {"routes4": 1000, "routes6": 1000, "pages": "4K"}
        made = Example(supervisor, vnfs=[vnf | {"vlans": [VLAN]} for vnf in vnfs], **small)
        yield made
        made.close()


def vlan_interface(example: Example, namespace: str, below: str, vlan: int, last: int) -> None:
    """An interface of a VLAN; its third byte is that of the VLAN."""
    name = f"{below}.{vlan}"
    for command in (
        f"link add link {below} name {name} type vlan id {vlan}",
        f"link set {name} up",
        f"address add 10.0.{vlan}.{last}/24 dev {name}",
        f"address add {SIX}{last}/64 dev {name} nodad",
    ):
        example.ip(namespace, *command.split())


def test_routes_by_a_vlan_interface_are_forwarded_with_its_tag(example: Example) -> None:
    example.start_agents()
    vlan_interface(example, "peer", "eth0", VLAN, 1)
    vlan_interface(example, "vnf", "vnf0", VLAN, 2)  # the agents run already
    for to, via in (("10.0.9.0/24", f"10.0.{VLAN}.2"), ("2001:db8:9::/64", f"{SIX}2")):
        example.ip("peer", "route", "add", to, "via", via)
    for to, via in (("192.0.2.1", f"10.0.{VLAN}.1"), ("2001:db8:1::1", f"{SIX}1")):
        example.ip("vnf", "route", "add", to, "via", via)
    for host in ("10.0.9.2", "2001:db8:9::2"):
        until(lambda to=host: example.hop(1, to) != "none", "the way back is there")  # type: ignore[misc]
    for to in ("192.0.2.1", "2001:db8:1::1"):
        example.until_hop(2, to, f"{PEER} vlan {VLAN}")
        assert example.exchange(to, 1) == (1, 1)  # the VNF gets to know the host, and so the switch
    example.until_hop(1, "10.0.9.2", HOST)
    example.until_hop(1, "2001:db8:9::2", HOST)

    example.sniffers["vnf0"].seen(), example.sniffers["vnf1"].seen(), example.sniffers["peer"].seen()
    before = [example.vnf(number)["forwarded"] for number in (1, 2)]
    for to in ("192.0.2.1", "2001:db8:1::1", f"10.0.{VLAN}.1"):
        assert example.exchange(to, COUNT) == (COUNT, COUNT)
    until(lambda: example.vnf(1)["forwarded"] == before[0] + 3 * COUNT, "the switch has counted")
    assert example.vnf(2)["forwarded"] == before[1] + 3 * COUNT
    assert (example.sniffers["vnf0"].seen(), example.sniffers["vnf1"].seen()) == ({}, {})

    # A VLAN that no VNF has: a neighbour is looked for in vain.
    vlan_interface(example, "peer", "eth0", FOREIGN, 1)
    example.ip("peer", "neigh", "add", f"10.0.{FOREIGN}.2", "lladdr", "02:00:00:00:02:01", "dev", f"eth0.{FOREIGN}")
    foreign = example.counted()["drops"]["foreign_vlan"]
    example.ip("peer", "route", "add", "203.0.113.1", "via", f"10.0.{FOREIGN}.2")
    example.send_only("203.0.113.1", COUNT, "peer")
    until(lambda: example.counted()["drops"]["foreign_vlan"] >= foreign + COUNT, "it is nobody's")

    # The interface goes, and its routes with it.
    example.ip("vnf", "link", "del", f"vnf0.{VLAN}")
    example.until_hop(2, "192.0.2.1", "none")
    assert all(agent.alive() for agent in example.agents)
