# SPDX-License-Identifier: BSD-3-Clause
"""How many VNFs a server carries: ic16's own server, the properties of the model, and measured costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from analysis.waiting import waiting
from builders import make_header, make_latency_trial, make_point, make_trial
from hypothesis import given
from hypothesis import strategies as st

from planebench.analysis.compare import Derived
from planebench.analysis.node_capacity import (
    NodeCapacity,
    PathCost,
    Server,
    carried,
    carried_pps,
    node_capacity,
    over_provisioned,
    path_costs,
)
from planebench.model.header import Run
from planebench.model.records import ThreadEvidence, Trial
from planebench.papers.data import paper_facts
from planebench.store import read_run


def test_the_server_of_ic16_has_32_vnfs() -> None:
    theirs = paper_facts("ic16")
    server = Server(*(int(theirs[f"server.{name}"]) for name in ("ports", "vfs_per_port", "lcores", "sockets")))
    assert node_capacity(server) == NodeCapacity(per_port=8, per_socket=16, vnfs=32, limit="logical cores")


@pytest.mark.parametrize(("vnfs", "cores"), [(32, 16), (63, 32)])
def test_more_vnfs_than_cores_lose_what_ic16_measured(vnfs: int, cores: int) -> None:
    """16 on the node of the NIC lose nothing of 10 Gb/s of 64 B frames; the losses beyond are those of time slices."""
    theirs, line_pps = paper_facts("ic16"), 14.88e6
    most = int(theirs["max_vnfs_at_10g_without_loss"])
    assert carried_pps(line_pps, most, cores, line_pps / most, 256, 0.012) == line_pps
    loss = 1 - carried_pps(line_pps, vnfs, cores, line_pps / most, 256, 0.012) / line_pps
    assert theirs["overprovisioned_loss_range.0"] <= loss <= theirs["overprovisioned_loss_range.1"]


def test_a_run_is_set_beside_the_model_of_over_provisioning() -> None:
    """Two VNFs on a core: each gets 5 Mpps, and forwards those of half of the time, with a ring of 400 in 4 ms."""

    def trial(index: int, count: int, mpps: float, of: float) -> Trial:
        made = make_trial(index, make_point("veb", "parallel", chain_length=count), mpps, start=index)
        way = replace(made.directions[0], offered_packets=round(of * 1e6), forwarded_packets=round(mpps * 1e6))
        threads = tuple(ThreadEvidence("vnf", f"vnf{n}", 1, 10**9, 0, 0) for n in range(count))
        evidence = replace(made.evidence, threads=(*made.evidence.threads, *threads))
        return replace(made, directions=(way,), evidence=evidence, offered_duration_ns=10**9)

    trials = trial(0, 1, 8.0, 10.0), trial(1, 2, 5.5, 10.0)
    (found,) = over_provisioned(Derived(Run(make_header(("veb",)), trials)), 400)
    assert (found.point.chain_length, found.cores) == (2, 1)
    assert (found.loss, found.expected) == (pytest.approx(0.45), pytest.approx(0.49))


def test_virtual_functions_are_the_limit_of_many_cores() -> None:
    assert node_capacity(Server(1, 63, 128, 2)) == NodeCapacity(63, 63, 63, "virtual functions")
    assert node_capacity(Server(1, 63, 128, 2, reserved=100)).vnfs == 28
    assert node_capacity(Server(4, 4, 32, 2)) == NodeCapacity(4, 8, 16, "virtual functions"), "two ports at a socket"


@given(st.integers(1, 8), st.integers(1, 256), st.integers(1, 512), st.integers(1, 4))
def test_no_limit_is_exceeded(ports: int, vfs: int, lcores: int, sockets: int) -> None:
    found = node_capacity(Server(ports, vfs, lcores, sockets))
    assert found.vnfs == min(ports * vfs, lcores)
    assert found.per_port * ports <= found.vnfs and found.per_socket <= found.vnfs
    assert (found.limit == "logical cores") == (lcores <= ports * vfs)


def test_a_core_carries_as_many_vnfs_as_its_interval_says() -> None:
    cost = PathCost(make_point(scenario="p2v"), 10e6, 9.99e6, 10.19e6, False, None, 6.7, 260.0)
    assert cost.vnfs(1, 100e3) == (99, 101)
    assert cost.vnfs(2, 100e3) == (199, 203)
    assert replace(cost, low=None, high=None).vnfs(1, 100e3) == (100, 100), "one start of the switch"
    assert replace(cost, is_bound=True, high=None).vnfs(1, 100e3) == (99, None)
    assert replace(cost, point=make_point(scenario="p2p")).vnfs(1, 100e3) is None, "a path without VNFs"


def test_costs_are_those_of_the_trials_of_a_run() -> None:
    """The builder's switch is busy for 260 cycles a frame."""
    point = make_point("planed", "p2p")
    run = Run(make_header(("planed",)), tuple(make_trial(n, point, 10.0, start=n, repetition=n) for n in range(3)))
    (one,) = path_costs(Derived(run), lambda label: 1)
    assert one.cycles_per_frame == pytest.approx(260)
    assert one.low is not None and one.high is not None and one.low <= one.pps_per_core <= one.high
    assert one.gbps_per_core == pytest.approx(10e6 * (64 + 20) * 8 / 1e9)
    (two,) = path_costs(Derived(run), lambda label: 2)
    assert two.pps_per_core == pytest.approx(5e6) and two.high == pytest.approx(one.high / 2)


def test_what_the_tester_could_not_saturate_is_a_bound_beside_its_estimate() -> None:
    run = read_run(Path(__file__).parents[2] / "docs" / "examples" / "runs" / "quick")
    bounds = [it for it in path_costs(Derived(run), lambda label: 1) if it.is_bound]
    known = [it for it in bounds if it.capacity]
    assert known and all(it.high is None for it in bounds)
    for it in known:
        assert it.capacity is not None and it.pps_per_core < it.capacity[1]


def test_what_the_host_took_is_in_no_cost() -> None:
    """6 Mpps were counted while another program had the core for 40 % of the time: ten VNFs of 1 Mpps a core."""
    point = make_point("planed", "p2v")
    trials = [make_trial(n, point, 6.0, start=n, repetition=n, evidence=waiting(0.4)) for n in range(3)]
    (cost,) = path_costs(Derived(Run(make_header(("planed",)), tuple(trials))), lambda label: 1)
    assert cost.pps_per_core == pytest.approx(10e6, rel=1e-3)
    assert replace(cost, low=None, high=None).vnfs(1, 0.99e6) == (10, 10)


def test_the_most_vnfs_that_carried_a_load_each() -> None:
    trials = [
        make_latency_trial(
            index, make_point("veb", "parallel", chain_length=count), "156Mb/s per VNF", 1e5, verdict=kind
        )
        for index, (count, kind) in enumerate(((8, "valid"), (16, "valid"), (32, "overload")))
    ]
    (most,) = carried(Derived(Run(make_header(("veb",)), tuple(trials))).results)
    assert (most.switch, most.vnfs, most.load) == ("veb", 16, "156Mb/s per VNF")
