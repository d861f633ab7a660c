# SPDX-License-Identifier: BSD-3-Clause
"""A routing daemon in a VNF whose forwarding is offloaded: BGP through the punt path, its routes in the switch, and
every datagram counted while routes move, agents die, the daemon restarts and the switch comes anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fib_example import Example, missing
from planed_rig import until

from planebench.host.process import Process, Supervisor
from planebench_fib import status

pytestmark = [pytest.mark.dataplane, pytest.mark.root, pytest.mark.slow]

PEER, OTHER_ROUTER, HOST = "wire0 02:00:00:00:01:01", "wire0 02:00:00:00:01:03", "wire1 02:00:00:00:09:02"
FIRST, SECOND, THIRD = "192.0.2.1", "198.51.100.1", "2001:db8:1::1"
COUNT = 120


@pytest.fixture(params=["bird", *(pytest.param(it, marks=pytest.mark.all) for it in ("frr", "frr-fpm"))])
def daemon(request: pytest.FixtureRequest) -> str:
    """Return the routing daemon of the VNF, and how the second agent has its routes from it."""
    return str(request.param)


@pytest.fixture
def example(daemon: str) -> Iterator[Example]:
    if reason := missing(frr=daemon != "bird"):
        pytest.skip(reason)
    with Supervisor(Path("/tmp")) as supervisor:
        made = Example(supervisor)
        yield made
        made.close()


def forwarded_by_the_switch(example: Example, *addresses: str, where: str = "peer") -> None:
    """Every datagram there and back, by the switch alone: none is seen at the interfaces of the VNF."""
    example.sniffers["vnf0"].seen(), example.sniffers["vnf1"].seen()
    before = [example.vnf(number)["forwarded"] for number in (1, 2)]
    for address in addresses:
        assert example.exchange(address, COUNT, where) == (COUNT, COUNT)
    total = COUNT * len(addresses)
    until(lambda: example.vnf(1)["forwarded"] >= before[0] + total, "the switch has counted")
    assert [example.vnf(number)["forwarded"] for number in (1, 2)] == [count + total for count in before]
    assert (example.sniffers["vnf0"].seen(), example.sniffers["vnf1"].seen()) == ({}, {})


def routes_are_there(example: Example) -> None:
    example.until_hop(2, FIRST, PEER)
    example.until_hop(2, SECOND, PEER)
    example.until_hop(2, THIRD, PEER)


def start(example: Example, daemon: str) -> list[Process]:
    """Start the VNF's daemon."""
    return [example.start_bird("vnf", "-R")] if daemon == "bird" else example.start_frr(fpm=daemon == "frr-fpm")


def test_bgp_routes_are_forwarded_by_the_switch(example: Example, daemon: str) -> None:
    peer, processes = example.start_bird("peer"), start(example, daemon)
    example.start_agents(fpm=daemon == "frr-fpm")
    example.until_established()
    routes_are_there(example)
    for host in ("10.0.9.2", "2001:db8:9::2"):
        until(lambda to=host: example.hop(1, to) != "none", "the way back is there")  # type: ignore[misc]
    for address in (FIRST, THIRD):  # the VNF gets to know the host, and so the switch
        assert example.exchange(address, 1) == (1, 1)
    example.until_hop(1, "10.0.9.2", HOST)
    example.until_hop(1, "2001:db8:9::2", HOST)
    forwarded_by_the_switch(example, FIRST, SECOND, THIRD)
    assert example.hop(1, "10.0.0.2") == "local"

    a_route_changes(example)
    if daemon == "bird":  # zebra removes routes by an interface that does not run
        a_wire_goes_down(example)
    agents_die(example, daemon)
    the_daemon_restarts(example, daemon, processes)
    the_switch_restarts(example)

    for agent in example.agents:
        agent.terminate()
    assert [agent.returncode for agent in example.agents] == [0, 0]
    assert all('"event": "ended"' in agent.log_tail() for agent in example.agents)
    assert peer.alive()


