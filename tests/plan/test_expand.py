# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

from typing import Any

import pytest

from planebench.model.errors import UsageError
from planebench.model.plan import Plan
from planebench.model.records import Point
from planebench.plan.expand import expand, max_frame_bytes, skipped, switch_labels
from planebench.plan.override import override
from planebench.plan.schema import load_plan, plan_from_document


@pytest.fixture
def small(document: dict[str, Any]) -> Plan:
    return plan_from_document(document, "small")


def test_the_product_in_plan_order(small: Plan) -> None:
    ids = [point.point_id for point in expand(small)]
    one_switch = [
        f"{scenario}/unidirectional/{size}/virtio/process"
        for scenario in ("p2p", "loopback-1", "loopback-2")
        for size in (64, 1024)
    ]
    assert ids == [f"{switch}/{rest}" for switch in ("planed", "testpmd") for rest in one_switch]


def test_points_are_distinct_even_for_a_switch_named_twice(small: Plan) -> None:
    points = expand(override(small, switch="planed,testpmd,planed,planed"))
    assert len(points) == len(set(points)) == 4 * 6
    assert list(dict.fromkeys(point.switch for point in points)) == ["planed", "testpmd", "planed#2", "planed#3"]


def test_labels_lead_back_to_adapters() -> None:
    labels = switch_labels(("ovs-dpdk", "planed", "ovs-dpdk"))
    assert [(entry.label, entry.adapter) for entry in labels] == [
        ("ovs-dpdk", "ovs-dpdk"),
        ("planed", "planed"),
        ("ovs-dpdk#2", "ovs-dpdk"),
    ]


def test_quick_has_every_cell_once() -> None:
    points = expand(load_plan("quick"))
    assert len(points) == len(set(points)) == 3 * (4 + 6 + 4 + 4)
    assert {point.scenario for point in points if point.direction == "reversed"} == {"p2v"}


def test_a_scenario_without_the_direction_is_left_out_and_reported(small: Plan) -> None:
    plan = override(small, scenario="p2p,p2v", direction="reversed", frame_size="64", switch="planed")
    assert expand(plan) == (Point("planed", "p2v", "reversed", 0, 64),)
    (entry,) = skipped(plan)
    assert entry.what == "p2p"
    assert "reversed is not valid for p2p" in entry.reason


def test_nothing_left_is_an_error(small: Plan) -> None:
    with pytest.raises(UsageError, match=r"nothing to measure: direction reversed is not valid for p2p\. Valid: uni"):
        expand(override(small, scenario="p2p", direction="reversed"))


def test_nothing_is_skipped_where_every_scenario_has_a_direction() -> None:
    assert skipped(load_plan("quick")) == ()


@pytest.mark.parametrize(("sizes", "expected"), [("64", 1518), ("64,1518", 1518), ("64,9000", 9000)])
def test_largest_frame(small: Plan, sizes: str, expected: int) -> None:
    assert max_frame_bytes(override(small, frame_size=sizes)) == expected
