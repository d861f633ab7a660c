# SPDX-License-Identifier: BSD-3-Clause
"""can17's VNF, DPDK's ip_pipeline with our configurations, behind switches: where there is one."""

from __future__ import annotations

import pytest
from hosted_rig import assert_exact, measure, needs, running

from planebench.host.programs import installation
from planebench.model.chain_name import quote
from planebench.model.records import Point
from planebench.testbed.chain import build_chain

COMMAND = "ip_pipeline {eal} -- -s {functions}/ip-pipeline-NAME.cli"


def chain_of(*names: str) -> str:
    return ",".join(f"exec:{quote(COMMAND.replace('NAME', name))}" for name in names)


@pytest.mark.dataplane
@pytest.mark.timeout(300)
@pytest.mark.parametrize("switch", ["planed", "testpmd", pytest.param("ovs-dpdk", marks=pytest.mark.all)])
@pytest.mark.parametrize("names", [("router",), ("firewall",), ("firewall", "router")])
def test_every_frame_crosses_its_router_and_its_firewall(switch: str, names: tuple[str, ...]) -> None:
    needs("exec")
    if installation("ip_pipeline").program("ip_pipeline") is None:
        pytest.skip("ip_pipeline is not here: build DPDK's example, and set PLANEBENCH_IP_PIPELINE (docs/hosting.md)")
    chain = chain_of(*names)
    with running(switch, build_chain("loopback", len(names), chain=chain)) as live:
        point = Point("it", "loopback", "bidirectional", len(names), 64, chain=chain)
        assert_exact(measure(live, point), "n0->n1", "n1->n0")
