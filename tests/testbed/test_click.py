# SPDX-License-Identifier: BSD-3-Clause
"""ClickOS' functions as VNFs: the configurations of docs/switches with a real FastClick, where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hosting_rig import Way, exact, hosted_request, port_sockets, start_vnf, tester, until_crossing
from planed_rig import until

from planebench.host.planed_program import REMEDY, find_planed
from planebench.host.process import Supervisor, high_priority
from planebench.host.programs import NotFound
from planebench.switches.fastclick import ADAPTER
from planebench.testbed.hosting.exec import ExecHosting

WAYS = (Way("a", "b", 0), Way("b", "a", 1))
PAGES = Path(__file__).resolve().parents[2] / "docs" / "switches"


@pytest.fixture(scope="module")
def supervisor() -> Iterator[Supervisor]:
    with high_priority(), Supervisor(Path("/tmp")) as it:
        yield it


@pytest.mark.dataplane
@pytest.mark.parametrize("name", ["click-router", "click-firewall"])
def test_every_frame_crosses_a_function_of_clickos(name: str, supervisor: Supervisor) -> None:
    if find_planed() is None:
        pytest.skip(REMEDY)
    for found in (ExecHosting().find(), ADAPTER.find()):
        if isinstance(found, NotFound):
            pytest.skip(found.remedy)
    folder = supervisor.workdir(name)
    configuration = folder / f"{name}.click"  # the container sees no folder of ours but this
    configuration.write_text((PAGES / configuration.name).read_text())
    it = tester(supervisor, f"{name}-tester", ["a", "b"], folder)
    macs = "MAC0={mac0} MAC1={mac1}" if name == "click-router" else ""
    command = f"{ADAPTER.find().binary} --dpdk {{eal_main}} -- {configuration} {macs}"
    request = hosted_request("vnf0", port_sockets(folder, "a", "b"), supervisor, {"command": command})
    vnf = start_vnf(ExecHosting(), replace(request, document=None), supervisor)
    for way in WAYS:
        until_crossing(it, way, [vnf])
    until(lambda: exact(it, WAYS), "every frame crosses")
    vnf.ask_to_end()
    until(lambda: not vnf.process.alive(), "it ends")
    vnf.stop()
