# SPDX-License-Identifier: BSD-3-Clause
"""ic16's claims of many VNFs side by side: over-provisioning, and FIB offload against the rest."""

from __future__ import annotations

from typing import Any

import pytest
from making import NEAR, Figure, delay, judged, rate

from planebench.papers import Outcome
from planebench.stats.histogram import encode

YES, NO, OPEN = Outcome.CONFIRMED, Outcome.NOT_CONFIRMED, Outcome.CANNOT_BE_TESTED
OFFLOAD = "planed:offload=fib"
ROUTERS = {"chain": "l3fwd:fib=cuckoo:synthetic=1M", "traffic": "fib-1M"}
LOAD = "232.143kpps"


def many(switch: str, count: int, mpps: float, **more: Any) -> list[Figure]:
    return rate(switch, "parallel", mpps, chain_length=count, **more)


@pytest.mark.parametrize(("mpps", "outcome"), [(1.0, YES), (9.0, NO)])
def test_more_vnfs_than_cores_lose_most_of_the_packets(mpps: float, outcome: Outcome) -> None:
    found = judged("over-provisioning-loses", many("planed", 1, 10.0), many("planed", 63, mpps))
    assert found.outcome is outcome


def test_over_provisioning_is_not_judged_by_a_switch_that_offloads() -> None:
    found = judged("over-provisioning-loses", many(OFFLOAD, 1, 10.0), many(OFFLOAD, 63, 9.9))
    assert (found.outcome, found.why) == (OPEN, "not covered by this run")


@pytest.mark.parametrize(("mpps", "outcome"), [(8.0, YES), (0.1, NO)])
def test_offload_is_set_against_open_vswitch(mpps: float, outcome: Outcome) -> None:
    sides = many(OFFLOAD, 63, mpps, **ROUTERS), many("ovs-dpdk", 63, 0.2, **ROUTERS)
    assert judged("offload-passes-ovs-dpdk", *sides).outcome is outcome


def test_latency_is_compared_at_one_load() -> None:
    def at(switch: str, us: float) -> list[Figure]:
        return delay(switch, "parallel", LOAD, us, chain_length=63, **ROUTERS)

    assert judged("offload-is-faster-than-ovs-dpdk", at(OFFLOAD, 20.0), at("ovs-dpdk", 90000.0)).outcome is YES
    assert judged("offload-is-faster-than-ovs-dpdk", at(OFFLOAD, 20.0), at("ovs-dpdk", 10.0)).outcome is NO


@pytest.mark.parametrize(("mpps", "outcome"), [(9.0, YES), (7.0, NO)])
def test_bare_metal_is_the_forwarder_for_one_vnf(mpps: float, outcome: Outcome) -> None:
    sides = many(OFFLOAD, 1, 10.0, **ROUTERS), many(OFFLOAD, 63, mpps, **ROUTERS)
    assert judged("offload-close-to-bare-metal", *sides).outcome is outcome


@pytest.mark.parametrize(("ns", "outcome"), [(1300, YES), (1500, NO)])
def test_jitter_is_that_of_receive_bursts(ns: int, outcome: Outcome) -> None:
    def side(count: int, jitter_ns: int) -> list[Figure]:
        record = {"probes_sent": 1000, "probes_received": 1000, "histogram": encode([[9000, 1000]])}
        return [
            figure
            for number, factor in enumerate(NEAR)
            for figure in delay(
                OFFLOAD,
                "parallel",
                LOAD,
                9.0,
                chain_length=count,
                trials=(factor,),
                extra={"latency": _latency(record, int(jitter_ns * factor)), "start": number, "repetition": number},
                **ROUTERS,
            )
        ]

    assert judged("offload-jitter", side(1, 1000), side(63, ns)).outcome is outcome


def _latency(record: dict[str, Any], jitter_ns: int) -> Any:
    from planebench.model.records import LatencyRecord

    return LatencyRecord(**record, burst_falls=encode([[jitter_ns, 999]]))
