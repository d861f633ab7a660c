# SPDX-License-Identifier: BSD-3-Clause
"""Chains whose functions run in VMs, containers and processes, on real packets: every frame is counted, none is lost.

Rates are never asserted: here the VNFs share the switch's core, and a VM is emulated.
"""

from __future__ import annotations

import json

import pytest
from e2e_rig import Bench, counts
from hosted_rig import assert_exact, measure, needs, running

from planebench.measure.live import LiveTopology
from planebench.model.dimensions import HostingName
from planebench.model.records import Point, Trial
from planebench.model.topology import Topology
from planebench.testbed.chain import build_chain

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(300)]

BOTH_WAYS = ("n0->n1", "n1->n0")


def chain_of(length: int, chain: str = "", hosting: HostingName = "process") -> Topology:
    return build_chain("loopback", length, chain=chain, hosting=hosting)


def measure_chain(live: LiveTopology) -> Trial:
    """Run a paced trial both ways."""
    topology = live.topology
    return measure(live, Point("it", "loopback", "bidirectional", topology.chain_length, 64, chain=topology.chain))


@pytest.mark.all
@pytest.mark.parametrize("switch", ["planed", "ovs-dpdk"])
def test_a_chain_of_three_in_containers(switch: str) -> None:
    with running(switch, chain_of(3, hosting="container")) as live:
        assert_exact(measure_chain(live), *BOTH_WAYS)
        assert live.hosted is not None and live.conditions is not None
        assert [fact.vnf for fact in live.conditions.hosting] == ["vnf0", "vnf1", "vnf2"]
        live.resume()
        live.hosted.restart("vnf1", kill=True)
        live.wait_until_forwarding()
        owners = [thread.owner for thread in live.threads()]
        live.pause()
        assert (owners.count("tester"), owners.count("vnf")) == (1, 3)
        assert_exact(measure_chain(live), *BOTH_WAYS)


@pytest.mark.parametrize(
    ("switch", "length"),
    [("planed", 1), *(pytest.param(it, 2, marks=pytest.mark.all) for it in ("planed", "ovs-dpdk"))],
)
def test_a_chain_in_vms(switch: str, length: int) -> None:
    with running(switch, chain_of(length, hosting="vm")) as live:
        trial = measure_chain(live)
        assert_exact(trial, *BOTH_WAYS)
        assert live.conditions is not None
        assert [fact.hosting for fact in live.conditions.hosting] == ["vm"] * length
        emulated = any(fact.emulated for fact in live.conditions.hosting)
        assert emulated <= (trial.verdict.kind.value == "functional")


def test_a_mixed_chain_and_what_a_function_in_a_container_drops(bench: Bench) -> None:
    """The command: a router in a container drops the long datagrams of a mix of sizes."""
    needs("container", "separate")
    chain = "separate:l2fwd,container:l3fwd:mtu=1000:memory_mb=2048,l2fwd"
    matrix = (
        "--chain",
        chain,
        "--traffic",
        "imix",
        "--direction",
        "unidirectional",
        "--max-rate",
        "5k",
        "--no-calibrate",
    )
    bench.run("run", bench.plan, *matrix, "--duration", 0.5)
    (trial,) = [it for it in bench.trials() if it["role"] == "r_plus"]
    assert (trial["point"]["chain"], trial["point"]["hosting"]) == (chain, "process")
    (way,) = counts(trial)
    (dropped,) = [n for key, n in trial["tester_drops"].items() if key.startswith("vnf1:")]
    lost = sum((*trial["tester_drops"].values(), *trial["switch"]["drops"].values()))
    assert way["offered_packets"] == way["forwarded_packets"] + lost, trial
    assert way["forwarded_packets"] > dropped > 0
    (conditions,) = [json.loads(line) for line in (bench.folder / "conditions.jsonl").read_text().splitlines()]
    assert [(fact["vnf"], fact["hosting"]) for fact in conditions["hosting"]] == [
        ("vnf0", "separate"),
        ("vnf1", "container"),
    ]
