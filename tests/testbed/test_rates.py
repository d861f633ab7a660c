# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planebench.model.plan import LatencyPlan
from planebench.model.records import Load
from planebench.model.scenario import ScenarioName
from planebench.testbed.rates import (
    bit_loads,
    fixed_loads,
    latency_loads,
    line_rate_pps,
    rate_label,
    share_label,
)


@pytest.mark.parametrize(("size", "mpps"), [(64, 14.88), (1024, 1.197), (1518, 0.8127)])
def test_line_rate_of_ten_gigabit(size: int, mpps: float) -> None:
    assert line_rate_pps(size) / 1e6 == pytest.approx(mpps, rel=1e-3)


@pytest.mark.parametrize(
    ("share", "label"), [(0.1, "0.10"), (0.5, "0.50"), (0.99, "0.99"), (1.0, "1.00"), (0.995, "0.995")]
)
def test_share_labels(share: float, label: str) -> None:
    assert share_label(share) == label


@given(st.floats(0.001, 1), st.floats(0.001, 1))
def test_two_shares_have_two_labels(one: float, other: float) -> None:
    assert (share_label(one) == share_label(other)) == (one == other)


@pytest.mark.parametrize(
    ("pps", "label"), [(1_000_000, "1Mpps"), (2_500_000, "2.5Mpps"), (100_000, "100kpps"), (100, "100pps")]
)
def test_rate_labels(pps: float, label: str) -> None:
    assert rate_label(pps) == label


def _latency(loads: tuple[float, ...], v2v_pps: float = 1e6, rates_pps: tuple[float, ...] = ()) -> LatencyPlan:
    return LatencyPlan(loads, duration_s=1, v2v_pps=v2v_pps, rates_pps=rates_pps)


def _labels(scenario: ScenarioName, how: LatencyPlan, of: str = "") -> tuple[str, ...]:
    return tuple(load.label for load in latency_loads(scenario, how, of=of))


def test_latency_at_shares_of_r_plus_for_each_sender() -> None:
    assert latency_loads("p2p", _latency((0.1, 0.5)), 8e6, 2) == (Load("0.10", 0.4e6), Load("0.50", 2e6))


def test_v2v_latency_has_one_fixed_rate() -> None:
    assert latency_loads("v2v", _latency((0.1, 0.5, 0.99)), 8e6, 2) == (Load("1Mpps", 1e6),)
    assert latency_loads("v2v", _latency((0.1,), v2v_pps=100), 8e6, 1) == (Load("100pps", 100),)


def test_labels_are_known_before_r_plus() -> None:
    assert _labels("loopback", _latency((0.1, 0.99))) == ("0.10", "0.99")
    assert _labels("v2v", _latency((0.1, 0.99))) == ("1Mpps",)
    assert _labels("v2v", _latency(())) == _labels("p2p", _latency(())) == ()


def test_fixed_rates_are_loads_beside_the_shares() -> None:
    loads = latency_loads("loopback", _latency((0.5,), rates_pps=(100.0, 1e5)), 8e6, 2)
    assert loads == (Load("0.50", 2e6), Load("100pps", 100.0), Load("100kpps", 1e5))
    assert _labels("p2p", _latency((), rates_pps=(1e5, 1e5))) == ("100kpps",)


def test_fixed_rates_of_v2v_come_behind_its_own() -> None:
    assert _labels("v2v", _latency((0.1,), 1e6, (1e5, 1e6))) == ("1Mpps", "100kpps")
    assert _labels("v2v", _latency((), 1e6, (1e5,))) == ("100kpps",)
    assert fixed_loads("p2p", _latency((0.1,))) == ()


def test_shares_of_another_load_than_r_plus_say_so() -> None:
    assert _labels("p2p", _latency((0.1, 0.995)), of="carried") == ("0.10 carried", "0.995 carried")
    assert latency_loads("p2p", _latency((0.5,)), 8e6, 2, of="PDR") == (Load("0.50 PDR", 2e6),)
    assert _labels("v2v", _latency((0.1,)), of="carried") == ("1Mpps",)


@pytest.mark.parametrize("vnfs", [1, 8, 16, 32, 63])
@pytest.mark.parametrize("size", [64, 128, 256, 512, 1024])
def test_a_rate_per_vnf_is_multiplied_by_their_number(size: int, vnfs: int) -> None:
    """ic16: 156 Mb/s for each of N VNFs, and 2.5 and 10 Gb/s for all of them together, on layer 1."""
    total, full, each = bit_loads((2.5e9, 10e9), (156e6,), size, vnfs)
    assert (total.label, full.label, each.label) == ("2.5Gb/s", "10Gb/s", "156Mb/s per VNF")

    def bits(load: Load) -> float:
        return (load.pps_per_direction or 0.0) * (size + 20) * 8

    assert (bits(total), bits(full)) == (pytest.approx(2.5e9), pytest.approx(10e9))
    assert bits(each) == pytest.approx(156e6 * vnfs)
    assert full.pps_per_direction == pytest.approx(line_rate_pps(size))


def test_bit_rates_are_split_over_the_sending_ends() -> None:
    (one,), (half,) = bit_loads((1e9,), (), 64), bit_loads((1e9,), (), 64, senders=2)
    assert one.label == half.label == "1Gb/s"
    assert one.pps_per_direction == pytest.approx(2 * (half.pps_per_direction or 0.0))
