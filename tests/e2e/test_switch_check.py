# SPDX-License-Identifier: BSD-3-Clause
"""``planebench switch check`` as a user runs it: the switches that Debian has conform, and the command says so.

A lean selection, as CI has little time: a chain of two has wires, VNFs and several cross-connects. Whole runs are for
who changes an adapter.
"""

from __future__ import annotations

import json

import pytest
from e2e_rig import Bench

from planebench.host.netns import VethWire
from planebench.host.process import Supervisor
from planebench.host.programs import Found
from planebench.model.errors import StartError
from planebench.switches.registry import ADAPTERS

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(180)]

DEBIAN = ("planed", "testpmd", "ovs-dpdk", "linux-bridge", "xdp")
"""What CI can install; those that are not registered yet are skipped."""
USUAL = ("ovs-dpdk",)
KERNEL = frozenset({"linux-bridge", "xdp"})


def require_namespaces() -> None:
    try:
        with Supervisor() as supervisor:
            VethWire.create(supervisor, ["n0"], cpus=frozenset({0})).close()
    except StartError as error:
        pytest.skip(f"no network namespaces here: {error}")


@pytest.mark.parametrize("name", [it if it in USUAL else pytest.param(it, marks=pytest.mark.all) for it in DEBIAN])
def test_it_conforms(bench: Bench, name: str) -> None:
    if name not in ADAPTERS:
        pytest.skip(f"{name} has no adapter yet")
    if not isinstance(found := ADAPTERS[name].find(), Found):
        pytest.skip(f"{name} is not here: {found.remedy}")
    if name in KERNEL:
        require_namespaces()
    scenario = "p2v" if name in KERNEL else "loopback-2"
    done = bench.run("switch", "check", name, "--scenario", scenario, "--json", code=None)
    document = json.loads(done.stdout)
    failures = [result for result in document["results"] if result["outcome"] == "fail"]
    assert not failures and document["passed"] and done.returncode == 0, failures
    assert {result["scenario"] for result in document["results"]} == {"itself", scenario}
    assert document["counts"]["pass"] >= 10


@pytest.mark.all
def test_a_switch_that_loses_frames_does_not_conform(bench: Bench) -> None:
    done = bench.run("switch", "check", "planed:drop_one_in=7", "--scenario", "p2p", "--check", "forwards", code=1)
    assert "FAIL forwards p2p virtio" in done.stdout
    assert "does not conform" in done.stdout
    assert "[2/3] virtio p2p forwards: FAIL" in done.stderr
