# SPDX-License-Identifier: BSD-3-Clause
"""Chains whose functions run in VMs, containers and processes, on real packets: every frame is counted, none is lost.

Rates are never asserted: here the VNFs share the switch's core, and a VM is emulated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e_rig import Bench, counts

from planebench.host import facts
from planebench.host.planed_program import find_planed
from planebench.host.priority import high_priority
from planebench.host.process import Supervisor
from planebench.host.programs import Found, NotFound
from planebench.hosting.registry import HOSTINGS
from planebench.measure.live import LiveSettings, LiveTopology
from planebench.measure.trial import TrialRequest, run_trial
from planebench.model.chain_name import hostings
from planebench.model.hosting import Hosting
from planebench.model.records import Load, Point, Trial
from planebench.placement import Cpus, place
from planebench.switches.registry import get_adapter
from planebench.vnfs.topology import build_chain

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(300)]

PPS, DURATION_S, TRIES = 1000.0, 0.2, 20
"""A ring of 256 holds that for a quarter of a second: who waits for its CPU loses nothing."""


def needs(*names: str) -> None:
    """Skip with the reason where a hosting is not here."""
    for name in names:
        found = HOSTINGS[name].find() if name in HOSTINGS else NotFound("no such hosting")
        if isinstance(found, NotFound):
            pytest.skip(f"{name}: {found.remedy}")


@contextmanager
def running(switch: str, length: int, chain: str = "", hosting: Hosting = "process") -> Iterator[LiveTopology]:
    planed, host, adapter = find_planed(), facts.collect(), get_adapter(switch)
    assert planed is not None
    needs(*(name for name in hostings(chain, length, hosting) if name != "process"))
    if not isinstance(adapter.find(), Found):
        pytest.skip(f"{switch} is not here")
    topology = build_chain("loopback", length, chain=chain, hosting=hosting)
    placement = place(Cpus(host.cpus_allowed, host.siblings, host.numa_node), length, hosted=topology.hosted_numbers)
    settings = LiveSettings(planed=planed, ring_size=256, hugepages=False, max_frame_bytes=1518, wire="virtio")
    with high_priority(), Supervisor(Path("/tmp")) as supervisor:
        it = LiveTopology.start("it", adapter, topology, placement, settings, supervisor)
        yield it
        it.stop()
        assert not any(process.alive() for process in supervisor.processes)


def measure(live: LiveTopology) -> Trial:
    """One paced trial both ways; again where a busy machine did not get all of it sent or through."""
    topology = live.topology
    point = Point("it", "loopback", "bidirectional", topology.chain_length, 64, chain=topology.chain)
    for _ in range(TRIES):
        trial = run_trial(live, TrialRequest(point, "search", Load("x", PPS), DURATION_S), lambda: None)
        if all(way.offered_packets and not way.lost_packets for way in trial.directions):
            break
    return trial


def assert_exact(trial: Trial) -> None:
    """Nothing lost, doubled or damaged, either way."""
    assert [way.name for way in trial.directions] == ["n0->n1", "n1->n0"]
    for way in trial.directions:
        assert way.forwarded_packets == way.offered_packets > 0, (trial.verdict.texts, trial.tester_drops)
        assert (way.duplicate_packets, way.corrupt_packets) == (0, 0)
    assert not trial.tester_drops


@pytest.mark.parametrize("switch", ["planed", "ovs-dpdk"])
def test_a_chain_of_three_in_containers(switch: str) -> None:
    with running(switch, 3, hosting="container") as live:
        assert_exact(measure(live))
        assert live.hosted is not None and live.conditions is not None
        assert [fact.vnf for fact in live.conditions.hosting] == ["vnf0", "vnf1", "vnf2"]
        live.resume()
        live.hosted.restart("vnf1", kill=True)
        live.wait_until_forwarding()
        owners = [thread.owner for thread in live.threads()]
        live.pause()
        assert (owners.count("tester"), owners.count("vnf")) == (1, 3)
        assert_exact(measure(live))


@pytest.mark.parametrize("switch", ["planed", "ovs-dpdk"])
def test_a_chain_of_two_in_vms(switch: str) -> None:
    with running(switch, 2, hosting="vm") as live:
        trial = measure(live)
        assert_exact(trial)
        assert live.conditions is not None
        assert [fact.hosting for fact in live.conditions.hosting] == ["vm", "vm"]
        emulated = any(fact.emulated for fact in live.conditions.hosting)
        assert emulated <= (trial.verdict.kind.value == "functional")


def test_a_mixed_chain_and_what_a_function_in_a_container_drops(bench: Bench) -> None:
    """The command: of up to 2500 frames a limiter in a container lets 20 through, and 50 more in half a second."""
    needs("container", "separate")
    chain = "separate:l2fwd,container:rate_limiter:rate_pps=100:burst_packets=20:pids=64,monitor"
    matrix = ("--chain", chain, "--direction", "unidirectional", "--max-rate", "5k", "--no-calibrate")
    bench.run("run", bench.plan, *matrix, "--duration", 0.5)
    (trial,) = [it for it in bench.trials() if it["role"] == "r_plus"]
    assert (trial["point"]["chain"], trial["point"]["hosting"]) == (chain, "process")
    (way,) = counts(trial)
    (dropped,) = [n for key, n in trial["tester_drops"].items() if key.startswith("vnf1:")]
    lost = sum((*trial["tester_drops"].values(), *trial["switch"]["drops"].values()))
    assert way["offered_packets"] == way["forwarded_packets"] + lost, trial
    assert 0 < way["forwarded_packets"] <= 20 + 100 and dropped > 0
    (conditions,) = [json.loads(line) for line in (bench.folder / "conditions.jsonl").read_text().splitlines()]
    assert [(fact["vnf"], fact["hosting"]) for fact in conditions["hosting"]] == [
        ("vnf0", "separate"),
        ("vnf1", "container"),
    ]