def a_route_changes(example: Example) -> None:
    """A withdrawn prefix has no route, one that moves has another next hop."""
    example.birdc("peer", "disable", "net_b")
    example.until_hop(2, SECOND, "none")
    before = example.vnf(2)["no_route"]
    example.send_only(SECOND, COUNT)
    until(lambda: example.vnf(2)["no_route"] == before + COUNT, "all of them have no route")
    example.birdc("peer", "enable", "net_b")
    example.birdc("peer", "enable", "moved")
    example.until_hop(2, SECOND, PEER)
    example.until_hop(2, FIRST, OTHER_ROUTER)
    example.sniffers["peer"].seen()
    forwarded_by_the_switch(example, FIRST, where="other")
    there = {to: n for to, n in example.sniffers["peer"].seen().items() if to.startswith("02:00:00:00:01")}
    assert there == {OTHER_ROUTER.split()[1]: COUNT}
    example.birdc("peer", "disable", "moved")
    example.until_hop(2, FIRST, PEER)


def a_wire_goes_down(example: Example) -> None:
    """The switch sends nothing by it, and says so; the VNF's interface is not running, and still has its session."""
    example.ip("switch", "link", "set", "wire0", "down")
    until(lambda: "state DORMANT" in example.ip("vnf", "link", "show", "vnf0"), "the VNF knows that its wire is down")
    before = example.counted()["drops"]["wire_down"]
    example.send_only(FIRST, COUNT)
    until(lambda: example.counted()["drops"]["wire_down"] == before + COUNT, "all of them have no wire")
    assert "state UP" in example.ip("vnf", "link", "show", "vnf1")
    assert {example.vnf(n)["session"]["state"] for n in (1, 2)} == {"up"}
    example.ip("switch", "link", "set", "wire0", "up")
    until(lambda: "state UP" in example.ip("vnf", "link", "show", "vnf0"), "the VNF knows that its wire is back")
    example.until_established()
    routes_are_there(example)
    forwarded_by_the_switch(example, FIRST, THIRD)


def agents_die(example: Example, daemon: str) -> None:
    """Routes stay for the grace period, and are not counted twice when the next agents have announced theirs."""
    until(lambda: example.vnf(1)["routes4"] == example.vnf(2)["routes4"], "both have announced what their kernel has")
    example.kill(*example.agents)
    until(lambda: {example.vnf(n)["session"]["state"] for n in (1, 2)} == {"stale"}, "the VNF is silent for too long")
    routes = [example.vnf(number)["routes4"] for number in (1, 2)]
    (fib,) = status.ask(example.folder / "rpc")
    assert [(it.state, it.stale) for it in fib.vnfs] == [("stale", it.routes4 + it.routes6) for it in fib.vnfs]
    assert [it.routes4 for it in fib.vnfs] == routes
    forwarded_by_the_switch(example, FIRST, SECOND, THIRD)
    example.start_agents(fpm=daemon == "frr-fpm")
    until(lambda: {example.vnf(n)["session"]["state"] for n in (1, 2)} == {"up"}, "there are new sessions")
    until(lambda: [example.vnf(n)["stale"] for n in (1, 2)] == [0, 0], "the new sessions have announced all")
    (fib,) = status.ask(example.folder / "rpc")
    assert [(it.port, it.state) for it in fib.vnfs] == [("vnf0", "up"), ("vnf1", "up")]
    assert all(it.update_age_s is not None for it in fib.vnfs)
    assert [example.vnf(number)["routes4"] for number in (1, 2)] == routes
    forwarded_by_the_switch(example, FIRST, SECOND, THIRD)


def the_daemon_restarts(example: Example, daemon: str, processes: list[Process]) -> None:
    """The kernel keeps its routes, and so does the switch."""
    example.kill(*processes)
    forwarded_by_the_switch(example, FIRST, THIRD)
    start(example, daemon)
    example.until_established()
    routes_are_there(example)
    forwarded_by_the_switch(example, FIRST, SECOND, THIRD)


def the_switch_restarts(example: Example) -> None:
    """It knows nothing any more: the agents say everything again."""
    example.kill(example.switch)
    example.start_switch()
    routes_are_there(example)
    example.until_hop(1, "10.0.9.2", HOST)
    example.until_hop(1, "2001:db8:9::2", HOST)
    forwarded_by_the_switch(example, FIRST, SECOND, THIRD)
