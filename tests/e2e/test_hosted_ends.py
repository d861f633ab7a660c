# SPDX-License-Identifier: BSD-3-Clause
"""p2v and v2v with the ends in containers and VMs, on real packets: the counts of all processes add up exactly."""

from __future__ import annotations

import os
import signal
from typing import get_args

import pytest
from hosted_rig import assert_exact, measure, running

from planebench.measure.live import LiveTopology
from planebench.model.dimensions import HostingName
from planebench.model.records import Point
from planebench.model.scenario import Direction
from planebench.testbed.chain import build_chain

pytestmark = [pytest.mark.dataplane, pytest.mark.timeout(300)]

WAYS: dict[Direction, tuple[str, ...]] = {"unidirectional": ("v0->v1",), "bidirectional": ("v0->v1", "v1->v0")}


def point_of(live: LiveTopology, direction: Direction, hosting: HostingName = "container") -> Point:
    return Point("it", live.topology.scenario, direction, 0, 64, hosting=hosting)


@pytest.mark.parametrize(
    ("switch", "hosting"),
    [
        ("planed", "process"),
        ("planed", "container"),
        pytest.param("testpmd", "container", marks=pytest.mark.all),
        pytest.param("ovs-dpdk", "container", marks=pytest.mark.all),
        pytest.param("planed", "vm", marks=pytest.mark.all),
    ],
)
def test_the_second_vnf_of_v2v_sends_everything_back_by_its_other_port(switch: str, hosting: HostingName) -> None:
    """Frames wait in it for others, as in DPDK's l2fwd; those that still wait leave by its timer."""
    sending = {"send_burst": 32, "drain_us": 100}
    with running(switch, build_chain("v2v", hosting=hosting, sending=sending, echo=True)) as live:
        trial = measure(live, point_of(live, "unidirectional", hosting), "latency", probes=200)
        assert_exact(trial, "v0->v3")
        assert trial.latency is not None and trial.latency.probes_received == trial.latency.probes_sent > 0


@pytest.mark.parametrize("switch", ["planed", pytest.param("ovs-dpdk", marks=pytest.mark.all)])
def test_both_ends_of_v2v_in_containers(switch: str) -> None:
    with running(switch, build_chain("v2v", hosting="container")) as live:
        assert live.hosted is not None and live.conditions is not None
        assert [fact.vnf for fact in live.conditions.hosting] == ["vnf0", "vnf1"]
        assert [port.name for port in live.conditions.ports] == ["v0", "v1"]
        for direction, ways in WAYS.items():
            assert_exact(measure(live, point_of(live, direction)), *ways)
        if switch != "planed":
            return
        os.kill(live.hosted.vnfs[1].process.pid, signal.SIGKILL)
        dead = measure(live, point_of(live, "bidirectional"))
        assert dead.verdict.kind.value == "invalid" and "vnf1 (container)" in dead.verdict.texts[0]


def test_the_far_end_of_p2v_in_a_container_with_latency_by_the_common_clock() -> None:
    with running("planed", build_chain("p2v", hosting="container")) as live:
        for direction in get_args(Direction):
            ways = {"unidirectional": ("n0->v0",), "reversed": ("v0->n0",)}.get(direction, ("n0->v0", "v0->n0"))
            trial = measure(live, point_of(live, direction), "latency", probes=200)
            assert_exact(trial, *ways)
            assert trial.latency is not None and not trial.latency.overflow
            assert trial.latency.probes_received == trial.latency.probes_sent > 0


@pytest.mark.all
def test_both_ends_of_v2v_in_vms() -> None:
    with running("planed", build_chain("v2v", hosting="vm")) as live:
        trial = measure(live, point_of(live, "bidirectional", "vm"))
        assert_exact(trial, *WAYS["bidirectional"])
        assert live.conditions is not None
        emulated = any(fact.emulated for fact in live.conditions.hosting)
        assert emulated <= (trial.verdict.kind.value == "functional")
