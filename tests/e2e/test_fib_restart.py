# SPDX-License-Identifier: BSD-3-Clause
"""Each part of a router with offloaded forwarding ends and begins again under traffic (tests/fib_example.py). What had
a route all the time loses nothing while the switch lives, and a switch that is there again forwards again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fib_example import Example, Flow, missing
from planed_rig import until

from planebench.host.process import Process, Supervisor, stretched

pytestmark = [pytest.mark.dataplane, pytest.mark.root, pytest.mark.slow, pytest.mark.all]

FIRST, PEER, HOST = "192.0.2.1", "wire0 02:00:00:00:01:01", "wire1 02:00:00:00:09:02"
RATE_PPS = 200
OUTAGE_S = stretched(20.0)
"""Of a switch that was killed, and started at once: a bound for a machine that does other things, too."""


@pytest.fixture
def example() -> Iterator[Example]:
    if reason := missing():
        pytest.skip(reason)
    with Supervisor(Path("/tmp")) as supervisor:
        made = Example(supervisor, snapshot=str(supervisor.workdir("example") / "snapshot"), snapshot_s=1)
        yield made
        made.close()


def agents_know_all(example: Example) -> None:
    """Their sessions are up, and nothing is left of those before."""
    until(lambda: {example.vnf(n)["session"]["state"] for n in (1, 2)} == {"up"}, "both sessions are up")
    until(lambda: [example.vnf(n)["stale"] for n in (1, 2)] == [0, 0], "they have announced all")


def restart_agents(example: Example) -> None:
    example.kill(*example.agents)
    example.start_agents()
    agents_know_all(example)


def restart_daemon(example: Example, daemon: Process) -> Process:
    example.kill(daemon)
    daemon = example.start_bird("vnf", "-R")
    example.until_established()
    return daemon


def restart_switch(example: Example, end: Callable[[Process], None]) -> None:
    """What it writes by itself, on a timer or at its end, is all that it knows when it begins."""
    end(example.switch)
    example.start_switch()
    assert example.vnf(2)["routes4"] > 0
    agents_know_all(example)


def test_each_part_restarts(example: Example) -> None:
    example.start_bird("peer")
    daemon = example.start_bird("vnf", "-R")
    example.start_agents()
    example.until_established()
    example.until_hop(2, FIRST, PEER)
    until(lambda: example.hop(1, "10.0.9.2") != "none", "there is a way back")
    assert example.exchange(FIRST, 1) == (1, 1)
    example.until_hop(1, "10.0.9.2", HOST)
    agents_know_all(example)
    snapshot = example.folder / "snapshot"
    flow = Flow(example, FIRST, RATE_PPS)
    try:
        first = flow.mark()
        restart_agents(example)
        daemon = restart_daemon(example, daemon)
        example.kill(*example.agents)  # the whole VNF
        daemon = restart_daemon(example, daemon)
        example.start_agents()
        agents_know_all(example)
        end = flow.mark()
        assert flow.lost(first, end) == (0, 0.0)
        assert flow.twice(first, end) == 0

        first = end
        example.take_over()
        agents_know_all(example)
        end = flow.mark()
        assert flow.lost(first, end) == (0, 0.0)

        first = end
        restart_switch(example, Process.terminate)
        end = flow.mark()
        assert flow.lost(first, end)[1] < OUTAGE_S

        written = snapshot.stat().st_mtime_ns
        until(lambda: snapshot.stat().st_mtime_ns > written, "what the agents announced is written")
        first = end
        restart_switch(example, example.kill)
        assert flow.lost(first, flow.mark())[1] < OUTAGE_S
    finally:
        flow.close()
