# SPDX-License-Identifier: BSD-3-Clause
"""A hosted VNF that writes garbage into its rings, or vanishes, harms nobody: traffic beside it is complete, and who
comes after it finds ports that work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosting_rig import (
    Way,
    exact,
    family,
    flowing,
    guest_memories,
    hosted_request,
    is_exact,
    port_sockets,
    scribble,
    start_switch,
    start_vnf,
    tester,
    until_crossing,
)
from planed_rig import often, until

from planebench.host.planed_program import REMEDY, find_planed
from planebench.host.process import Supervisor, high_priority
from planebench.host.programs import Found, NotFound
from planebench.planed.client import PlanedClient
from planebench.switches.registry import get_adapter
from planebench.testbed.hosting.registry import HOSTINGS

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(240)]

WIRES = ("n0", "n1", "n2", "n3")
PAIRS = (("n0", "v0"), ("v1", "n1"), ("n2", "n3"))
"""A VNF between the first two wires; the other two pass the same switch, and no VNF."""
THROUGH = (Way("n0", "n1", 0), Way("n1", "n0", 1))
BESIDE = (Way("n2", "n3", 2), Way("n3", "n2", 3))
GARBAGE_S = 0.5
TRIES = 5
VALUES = {"vm": {"accel": "tcg"}}
"""As everywhere, whether KVM is here or not."""
CASES = [
    pytest.param("planed", "vm", marks=pytest.mark.all),
    ("planed", "container"),
    pytest.param("ovs-dpdk", "container", marks=pytest.mark.all),
    *[("ovs-dpdk", "vm")] * often(0, 1),
]


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    if find_planed() is None:
        pytest.skip(f"planed is not here: {REMEDY}")
    with high_priority(), Supervisor(Path("/tmp")) as it:
        yield it


@pytest.mark.parametrize(("switch_name", "hosting_name"), CASES)
def test_garbage_in_its_rings_and_its_death_harm_nobody_else(
    supervisor: Supervisor, switch_name: str, hosting_name: str
) -> None:
    adapter, hosting = get_adapter(switch_name), HOSTINGS[hosting_name]
    if isinstance(missing := hosting.find(), NotFound) or not isinstance(adapter.find(), Found):
        pytest.skip(f"{switch_name} or {hosting_name} is not here: {missing}")
    folder = supervisor.workdir("it")
    it = tester(supervisor, "tester", WIRES, folder)
    switch = start_switch(adapter, folder, WIRES, PAIRS, supervisor)
    request = hosted_request("vnf0", port_sockets(folder, "v0", "v1"), supervisor, VALUES.get(hosting_name))
    try:
        vnf = start_vnf(hosting, request, supervisor)
        until_crossing(it, THROUGH[0], (vnf,))
        until(lambda: exact(it, (*THROUGH, *BESIDE)), "every frame comes, through it and beside it")
        for seed in range(TRIES):
            with flowing(it, (*THROUGH, *BESIDE)):
                vnf.process.pause()
                sizes = [scribble(memory, seed, 1) for memory in guest_memories(vnf)]
                assert sum(sizes) > 1 << 20, "the rings are in the memory that it shares"
                time.sleep(GARBAGE_S)
                stopped = broken_rings(folder) if switch_name == "planed" else {"v0": 1, "v1": 1}
                vnf.kill()
            switch.check()
            assert stopped["v0"] and stopped["v1"], "it was rings that the garbage was in"
            beside = it.settled()
            if all(is_exact(beside, way) for way in BESIDE):
                break
            vnf = start_vnf(hosting, request, supervisor)
            until_crossing(it, THROUGH[0], (vnf,))
        assert all(is_exact(beside, way) for way in BESIDE), beside
        assert not vnf.process.alive()
        assert not family(vnf)
        following = start_vnf(HOSTINGS["separate"], request, supervisor)
        until_crossing(it, THROUGH[0], (following,))
        until(lambda: exact(it, (*THROUGH, *BESIDE)), "the next one has ports that work")
        following.stop()
    finally:
        switch.stop()


def broken_rings(folder: Path) -> dict[str, int]:
    """Of our own switch: how many rings of each port it has stopped, for the other end broke a rule."""
    with PlanedClient(folder / "planed-switch.rpc") as client:
        return {port["name"]: port["broken_rings"] for port in client.call("stats.get")["ports"]}
