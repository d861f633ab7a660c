# SPDX-License-Identifier: BSD-3-Clause
"""Anatomies of several trials as one, and bytes and traffic of the trials that count."""

from __future__ import annotations

from dataclasses import replace

import pytest
from builders import make_header, make_latency_trial, make_point, make_trial

from planebench.analysis.histogram import encode
from planebench.analysis.latency import summarise_anatomy
from planebench.analysis.ledger import mean_forwarded_bytes, sent_traffic
from planebench.analysis.results import derive_results
from planebench.model.header import Run
from planebench.model.records import Anatomy, AnatomyPart, DirectionCounts, TrafficSent

NAMES = (("generator", "tester"), ("hop 1", "switch"), ("vnf0", "vnf"), ("hop 2", "switch"), ("monitor", "tester"))


def anatomy(*means_ns: int, joined: int = 100, name: str = "n0->n1", problem: str = "") -> Anatomy:
    parts = tuple(
        AnatomyPart(part, kind, float(ns), float(ns), float(ns), encode([[ns, joined]]), float(ns), float(ns))  # type: ignore[arg-type]
        for (part, kind), ns in zip(NAMES, means_ns, strict=True)
    )
    return Anatomy(name, joined, {"did not reach vnf0": 2}, parts, float(sum(means_ns)), problem)


def test_means_are_weighted_by_probes_and_shares_are_of_the_whole() -> None:
    trials = [
        make_latency_trial(0, anatomy=(anatomy(100, 1000, 500, 1000, 400, joined=100),)),
        make_latency_trial(1, anatomy=(anatomy(100, 2000, 500, 1000, 400, joined=300),)),
    ]
    (summary,) = summarise_anatomy(trials)
    assert (summary.probes, summary.not_joined, summary.left_out) == (400, {"did not reach vnf0": 4}, 0)
    assert [part.mean for part in summary.parts] == [0.1, 1.75, 0.5, 1.0, 0.4]
    assert summary.mean == pytest.approx(3.75)
    assert [summary.share(kind) for kind in ("switch", "vnf", "tester")] == pytest.approx(  # type: ignore[arg-type]
        [2.75 / 3.75, 0.5 / 3.75, 0.5 / 3.75]
    )
    assert summary.parts[1].p50 == pytest.approx(2.0, rel=0.001)


def test_a_trial_whose_parts_do_not_add_up_is_left_out_and_told() -> None:
    bad = anatomy(1, 1, 1, 1, 1, problem="the parts do not add up")
    (summary,) = summarise_anatomy(
        [make_latency_trial(anatomy=(anatomy(100, 1, 1, 1, 1),)), make_latency_trial(anatomy=(bad,))]
    )
    assert (summary.parts[0].mean, summary.left_out, summary.problem) == (0.1, 1, "")
    (nothing,) = summarise_anatomy([make_latency_trial(anatomy=(bad,))])
    assert (nothing.parts, nothing.problem) == ((), "the parts do not add up")


def test_directions_are_kept_apart() -> None:
    both = (anatomy(1, 2, 3, 4, 5), anatomy(5, 4, 3, 2, 1, name="n1->n0"))
    there, back = summarise_anatomy([make_latency_trial(anatomy=both)])
    assert (there.direction, back.direction) == ("n0->n1", "n1->n0")
    assert summarise_anatomy([make_latency_trial()]) == ()


def test_gigabits_are_those_of_the_bytes_that_came() -> None:
    point = make_point(traffic="imix", frame_size_bytes=362)
    way = DirectionCounts("n0->n1", 1200, 1200, 1000, offered_bytes=434_200, forwarded_bytes=361_830)
    sent = TrafficSent("n0->n1", 1200, 434_200, ((64, 700), (594, 400), (1518, 100)))
    trials = [make_trial(n, point, directions=(way,), sent=(sent,), offered_duration_ns=1_000_000) for n in range(2)]
    (result,) = derive_results(Run(make_header(("planed",)), tuple(trials)))
    assert result.mean_frame_bytes == pytest.approx(361.83)
    assert result.throughput_l1_gbps == pytest.approx(1e6 * (361.83 + 20) * 8 / 1e9)
    assert result.sent == (replace(sent, packets=2400, bytes=868_400, sizes=((64, 1400), (594, 800), (1518, 200))),)


def test_without_bytes_the_frame_size_of_the_point_stands() -> None:
    assert mean_forwarded_bytes([make_trial()]) is None
    (result,) = derive_results(Run(make_header(("planed",)), (make_trial(mpps=1.0),)))
    assert result.throughput_l1_gbps == pytest.approx(1e6 * 84 * 8 / 1e9)
    assert sent_traffic([make_trial()]) == ()


def test_points_of_unlike_traffic_are_not_one() -> None:
    points = [make_point(traffic=name, frame_size_bytes=64) for name in ("", "flows-1k", "macs-8")]
    trials = tuple(make_trial(n, point) for n, point in enumerate(points))
    results = derive_results(Run(make_header(("planed",)), trials))
    assert [result.point for result in results] == points
    assert len({point.point_id for point in points}) == 3
