# SPDX-License-Identifier: BSD-3-Clause
"""What planebench does with NICs, on each emulated model: `make lab`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from lab_rig import MODELS, Done, Lab, require, topology

from planebench.host.process import Supervisor

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(1200)]
DRIVERS = {"virtio-net": "virtio-pci"}
"""The driver of the PCI device, where it is not the name of the model."""
KILLS = 20


@pytest.fixture(scope="module", params=list(MODELS))
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    two_dual_ports = topology("two_dual_ports").with_nics(request.param)
    require(two_dual_ports)
    with Supervisor() as supervisor, Lab(supervisor, two_dual_ports) as running:
        yield running


def test_frames_cross_each_cable_once_intact_and_in_order(lab: Lab) -> None:
    cables = [f"{lab.address(a)}={lab.address(b)}" for a, b in lab.topology.cables]
    lines = documents(lab.script("cables.py", *cables, timeout_s=300))
    assert len(lines) == 4
    for line in lines:
        assert line["sent"] == line["came"] > 0 and line["wrong"] == 0, line
    assert_drivers(lab)


def test_the_cabling_is_found_and_two_swapped_nics_are_told(lab: Lab) -> None:
    cables = [[lab.address(a), lab.address(b)] for a, b in lab.topology.cables]
    (first_tester, first_switch), (second_tester, second_switch) = cables
    done = lab.planebench("wires", "--json", timeout_s=300)
    assert json.loads(done.output)["cables"] == cables, done.output
    swapped = f"pci:{first_tester}={second_switch},{second_tester}={first_switch}"
    done = lab.planebench("wires", "--wire", swapped, timeout_s=300)
    assert done.code == 1, done.output
    assert f"{first_tester} is cabled to {first_switch}, not to {second_switch}" in done.output
    assert_drivers(lab)


def test_planed_conforms_between_the_nics(lab: Lab) -> None:
    wire = "pci:" + ",".join(f"{lab.address(a)}={lab.address(b)}" for a, b in lab.topology.cables)
    words = ["--scenario", "p2p", "--check", "forwards,intact", "--wire", wire]
    done = lab.planebench("switch", "check", "planed", *words, timeout_s=600)
    assert done.code == 0, done.output
    assert_drivers(lab)


def test_a_kill_at_any_moment_of_binding_leaves_nics_that_are_given_back(lab: Lab) -> None:
    nics = [lab.address(nic) for nic in lab.topology.nics]
    lines = documents(lab.script("kill_binding.py", str(KILLS), *nics, timeout_s=600))
    assert [line["restored"] for line in lines] == [True] * KILLS, lines
    half_way = [line for line in lines if line["killed"] and set(line["left"]) != {"vfio-pci"}]
    assert half_way, "no kill came while drivers were changed"
    assert_drivers(lab)


def documents(done: Done) -> list[dict[str, Any]]:
    """Return the lines of JSON that a script printed."""
    assert done.code == 0, done.output
    return [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]


def assert_drivers(lab: Lab) -> None:
    """Each NIC has the driver of its kernel again."""
    for nic, model in lab.topology.nics.items():
        assert lab.driver(nic) == DRIVERS.get(model, model)
