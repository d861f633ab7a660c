# SPDX-License-Identifier: BSD-3-Clause
"""Every lost frame is named once, with its place and cause, or is part of the rest."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_point, make_trial
from hypothesis import given
from hypothesis import strategies as st

from planebench.analysis.ledger import describe, ledger, merge, policy_packets, policy_words
from planebench.model.records import ControlPackets, DirectionCounts, SwitchCycles, Trial
from planebench.model.results import Ledger, Loss


def trial(
    scenario: str,
    offered: int,
    forwarded: int,
    drops: dict[str, int] | None = None,
    tester: dict[str, int] | None = None,
    **changes: Any,
) -> Trial:
    switch = SwitchCycles(busy_cycles=1, packets=offered, drops={"fault": 0} | (drops or {}))
    directions = (DirectionCounts("a->b", offered, offered, forwarded),)
    values = {"directions": directions, "switch": switch, "tester_drops": tester or {}}
    return make_trial(**{"point": make_point("planed", scenario), **values, **changes})


@pytest.mark.parametrize(
    ("drops", "tester", "loss"),
    [
        ({"n0:rx_missed": 7}, {}, Loss("NIC", "rx_missed (n0)", 7)),
        ({"n1:tx_errors": 7}, {}, Loss("NIC", "taken, not sent (n1)", 7)),
        ({"n0:rx_phy_discard_packets": 7}, {}, Loss("NIC", "rx_phy_discard_packets (n0)", 7)),
        ({}, {"n1:rx_missed": 7}, Loss("NIC", "rx_missed (n1, tester)", 7)),
        ({"v0:rx_missed": 7}, {}, Loss("switch", "rx_missed (v0)", 7)),
        ({"n1:tx_full": 7}, {}, Loss("wire ring", "full (n1)", 7)),
        # The NIC is the switch: the VNF may count what the NIC has counted.
        ({"v0:nic_dropped": 7}, {"v0:rx_missed": 5}, Loss("NIC", "ring full (v0)", 7)),
    ],
)
def test_what_a_nic_dropped_is_explained(drops: dict[str, int], tester: dict[str, int], loss: Loss) -> None:
    scenario = "p2v" if any(key.startswith("v0") for key in drops) else "p2p"
    lost = trial(scenario, 100, 93, drops, tester, point=make_point("planed", scenario, wire="pci"))
    assert ledger(lost) == Ledger(100, 93, (loss,))
    assert describe(ledger(lost)) == (
        f"7 lost: 7 {loss.place} {loss.cause}" if loss.place == "wire ring" else f"7 lost: 7 {loss.place}: {loss.cause}"
    )


@pytest.mark.parametrize(
    ("scenario", "drops", "tester", "losses"),
    [
        ("p2p", {"n1:tx_full": 7}, {}, [Loss("wire ring", "full (n1)", 7)]),
        ("p2v", {"v0:tx_full": 7}, {}, [Loss("vhost ring", "full (v0)", 7)]),
        ("v2v", {"v1:tx_full": 3, "v0:tx_full": 4}, {}, [("v0", 4), ("v1", 3)]),
        ("p2p", {"fault": 7}, {}, [Loss("switch", "fault", 7)]),
        ("p2p", {"n0:rx_missed": 7}, {}, [Loss("switch", "rx_missed (n0)", 7)]),
        ("p2p", {"n1:tx_mtu_exceeded": 7}, {}, [Loss("switch", "tx_mtu_exceeded (n1)", 7)]),
        ("p2p", {"n1:tx_errors": 7}, {}, [Loss("switch", "taken, not sent (n1)", 7)]),
        ("p2p", {}, {"n0:tx_errors": 7}, [Loss("tester", "taken, not sent (n0)", 7)]),
        ("loopback", {}, {"v1:tx_full": 7}, [Loss("VNF", "ring full (v1)", 7)]),
        ("loopback", {}, {"vnf0:tx_full": 7}, [Loss("VNF", "ring full (vnf0)", 7)]),
        ("loopback", {}, {"vnf0:runt": 7}, [Loss("VNF", "runt (vnf0)", 7, policy=True)]),
        ("loopback", {}, {"n1:rx_missed": 7}, [Loss("tester", "rx_missed (n1)", 7)]),
        ("loopback", {}, {"v1:rx_errors": 7}, [Loss("tester", "rx_errors (v1)", 7)]),
        ("v2v", {}, {"echo:runt": 7}, [Loss("VNF", "runt (echo)", 7, policy=True)]),
        ("p2p", {"v0:tx_full": 7}, {}, [Loss("switch", "ring full (v0)", 7)]),  # p2p has no such port
        ("p2p", {"tx_full": 7}, {}, [Loss("switch", "ring full", 7)]),  # runs from before drops had a port
    ],
)
def test_each_counter_has_its_place_and_cause(
    scenario: str, drops: dict[str, int], tester: dict[str, int], losses: list[Any]
) -> None:
    expected = tuple(it if isinstance(it, Loss) else Loss("vhost ring", f"full ({it[0]})", it[1]) for it in losses)
    got = ledger(trial(scenario, 100, 93, drops, tester))
    assert got == Ledger(100, 93, expected)
    assert got.unexplained_packets == 0


def test_damaged_frames_of_all_directions_are_the_switchs() -> None:
    both = (
        DirectionCounts("n0->n1", 50, 50, 45, corrupt_packets=5),
        DirectionCounts("n1->n0", 60, 60, 58, corrupt_packets=1),
    )
    got = ledger(trial("p2p", 0, 0, {"n0:tx_full": 1}, directions=both))
    assert got.losses == (Loss("switch", "damaged", 6), Loss("wire ring", "full (n0)", 1))
    assert (got.offered_packets, got.forwarded_packets, got.unexplained_packets) == (110, 103, 0)


def test_an_echo_trial_loses_on_both_ways_and_in_between() -> None:
    there_and_back = (DirectionCounts("v0->v3", 1000, 1000, 990),)
    drops, tester = {"v1:tx_full": 5, "v3:tx_full": 3}, {"v2:tx_full": 2}
    got = ledger(trial("v2v", 0, 0, drops, tester, directions=there_and_back, role="latency"))
    assert [(loss.place, loss.packets) for loss in got.losses] == [("vhost ring", 5), ("vhost ring", 3), ("VNF", 2)]
    assert got.unexplained_packets == 0


def test_attempts_that_are_tried_again_are_no_losses() -> None:
    got = ledger(trial("p2p", 100, 100, {"n0:rx_nombuf": 999}, {"n1:rx_nombuf": 999}))
    assert got.losses == () and got.unexplained_packets == 0


def test_what_no_counter_knows_is_unexplained_and_may_be_negative() -> None:
    assert ledger(trial("p2p", 100, 80, {"n1:tx_full": 15})).unexplained_packets == 5
    assert ledger(trial("p2p", 100, 90, {"n1:tx_full": 15})).unexplained_packets == -5


def test_a_switch_without_counters_is_not_counted() -> None:
    assert not ledger(trial("p2p", 100, 80, switch=SwitchCycles())).counted
    assert not ledger(trial("p2p", 100, 80, switch=SwitchCycles(packets=100))).counted, "its drops could not be read"
    attempts = SwitchCycles(packets=100, drops={"n1:rx_nombuf": 3})
    assert not ledger(trial("p2p", 100, 80, switch=attempts)).counted, "attempts are no drops"
    assert ledger(trial("p2p", 100, 80, switch=SwitchCycles(drops={"n1:tx_full": 1}))).counted


def test_a_counter_that_stands_at_zero_counts_and_is_no_loss() -> None:
    got = ledger(trial("p2p", 100, 80, switch=SwitchCycles(packets=100, drops={"n1:tx_full": 0})))
    assert got.counted and got.losses == () and got.unexplained_packets == 20


def test_ledgers_add_up_by_place_and_cause() -> None:
    one = Ledger(100, 90, (Loss("vhost ring", "full (v0)", 6), Loss("switch", "fault", 4)))
    two = Ledger(200, 180, (Loss("switch", "fault", 9), Loss("VNF", "runt (vnf0)", 1)), counted=False)
    expected = (Loss("switch", "fault", 13), Loss("vhost ring", "full (v0)", 6), Loss("VNF", "runt (vnf0)", 1))
    assert merge([one, two]) == Ledger(300, 270, expected, counted=False)
    assert merge([one, two]).unexplained_packets == one.unexplained_packets + two.unexplained_packets == 10
    assert merge([]) == Ledger(0, 0, ())


_KEYS = st.sampled_from(["v0:tx_full", "n1:tx_full", "fault", "n0:rx_missed", "n0:rx_nombuf", "x:y:z", "", ":", "v0:"])


@given(st.dictionaries(_KEYS, st.integers(0, 10**9)), st.dictionaries(_KEYS, st.integers(0, 10**9)))
def test_the_sum_is_what_was_sent_whatever_the_keys(drops: dict[str, int], tester: dict[str, int]) -> None:
    got = ledger(trial("loopback", 10**10, 10**9, drops, tester))
    counted = {key: count for key, count in drops.items() if key != "n0:rx_nombuf"}
    counted_too = {key: count for key, count in tester.items() if key != "n0:rx_nombuf"}
    assert sum(loss.packets for loss in got.losses) == sum(counted.values()) + sum(counted_too.values())
    assert len({(loss.place, loss.cause) for loss in got.losses}) == len(got.losses)
    assert describe(got).count("\n") == 0


@pytest.mark.parametrize(
    ("it", "words"),
    [
        (Ledger(100, 100, ()), "nothing lost"),
        (
            Ledger(12_001, 1, (Loss("vhost ring", "full (v0)", 11_990),)),
            "12 000 lost: 11 990 vhost ring full (v0), 10 unexplained",
        ),
        (Ledger(9, 4, (Loss("switch", "fault", 5),)), "5 lost: 5 switch: fault"),
        (Ledger(9, 4, (), counted=False), "5 lost: 5 unexplained (some switches report no drop counters)"),
        (Ledger(9, 4, (Loss("VNF", "runt (vnf0)", 8),)), "5 lost: 8 VNF: runt (vnf0), 3 counted more than once"),
    ],
)
def test_in_words(it: Ledger, words: str) -> None:
    assert describe(it).replace("\u202f", " ") == words


def named(tester: dict[str, int], forwarded: int = 60) -> Trial:
    point = make_point("planed", "loopback", chain="firewall:rules=/r,l3fwd", chain_length=2)
    directions = (DirectionCounts("n0->n1", 100, 100, forwarded),)
    return make_trial(point=point, directions=directions, tester_drops=tester)


def test_what_a_function_drops_is_called_by_its_name_whatever_the_reason() -> None:
    got = ledger(named({"vnf0:rule": 20, "vnf1-q1:no_route": 10, "v2:tx_full": 7, "vnf1:never_seen": 3}))
    assert got.losses == (
        Loss("VNF", "rule (vnf0 firewall)", 20, policy=True),
        Loss("VNF", "no_route (vnf1-q1 l3fwd)", 10, policy=True),
        Loss("VNF", "ring full (v2)", 7),
        Loss("VNF", "never_seen (vnf1 l3fwd)", 3, policy=True),
    )
    assert got.unexplained_packets == 0


def test_policy_is_what_functions_drop_of_their_own_accord() -> None:
    it = named({"vnf0:rule": 20, "vnf1-q1:no_route": 10, "v2:tx_full": 7, "vnf1:tx_full": 1, "n1:rx_missed": 2})
    assert (policy_packets(it), policy_words(it)) == (30, "rule (vnf0 firewall), no_route (vnf1-q1 l3fwd)")
    assert (policy_packets(named({})), policy_words(named({"v2:tx_full": 7}))) == (0, "")


def test_a_reply_to_a_control_packet_may_be_what_a_full_ring_dropped() -> None:
    control = ControlPackets(50.0, sent=6, received=6, replies=5, histogram="")
    lost = trial("p2p", 100, 93, {"n1:tx_full": 8}, control=control)
    assert ledger(lost) == Ledger(106, 98, (Loss("wire ring", "full (n1)", 8),))
    assert ledger(lost).unexplained_packets == 0
