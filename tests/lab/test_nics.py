# SPDX-License-Identifier: BSD-3-Clause
"""What planebench does with NICs, on each emulated model: `make lab`."""

from __future__ import annotations

from itertools import product

import pytest
from lab_rig import MODELS, RUNS, SINCE, Lab, on

from planebench.model.errors import INCONCLUSIVE

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(7200)]
DRIVERS = {"virtio-net": "virtio-pci"}
"""The driver of the PCI device, where it is not the name of the model."""
SWITCHES = ("planed", "testpmd", "ovs-dpdk")
FULL = "vmxnet3"
"""The model with all scenarios. They differ in the ports of VNFs, models in those of NICs, so the others have p2p."""
CUTS = ("e1000e", "ovs-dpdk")
"""Frames are four bytes shorter behind Open vSwitch, which asks the NIC to keep the FCS: docs/wires.md."""
RATE_PPS = 1000
KILLS = 20


@on(*MODELS)
def test_frames_cross_each_cable_once_intact_and_in_order(lab: Lab) -> None:
    lines = lab.cross_cables()
    assert len(lines) == 4
    for line in lines:
        assert line["sent"] == line["came"] > 0 and line["wrong"] == 0, line
    assert_drivers(lab)


@on(FULL)
@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_conforms_between_the_nics(lab: Lab, switch: str) -> None:
    words = ["--scenario", "p2p,p2v,loopback-1", "--check", "settings,forwards,counters", "--hugepages"]
    done = lab.planebench("switch", "check", switch, *words, "--wire", wire(lab), timeout_s=600)
    assert done.code == 0, done.output
    assert_drivers(lab)


@on(*MODELS)
def test_a_run_is_functional_and_no_frame_is_unexplained(lab: Lab) -> None:
    """At a rate that neither the emulated NICs nor the queues of their cables are too slow for."""
    scenarios = ("p2p", "p2v", "loopback") if lab.topology.nics["s0"] == FULL else ("p2p",)
    switches = [switch for switch in SWITCHES if (lab.topology.nics["s0"], switch) != CUTS]
    plan = ["--switch", ",".join(switches), "--scenario", ",".join(scenarios)]
    plan += ["--chain-length", "1"] if "loopback" in scenarios else []
    plan += ["--frame-size", "64", "--direction", "bidirectional", "--wire", wire(lab), "--hugepages"]
    plan += ["--max-rate", str(RATE_PPS), "--duration", "1", "--repeat", "1", "--loads", "none"]
    done = lab.planebench("run", *plan, "--no-calibrate", "--no-report", "--runs", RUNS, timeout_s=600)
    assert done.code in (0, INCONCLUSIVE), done.output
    trials = lab.script("trials.py", RUNS).documents()
    rings = trials.pop()["rings"]
    # Those of vmxnet3 have 512 entries at least; those of VNFs have the default.
    assert set(rings.values()) == {"256, 512" if scenarios != ("p2p",) else "256"}
    assert {(it["switch"], it["scenario"]) for it in trials} == set(product(switches, scenarios))
    for it in trials:
        assert it["verdict"] == "functional" and it["forwarded"] == it["offered"] > 0 == it["unexplained"], it
    assert_drivers(lab)


@on(*(model for model in MODELS if model not in SINCE))
def test_a_kill_at_any_moment_of_binding_leaves_nics_that_are_given_back(lab: Lab) -> None:
    """Not with igb: binding is the same for all, and the QEMU of igb does not survive it so often (docs/wires.md)."""
    nics = [lab.address(nic) for nic in lab.topology.nics]
    lines = lab.script("kill_binding.py", str(KILLS), *nics, timeout_s=600).documents()
    assert [line["restored"] for line in lines] == [True] * KILLS, lines
    half_way = [line for line in lines if line["killed"] and set(line["left"]) != {"vfio-pci"}]
    assert half_way, "no kill came while drivers were changed"
    assert_drivers(lab)


def wire(lab: Lab) -> str:
    """Return the wire of all cables of the guest."""
    return "pci:" + ",".join(f"{lab.address(a)}={lab.address(b)}" for a, b in lab.topology.cables)


def assert_drivers(lab: Lab) -> None:
    """Each NIC has the driver of its kernel again."""
    for nic, model in lab.topology.nics.items():
        assert lab.driver(nic) == DRIVERS.get(model, model)
