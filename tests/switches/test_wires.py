# SPDX-License-Identifier: BSD-3-Clause
"""The wires memif, vhost and af_xdp in a live topology: exact counts only."""

from __future__ import annotations

import os
import signal
import time

import pytest

import bench
from planebench.host import af_xdp
from planebench.host.planed_program import find_planed
from planebench.host.process import Supervisor, stretched
from planebench.measure.counts import Sending, tester_counts
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.model.errors import NotInstalledError
from planebench.model.scenario import ScenarioName
from planebench.model.scenarios import build, flows
from planebench.model.wire import WireName
from planebench.planed.client import get_statistics
from planebench.planed.statistics import Statistics
from planebench.switches.registry import get_adapter
from planebench.testbed.placement import Placement

pytestmark = [pytest.mark.dataplane, pytest.mark.usefixtures("needs_tester")]


def start(
    supervisor: Supervisor, switch: str, scenario: ScenarioName, wire: WireName, chain_length: int = 0
) -> LiveTopology:
    """A live topology that is not paused; skips where the switch is not here."""
    planed = find_planed()
    assert planed is not None
    vnf_cpus = (bench.TESTER_CPU,) * chain_length
    placement = Placement(bench.SWITCH_CPU, (bench.TESTER_CPU,), vnf_cpus, frozenset({bench.TESTER_CPU}))
    settings = LiveSettings(planed, bench.RING, False, 1518, wire)
    try:
        topology = build(scenario, chain_length)
        live = LiveTopology.start("it", get_adapter(switch), topology, placement, settings, supervisor)
    except NotInstalledError as error:
        pytest.skip(str(error))
    live.resume()
    return live


def offered_and_came(live: LiveTopology) -> list[tuple[int, int]]:
    """Send at most 100 frames each way, so that any ring holds them, and wait until they came; both numbers by way."""
    ways = flows(live.topology, "bidirectional")
    stats = live.send(Sending(ways, 64, 0.01, 10_000))
    end = time.monotonic() + stretched(20)
    while any(offered != came for offered, came in _counted(live, stats)) and time.monotonic() < end:
        stats = get_statistics(live.call)
    return _counted(live, stats)


def _counted(live: LiveTopology, stats: Statistics) -> list[tuple[int, int]]:
    counts = tester_counts(stats, flows(live.topology, "bidirectional"))
    return [(way.offered_packets, way.forwarded_packets) for way in counts.directions]


def assert_conserved(live: LiveTopology) -> None:
    """Every frame crosses, once; the switch counted each. The frames before were the last of those of the start."""
    assert all(offered == came for offered, came in offered_and_came(live))
    before = live.switch.counters()
    ways = offered_and_came(live)
    after = live.switch.counters()
    assert all(offered == came > 0 for offered, came in ways), ways
    assert not any(after.drops[key] - before.drops.get(key, 0) for key in after.drops), after.drops
    passes = len(live.topology.cross_connects) * sum(offered for offered, _ in ways)
    for key in ("packets", "forwarded_packets"):
        assert getattr(after, key) - getattr(before, key) == passes, key


@pytest.mark.parametrize("wire", ["memif", "vhost"])
@pytest.mark.parametrize("switch", ["planed", "testpmd", "ovs-dpdk"])
def test_a_wire_carries_every_frame_and_a_new_switch_connects_to_the_same_tester(
    supervisor: Supervisor, switch: str, wire: WireName
) -> None:
    live = start(supervisor, switch, "p2p", wire)
    assert_conserved(live)
    os.kill(live.switch.pids()[0], signal.SIGKILL)
    live.restart_switch(get_adapter(switch), supervisor)
    live.resume()
    assert_conserved(live)
    live.stop()
    assert not any(process.alive() for process in supervisor.processes)


@pytest.mark.root
@pytest.mark.parametrize(("scenario", "chain_length"), [("p2p", 0), ("loopback", 1)])
def test_af_xdp_carries_every_frame(supervisor: Supervisor, scenario: ScenarioName, chain_length: int) -> None:
    if why := af_xdp.missing():
        pytest.skip(why)
    live = start(supervisor, "planed", scenario, "af_xdp", chain_length)
    assert live.conditions is not None and not live.conditions.problem, "the kernel answered, behind pollers"
    assert live.conditions.af_xdp.startswith("copy, ")
    assert_conserved(live)
    live.stop()
    assert not any(process.alive() for process in supervisor.processes)


def test_memif_starts_again_where_a_tester_was_killed(supervisor: Supervisor) -> None:
    for _ in range(2):
        live = start(supervisor, "planed", "p2p", "memif")
        assert_conserved(live)
        (tester,) = (process for process in supervisor.processes if process.name == "tester" and process.alive())
        os.kill(tester.pid, signal.SIGKILL)
        live.stop()
