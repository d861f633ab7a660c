# SPDX-License-Identifier: BSD-3-Clause
"""Rings that a NIC takes: the nearest power of two within what its driver allows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planebench.host import planed_program
from planebench.host.planed_program import RingLimits
from planebench.host.programs import ProgramOutput
from planebench.model.scenarios import build
from planebench.testbed.placement import Placement
from planebench.testbed.request import LinkSettings
from planebench.testbed.tester_config import switch_request, wire_stage
from planebench.testbed.wires.base import named_ends, wire_kind

WIRE = "pci:0000:3b:00.0=0000:af:00.0"


@pytest.mark.parametrize(
    ("least", "most", "wanted", "nearest"),
    [
        (32, 4096, 256, 256),
        (512, 4096, 256, 512),
        (32, 4096, 8192, 4096),
        (1024, 1024, 256, 1024),
        (300, 4096, 64, 512),
    ],
)
def test_a_ring_is_the_nearest_that_the_nic_takes(least: int, most: int, wanted: int, nearest: int) -> None:
    assert RingLimits(least, most).nearest(wanted) == nearest


def test_planed_tells_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    told = 'EAL: a message\n{"device": "0000:3b:00.0", "least": 512, "most": 4096}\n'
    asked: list[list[object]] = []

    def run_tool(argv: list[object], timeout_s: float) -> ProgramOutput:
        asked.append(argv)
        return ProgramOutput(0, told, "")

    monkeypatch.setattr(planed_program, "find_planed", lambda: Path("/planed"))
    monkeypatch.setattr(planed_program, "run_tool", run_tool)
    found = planed_program.ring_limits(["0000:3b:00.0", "0000:af:00.0"])
    assert found == {"0000:3b:00.0": RingLimits(512, 4096)}
    assert asked == [[Path("/planed"), "--ring-limits", "0000:3b:00.0,0000:af:00.0"]]


def test_each_end_of_a_cable_has_the_ring_that_its_nic_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_kind(WIRE), "_rings", {"0000:af:00.0": RingLimits(512, 4096)})
    topology = build("p2v")
    links = LinkSettings(Path("/run/x"), WIRE, ends=named_ends(topology.wire_ports, WIRE))
    request = switch_request(topology, Placement(3, (0,), (), frozenset({0})), links)
    assert {port.name: port.ring_size for port in request.ports} == {"n0": 512, "v0": 256}
    assert [port.ring_size for port in wire_stage(topology, links).ports] == [256]
    large = replace(links, ring_size=8192)
    sizes = {
        port.name: port.ring_size
        for port in switch_request(topology, Placement(3, (0,), (), frozenset({0})), large).ports
    }
    assert sizes["n0"] == 4096
